"""The tokenizer that is learnt from a treebank's text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from text_treebank import QUICK, part, raw, tokenizer

from tk_spacy.ensemble.training_job import TrainingJob
from tk_spacy.errors import ModelError, UserError
from tk_spacy.parallel.executor import LocalExecutor
from tk_spacy.tokenizing.job import tokenizer_job
from tk_spacy.tokenizing.paragraphs import MOST, clean, paragraphs
from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec, make_tokenizer
from tk_spacy.tokenizing.training import train_udpipe_tokenizer
from tk_spacy.tokenizing.training_text import training_text
from tk_spacy.tokenizing.udpipe import LONGEST, UdpipeTokenizer
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import surface_tokens

# Paragraphs


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_paragraphs_are_parted_by_blank_lines(size: int) -> None:
    text = "\n \nOne\ttwo\nthree\u2028 \t\u2029\n\n four\n\r\n five\x00six\n"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    if size == 1:  # a line end of two characters is one piece
        at = pieces.index("\r")
        pieces[at : at + 2] = ["\r\n"]
    found = [p.text for p in paragraphs(pieces) if p.text.strip()]
    assert found == ["One two\nthree", "four", "five six\n"]
    assert all(p.ends for p in paragraphs(pieces))


def test_paragraphs_that_are_long_come_in_parts() -> None:
    words = " ".join(f"w{i}" for i in range(40_000))
    found = list(paragraphs([words, "\n\nnext"]))
    assert [p.ends for p in found] == [False] * (len(found) - 2) + [True, True]
    assert len(found) > 4
    assert all(len(p.text) <= MOST for p in found)
    assert "".join(p.text for p in found[:-1]) == words
    assert all(not p.text[-1].isspace() for p in found)
    assert [p.text for p in paragraphs(["x" * (2 * MOST + 5)])] == ["x" * MOST] * 2 + ["x" * 5]


def test_paragraphs_are_streamed() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "One two three.\n\n" * 1000

    assert len(list(islice(paragraphs(endless()), 5000))) == 5000


def test_paragraphs_are_clean_of_what_ends_a_text() -> None:
    text = "a\0b\tc\x1cd\r\ne\x85f\u2029g\udc80h\u00a0i\u200bj"
    assert clean(text) == "a b c d \ne\nf\ng\ufffdh\u00a0i\u200bj"
    assert len(clean(text)) == len(text)


# Sentences, tokens, words


def test_tokenizer_finds_the_words_of_new_text() -> None:
    gold = part("test")
    found = list(tokenizer().sentences([raw(gold)], path="here.txt"))
    assert [s.forms for s in found] == [s.forms for s in gold]
    assert [s.misc for s in found] == [s.misc for s in gold]
    assert [s.layout.extras for s in found] == [s.layout.extras for s in gold]
    assert [surface_tokens(s) for s in found] == [surface_tokens(s) for s in gold]
    assert [s.sent_id for s in found] == [str(i) for i in range(1, len(gold) + 1)]
    assert {s.path for s in found} == {"here.txt"}
    text = [[c for c in s.comments if c.startswith("# text")] for s in (*found, *gold)]
    assert text[: len(gold)] == text[len(gold) :]
    starts = [("# newdoc" in s.comments, "# newpar" in s.comments) for s in found]
    assert starts == [(i == 0, i % 20 == 0) for i in range(len(gold))]


def test_tokenizer_learns_past_null_characters() -> None:
    sentence = Sentence.from_columns(forms=["a\0b", "c"])
    assert list(training_text([sentence])) == [
        "1\ta\ufffdb\t_\t_\t_\t_\t0\troot\t_\t_\n2\tc\t_\t_\t_\t_\t1\tdep\t_\t_\n\n"
    ]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_tokenizer_does_not_depend_on_the_pieces_of_a_text(size: int) -> None:
    text = raw(part("dev")[:25])
    whole = list(tokenizer().split([text]))
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert list(tokenizer().split(pieces)) == whole
    assert sum(breaks.paragraph for _, breaks in whole) == 2


HOSTILE = {
    "empty": "",
    "white space": " \n\t\r\n \u2003\n\n",
    "null characters": "Ana\0canta\0.\0",
    "controls": "Ana\x01 canta\x1b[0m \x7f.\x0b\x0c Ole\x1e mira.",
    "carriage returns": "Ana canta.\r\rOle mira.\r\n\r\nIda sale.",
    "emoji": "👩‍👩‍👧 canta 😀😀.",
    "right to left": "שלום עולם. \u202bAna\u202c canta.",
    "halves of characters": "Ana \ud83d canta.",
    "format characters": "A\u200bna\u00ad canta\ufeff.",
    "no character": "Ana \U000e0001\ufffe canta.",
    "conllu": "1\tAna\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
    "combining": "e" + "\u0301" * 300,
    "punctuation": "." * 500,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_tokenizer_takes_hostile_text(name: str, tmp_path: Path) -> None:
    from tk_spacy.treebank.conllu import load_treebank, write_conllu

    text = HOSTILE[name]
    found = list(tokenizer().sentences([text]))
    # Nothing but white space is lost, nothing made up: but for multiword tokens' words.
    tokens = "".join(t.form for s in found for t in surface_tokens(s))
    assert "".join(tokens.split()) == "".join(clean(text).split())
    assert bool(found) == bool(clean(text).strip())
    if found:
        write_conllu(tmp_path / "out.conllu", found)
        again = load_treebank(tmp_path / "out.conllu", trees="optional")
        assert [s.forms for s in again] == [s.forms for s in found]


def test_tokenizer_takes_long_text() -> None:
    started = time.process_time()
    sentences = [*part("train"), *part("dev")] * 30
    text = raw(sentences).replace("\n\n", " ")  # one paragraph of many parts
    assert len(text) > 80_000
    found = list(tokenizer().split([text]))
    gold = [surface_tokens(s) for s in sentences]
    right = sum(list(tokens) == own for (tokens, _), own in zip(found, gold, strict=False))
    assert len(found) == len(gold)
    assert right == len(gold)
    assert sum(breaks.paragraph for _, breaks in found) == 1
    assert time.process_time() - started < 60


def test_tokenizer_cuts_what_has_no_end() -> None:
    (first, second), *_ = zip(*tokenizer().split(["x" * (LONGEST + 7)]), strict=True)
    assert [len(t.form) for t in (*first, *second)] == [LONGEST, 7]


def test_tokenizer_is_lazy() -> None:
    taken = []

    def pieces() -> Iterator[str]:
        for number in range(1000):
            taken.append(number)
            yield "Ana canta al mar.\n\n" * 200

    found = tokenizer().split(pieces())
    assert len(next(found).tokens) == 5
    assert len(taken) < 30


# Storage, and the training as a task


def test_tokenizer_is_the_same_from_disk_and_bytes(tmp_path: Path) -> None:
    import pickle

    text = raw(part("dev")[:5])
    own = tokenizer()
    own.to_disk(tmp_path / "tokenizer")
    for other in (
        UdpipeTokenizer.from_disk(tmp_path / "tokenizer"),
        UdpipeTokenizer.from_bytes(own.to_bytes()),
        pickle.loads(pickle.dumps(own)),
    ):
        assert list(other.split([text])) == list(own.split([text]))
        assert (other.settings, other.about) == (own.settings, own.about)
    assert own.about["epochs"][0]["sentences"] > 90
    (tmp_path / "tokenizer" / "tokenizer.udpipe").write_bytes(b"")
    with pytest.raises(
        ModelError, match=r"tokenizer\.udpipe is damaged or incomplete \(it is empty\)"
    ):
        UdpipeTokenizer.from_disk(tmp_path / "tokenizer")
    damaged = replace(own, model=own.model[:50])
    with pytest.raises(UserError, match="UDPipe cannot read this tokenizer: it is damaged"):
        list(damaged.split(["a"]))


def test_tokenizer_job_is_taken_over_and_made_again(tmp_path: Path) -> None:
    spec = UdpipeTokenizerSpec(settings=QUICK)
    train, dev = part("train"), part("dev")
    shares: list[float] = []

    def run(job: TrainingJob) -> bool:
        if job.is_kept:
            return False
        list(LocalExecutor(1).run([job.task], report=lambda name, share: shares.append(share)))
        return True

    job = tokenizer_job(spec, train, dev, tmp_path / "tokenizer")
    assert run(job)
    assert shares[-1] == 1
    assert job.seconds > 0
    # The same sentences and settings give the same bytes, whoever trains them.
    assert job.open().model == tokenizer().model
    assert not run(tokenizer_job(spec, train, dev, tmp_path / "tokenizer"))
    retagged = [replace(s, upos=("X",) * len(s)) for s in train]
    assert not run(tokenizer_job(spec, retagged, dev, tmp_path / "tokenizer"))
    for other in (
        tokenizer_job(spec, train[1:], dev, tmp_path / "tokenizer"),
        tokenizer_job(spec, train, [], tmp_path / "tokenizer"),
        tokenizer_job(UdpipeTokenizerSpec(), train, dev, tmp_path / "tokenizer"),
    ):
        assert not other.is_kept
    (tmp_path / "tokenizer" / "tokenizer.udpipe").write_bytes(b"cut")
    assert not job.is_kept


def words_in(texts: list[str]) -> list[list[str]]:
    """The words of sentences in CoNLL-U."""
    rows = [[line.split("\t") for line in text.splitlines()] for text in texts]
    return [[row[1] for row in sentence if row[0].isdigit()] for sentence in rows]


def test_tokenizer_learns_from_train_and_keeps_the_best_epoch_on_dev_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    shown: list[list[list[str]]] = []

    def run_trainer(train: list[str], dev: list[str], *, tokenizer: str, **_: object) -> bytes:
        asked.append(tokenizer)
        shown.extend(map(words_in, (train, dev)))
        return b"model"

    monkeypatch.setattr("tk_spacy.tokenizing.training.run_trainer", run_trainer)
    for dev in (part("dev"), []):
        train_udpipe_tokenizer(part("train"), dev)
    train, dev = ([list(s.forms) for s in part(name)] for name in ("train", "dev"))
    assert shown == [train, dev, train, []]
    # Without dev it learns ever slower.
    with_dev, without = asked
    assert without == f"{with_dev};learning_rate_final=0.0005"


def test_tokenizer_is_made_from_its_name() -> None:
    made = make_tokenizer("udpipe:epochs=7:batch_size=20")
    assert made is not None
    assert (made.settings.epochs, made.settings.batch_size) == (7, 20)
    assert made.settings.to_options().startswith("epochs=7;dimension=")
    assert make_tokenizer("none") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gru", "unknown tokenizer 'gru'; choose from udpipe, none"),
        ("none:epochs=1", "unknown tokenizer 'none:epochs=1'"),
        ("udpipe:epochs", "'epochs' is no setting; write NAME=VALUE once for each, as in udpipe:"),
        ("udpipe:epochs=2:epochs=3", "'epochs=3' is no setting"),
        ("udpipe:epochs=-1", "epochs is -1; it must be from 1"),
        ("udpipe:layers=2", "unknown settings: layers; choose from epochs, dimension, batch_size"),
        ("udpipe:epochs=5000", "epochs is 5000; it must be from"),
        ("udpipe:dimension=32", "dimension is 32; choose from 16, 24, 64"),
    ],
)
def test_tokenizer_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        make_tokenizer(text)
    assert says in str(error.value)


def test_tokenizer_needs_a_text_to_learn_from() -> None:
    bare = [replace(s, misc=("_",) * len(s), comments=()) for s in part("train")]
    with pytest.raises(UserError, match="does not tell where words stand together"):
        UdpipeTokenizerSpec().check(bare)
    UdpipeTokenizerSpec().check(part("train"))
