"""Tags of one's own: predicted by jackknifing, scored, chosen for files."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path

import catalogue
import pytest
from memorising_tagger import MemorisedTags, MemorisingTagger
from trainings import treebank
from udtools import udeval

from tk_spacy.errors import UserError
from tk_spacy.evaluation.tags import score_tags
from tk_spacy.tagging.base import Tagger, Tags
from tk_spacy.tagging.jackknife import tag_treebank
from tk_spacy.tagging.kinds import all_kinds, get_kind, make_tagger, taggers
from tk_spacy.tagging.udpipe.settings import TaggerSettings
from tk_spacy.tagging.udpipe.tagger import place_of
from tk_spacy.tagging.udpipe.training import _curve, train_udpipe_tagger
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.utils.validation import check_choice
from tk_spacy.workflows.files.tagging import (
    BATCH,
    LEAST_RUN,
    MOST_AHEAD,
    TAG_CHOICES,
    FileTags,
)


def different(sentences: list[Sentence]) -> list[Sentence]:
    """Sentences with different words, so that what is known by heart is known of one alone."""
    return list({sentence.forms: sentence for sentence in sentences}.values())


def parts() -> dict[str, list[Sentence]]:
    train = different(load_treebank(treebank()["train"]))
    known = {s.forms for s in train}
    dev = [s for s in load_treebank(treebank()["dev"]) if s.forms not in known]
    return {"train": train, "dev": dev}


# Jackknifing


@pytest.mark.parametrize(("folds", "processes"), [(2, 1), (5, 1), (3, 2)])
def test_tagging_no_tagger_sees_what_it_tags(tmp_path: Path, folds: int, processes: int) -> None:
    gold = parts()
    spec = MemorisingTagger(diary=tmp_path / "diary")
    made = tag_treebank(gold, spec, workdir=tmp_path / "tags", folds=folds, processes=processes)
    for name, sentences in gold.items():
        assert [s.forms for s in made.parts[name]] == [s.forms for s in sentences]
        assert {tag for s in made.parts[name] for tag in s.upos} == {"X"}, name
        for mine, given in zip(made.parts[name], sentences, strict=True):
            assert mine.heads.tolist() == given.heads.tolist()
            assert (mine.deprels, mine.misc) == (given.deprels, given.misc)
    # The tagger that goes into the model knows all of train.
    assert [t.upos for t in made.tagger.tag(gold["train"])] == [s.upos for s in gold["train"]]
    records = [json.loads(line) for line in spec.diary.read_text(encoding="utf-8").splitlines()]
    seen = sorted((record["seen"] for record in records), key=lambda ids: -len(ids[0]))
    ids = [s.sent_id for s in gold["train"]]
    assert seen[0] == [ids, [s.sent_id for s in gold["dev"]]]
    left_out = [[i for i in ids if i not in set(train)] for train, _ in seen[1:]]
    # Each sentence is left out once, in blocks that stand together; dev is the whole one's alone.
    assert sorted(i for block in left_out for i in block) == sorted(ids)
    for block in left_out:
        start = ids.index(block[0])
        assert block == ids[start : start + len(block)]
    assert all(dev == [] for _, dev in seen[1:])


def test_tagging_what_is_not_train_is_tagged_by_the_tagger_of_all_of_train(tmp_path: Path) -> None:
    train = parts()["train"]
    # Sentences of train, of which each fold's tagger lacks one.
    known = [train[len(train) * fold // 3] for fold in range(3)]
    spec = MemorisingTagger(diary=tmp_path / "diary")
    gold = {"train": train, "dev": known, "test": known[::-1]}
    made = tag_treebank(gold, spec, workdir=tmp_path / "tags", folds=3, processes=1)
    for name in ("dev", "test"):
        assert [s.upos for s in made.parts[name]] == [s.upos for s in gold[name]]


def test_tagging_is_taken_over_and_made_again_where_it_must(tmp_path: Path) -> None:
    gold = parts()
    spec = MemorisingTagger(diary=tmp_path / "diary")

    def run(what: dict[str, list[Sentence]]) -> tuple[int, list[str]]:
        notes: list[str] = []
        spec.diary.write_text("", encoding="utf-8")
        tag_treebank(what, spec, workdir=tmp_path / "tags", folds=3, processes=1, note=notes.append)
        return len(spec.diary.read_text(encoding="utf-8").splitlines()), notes

    assert run(gold) == (4, [])
    trained, (note,) = run(gold)
    assert trained == 0
    assert note.endswith("4 of 4 taggers")
    # Another tag in the first sentence: only the tagger of the first fold did not see it.
    first = gold["train"][0]
    changed = replace(first, upos=("INTJ", *first.upos[1:]))
    trained, (note,) = run({**gold, "train": [changed, *gold["train"][1:]]})
    assert trained == 3
    assert note.endswith("1 of 4 taggers")
    # Dev is seen by the whole one alone.
    trained, (note,) = run({"train": [changed, *gold["train"][1:]], "dev": gold["dev"][:-1]})
    assert trained == 1
    assert note.endswith("3 of 4 taggers")
    (tmp_path / "tags" / "fold-02" / "memory" / "known.json").write_text("[]", encoding="utf-8")
    trained, _ = run({"train": [changed, *gold["train"][1:]], "dev": gold["dev"][:-1]})
    assert trained == 1


# Scores


def test_tagging_scores_equal_the_official_ones(tmp_path: Path) -> None:
    gold = load_treebank(treebank()["dev"])
    wrong = []
    for number, sentence in enumerate(gold):
        columns = [list(column) for column in Tags.of(sentence)]
        for word in range(number % 3, len(sentence), 4):
            columns[number % 4][word] = ("lemma", "X", "tag", "Case=Abl|NounClass=2")[number % 4]
        wrong.append(Tags(*map(tuple, columns)).put(sentence))
    files = [tmp_path / "gold.conllu", tmp_path / "wrong.conllu"]
    for path, sentences in zip(files, (gold, wrong), strict=True):
        write_conllu(path, sentences)
    with warnings.catch_warnings():  # it leaves its files open
        warnings.simplefilter("ignore", ResourceWarning)
        official = udeval.evaluate(*(udeval.load_conllu_file(str(path)) for path in files))
        gc.collect()
    found = score_tags(gold, wrong)
    assert found.words == sum(map(len, gold))
    for name, metric in (
        ("upos", "UPOS"), ("xpos", "XPOS"), ("ufeats", "UFeats"), ("lemmas", "Lemmas"),
    ):  # fmt: skip
        assert 0 < getattr(found, name) < 100
        assert getattr(found, name) == pytest.approx(100 * official[metric].f1), name


def test_tagging_scores_count_universal_features_alone() -> None:
    def tagged(feats: str, lemma: str) -> Sentence:
        return Sentence.from_columns(forms=["a"], upos=["X"], feats=[feats], lemmas=[lemma])

    for gold, given, right in (
        ("Case=Gen|Typo=Yes", "Case=Gen", 100), ("Case=Gen", "Case=Gen|NumForm=Digit", 100),
        ("Case=Gen", "Case=Acc", 0), ("_", "_", 100), ("_", "Case=Acc", 0), ("Case=Gen", "_", 0),
        ("Case=Gen|Number=Sing", "Case=Gen", 0), ("Case=Gen", "Case=Gen|Number=Sing", 0),
    ):  # fmt: skip
        assert score_tags([tagged(gold, "a")], [tagged(given, "a")]).ufeats == right
    assert score_tags([tagged("_", "_")], [tagged("_", "b")]).lemmas == 100
    assert score_tags([tagged("_", "b")], [tagged("_", "_")]).lemmas == 0
    with pytest.raises(ValueError, match="different sentences"):
        score_tags([tagged("_", "_")], [Sentence.from_columns(forms=["b"])])


def test_tags_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="lemmas has 1 values for a sentence of 2 words"):
        Tags(("a",), ("X",), ("_",), ("_",)).put(Sentence.from_columns(forms=["a", "b"]))


# The registry


def test_taggers_are_made_from_their_names() -> None:
    assert list(all_kinds())[:3] == ["bilstm", "udpipe", "spacy"]
    spec = make_tagger("spacy:max_steps=7", seed=3)
    assert (spec.kind, spec.name, spec.about()) == (
        "spacy", "spacy-max_steps7", {"max_steps": 7, "seed": 3},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("brill", "unknown tagger 'brill'; choose from bilstm, udpipe, spacy"),
        ("spacy:max_steps", "tagger 'spacy:max_steps': 'max_steps' is no setting"),
        ("spacy:max_steps=true", "max steps is True; it must be a whole number"),
        ("spacy:seed=5000000000", "seed is 5000000000; it must be from 0 to 4294967295"),
        ("spacy:steps=3", "tagger 'spacy:steps=3': unknown settings: steps; choose from max_steps"),
        ("spacy:max_steps=0", "max steps is 0; it must be from 1 to"),
        ("spacy:max_steps=x", "max steps is 'x'"),
        ("udpipe:models=3", "models is 3"),
        ("udpipe:model=1", "model"),
    ],
)
def test_taggers_are_refused_by_name(text: str, says: str) -> None:
    if text.startswith("udpipe"):
        pytest.importorskip("ufal.udpipe")
    with pytest.raises(UserError) as error:
        make_tagger(text)
    assert says in str(error.value)


def test_a_tagger_of_another_package_is_found() -> None:
    kind = replace(get_kind("spacy"), name="mine")
    taggers.register("mine", func=kind)
    try:
        assert make_tagger("mine:max_steps=2").about()["max_steps"] == 2
    finally:
        catalogue.REGISTRY.pop(("tk_spacy", "taggers", "mine"))


def test_udpipe_tagger_names_a_sentence_that_it_cannot_tag() -> None:
    given = Sentence.from_columns(forms=["a", "b"])
    assert place_of(given) == "'a b'"
    assert place_of(Sentence.from_columns(forms=["w"] * 11)) == repr("w " * 10 + "...")
    assert place_of(replace(given, path="a.conllu", line=7)) == "a.conllu:7"


def test_udpipe_tagger_keeps_the_curve_of_the_model_that_gives_the_tags() -> None:
    scores = [(1, 70.0), (2, 80.5), (1, 60.0), (2, 65.0)]  # of two models
    epochs = [{"epoch": number, "tags": tags, "lemmas": 9.0} for number, tags in scores]
    assert _curve(epochs) == {"of": "tags right on dev, %", "values": [70.0, 80.5]}
    assert _curve(epochs[:2])["values"] == [70.0, 80.5]


# Files


SENTENCE = Sentence.from_columns(
    forms=["a", "b"], lemmas=["A", "B"], upos=["NOUN", "VERB"], xpos=["n", "v"],
    feats=["Case=Nom", "_"],
)  # fmt: skip
OWN = Tags(("la", "lb"), ("DET", "ADJ"), ("d", "j"), ("Case=Acc", "Case=Gen"))


def file_tags(choice: str, *, columns: tuple[str, ...] = MemorisedTags({}).columns) -> FileTags:
    tagger = MemorisedTags({SENTENCE.forms: OWN}, columns)
    return FileTags(check_choice("tags", choice, TAG_CHOICES), lambda: tagger, learnt_own=True)


def blank(*names: str) -> Sentence:
    return replace(SENTENCE, **dict.fromkeys(names, ("_", "_")))


ALL = ("lemmas", "upos", "xpos", "feats")


@pytest.mark.parametrize(
    ("choice", "given", "expected", "note"),
    [
        ("gold", blank(*ALL), Tags.of(blank(*ALL)), None),
        ("own", SENTENCE, OWN, "LEMMA, UPOS, XPOS and FEATS by the model's own tagger"),
        ("own", blank(*ALL), OWN, "LEMMA, UPOS, XPOS and FEATS by the model's own tagger"),
        ("auto", SENTENCE, Tags.of(SENTENCE), "tags are the file's"),
        ("auto", blank(*ALL), OWN, "LEMMA, UPOS, XPOS and FEATS by the model's own tagger"),
        (
            "auto", blank("feats", "lemmas"),
            Tags(OWN.lemmas, SENTENCE.upos, SENTENCE.xpos, OWN.feats),
            "LEMMA and FEATS by the model's own tagger",
        ),
    ],
)  # fmt: skip
def test_tagging_of_a_file_by_choice(
    choice: str, given: Sentence, expected: Tags, note: str | None
) -> None:
    tags = file_tags(choice)
    (found,) = tags(iter([given]))
    assert Tags.of(found) == expected
    said = tags.note()
    assert said is None if note is None else said is not None and said.startswith(note)


def test_tagging_completes_words_without_tags() -> None:
    one = replace(SENTENCE, upos=("NOUN", "_"), xpos=("n", "_"), lemmas=("A", "_"))
    tags = file_tags("auto")
    found = list(tags(iter([SENTENCE, one])))
    assert Tags.of(found[0]) == Tags.of(SENTENCE)
    # The word without UPOS gets what it lacks; the other keeps what it has.
    assert Tags.of(found[1]) == Tags(
        ("A", "lb"), ("NOUN", "ADJ"), ("n", "j"), ("Case=Nom", "Case=Gen")
    )
    assert tags.note() == (
        "tags of 1 of 4 words without UPOS by the model's own tagger; all other tags are the file's"
    )


def test_tagging_completes_words_beside_whole_columns() -> None:
    one = replace(SENTENCE, upos=("NOUN", "_"), xpos=("n", "_"), feats=("_", "_"))
    tags = file_tags("auto")
    (found,) = tags(iter([one]))
    assert Tags.of(found) == Tags(("A", "B"), ("NOUN", "ADJ"), ("n", "j"), OWN.feats)
    assert tags.note() == (
        "FEATS and tags of 1 of 2 words without UPOS by the model's own tagger; all other tags are "
        "the file's"
    )


@pytest.mark.parametrize("missing", [ALL, ("feats",)])
def test_tagging_looks_ahead_at_a_bounded_number_of_sentences(missing: tuple[str, ...]) -> None:
    read = 0

    def stream() -> Iterator[Sentence]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield blank(*missing)

    found = file_tags("auto")(stream())
    assert Tags.of(next(found)).feats == OWN.feats
    assert read <= BATCH + LEAST_RUN


@dataclass
class CountedTags:
    """Gives every sentence OWN, and counts them."""

    columns: tuple[str, ...]
    tagged: int = 0

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        for _ in sentences:
            self.tagged += 1
            yield OWN


def completed(file: Sequence[Sentence], *columns: str) -> tuple[list[Tags], int, str | None]:
    """The tags of a file by "auto", how many sentences the tagger saw, and what is said."""
    tagger = CountedTags(columns or MemorisedTags({}).columns)
    tags = FileTags("auto", lambda: tagger, learnt_own=True)
    found = [Tags.of(sentence) for sentence in tags(iter(file))]
    return found, tagger.tagged, tags.note()


def test_tagging_is_decided_word_by_word_throughout_a_file() -> None:
    """However many sentences without tags come first, later ones keep theirs, and vice versa."""
    for bare, tagged in ((105, 300), (300, 105)):
        file = [blank(*ALL)] * bare + [SENTENCE] * tagged + [blank(*ALL)]
        found, seen, note = completed(file)
        assert found == [OWN] * bare + [Tags.of(SENTENCE)] * tagged + [OWN]
        assert seen == bare + 1
        assert note == (
            f"tags of {2 * seen} of {2 * len(file)} words without UPOS by the model's own tagger; "
            "all other tags are the file's"
        )


def test_tagging_calls_no_tagger_where_a_file_is_filled_by_nature() -> None:
    """XPOS of a treebank without it, a short sentence without FEATS, a lemma of the word "_"."""
    plain = blank("xpos")
    bare = replace(plain, feats=("_", "_"))
    mark = replace(plain, forms=("_", "b"), lemmas=("_", "B"))
    file = [bare, plain, plain, bare, bare, mark]
    found, seen, note = completed(file, "LEMMA", "UPOS", "FEATS")
    assert (found, seen) == ([Tags.of(sentence) for sentence in file], 0)
    assert note == "tags are the file's, not the model's own tagger's (--tags own takes those)"


def test_tagging_fills_lemmas_and_long_runs_without_features() -> None:
    no_lemma = replace(SENTENCE, lemmas=("A", "_"))
    run = LEAST_RUN // 2
    file = [SENTENCE, no_lemma] + [blank("feats")] * run + [SENTENCE]
    found, seen, note = completed(file)
    assert found[1] == Tags.of(SENTENCE)._replace(lemmas=("A", "lb"))
    assert found[2:-1] == [Tags.of(SENTENCE)._replace(feats=OWN.feats)] * run
    assert (found[0], found[-1], seen) == (*[Tags.of(SENTENCE)] * 2, run + 1)
    words = 2 * len(file)
    assert note == (
        f"LEMMA of 1 of {words} words and FEATS of {2 * run} of {words} words by the model's own "
        "tagger; all other tags are the file's"
    )
    # One sentence less: such a run may be so by nature.
    assert completed([*file[:2], *file[3:]])[0][2] == Tags.of(blank("feats"))


def test_tagging_takes_no_sentence_without_upos_for_the_end_of_a_run() -> None:
    """Those between tell nothing of a column: a run is as long as without them."""
    bare, short = blank(*ALL), blank("feats")
    kept, filled = Tags.of(short), Tags.of(SENTENCE)._replace(feats=OWN.feats)
    # Long enough only over the sentences without UPOS.
    run = [short, bare] * (LEAST_RUN // 2)
    found, _, _ = completed([SENTENCE, *run, SENTENCE])
    assert found[1:-1] == [filled, OWN] * (LEAST_RUN // 2)
    found, _, _ = completed([SENTENCE, *run[2:], SENTENCE])
    assert found[1:-1] == [kept, OWN] * (LEAST_RUN // 2 - 1)
    # A file's first words keep what they have where later ones have FEATS.
    assert completed([short, bare, SENTENCE])[0] == [kept, OWN, Tags.of(SENTENCE)]
    assert completed([short, bare])[0] == [filled, OWN]


@pytest.mark.parametrize("columns", [("feats",), ("xpos",), ("feats", "xpos")])
def test_tagging_looks_ahead_over_sentences_without_upos_up_to_a_bound(
    columns: tuple[str, ...],
) -> None:
    read = 0

    def stream() -> Iterator[Sentence]:
        nonlocal read
        for sentence in chain([blank(*columns)], repeat(blank(*ALL), 2000)):
            read += 1
            yield sentence

    found = file_tags("auto")(stream())
    # As if it were all that the file has.
    expected = Tags.of(SENTENCE)._replace(**{name: getattr(OWN, name) for name in columns})
    assert Tags.of(next(found)) == expected
    assert read <= BATCH + MOST_AHEAD
    assert len(list(found)) == 2000


def test_tagging_gives_only_what_the_tagger_knows() -> None:
    tags = file_tags("auto", columns=("UPOS",))
    (found,) = tags(iter([blank(*ALL)]))
    assert Tags.of(found) == Tags(("_", "_"), OWN.upos, ("_", "_"), ("_", "_"))
    assert tags.note() == "UPOS by the model's own tagger"


def test_tagging_without_a_tagger() -> None:
    def none() -> Tagger | None:
        return None

    assert next(iter(FileTags("auto", none)(iter([blank(*ALL)])))).upos == ("_", "_")
    with pytest.raises(UserError, match="tags is 'own', but the model has no tagger"):
        list(FileTags("own", none)(iter([SENTENCE])))
    with pytest.raises(UserError, match="tags is 'mine'; choose from auto, gold, own"):
        check_choice("tags", "mine", TAG_CHOICES)


@pytest.mark.parametrize(
    ("column", "name", "most"),
    [
        ("forms", "FORM", "ä" * 125),
        ("lemmas", "LEMMA", "ä" * 125),
        ("xpos", "UPOS, XPOS and FEATS", "X" + "ä" * 124),
        ("feats", "UPOS, XPOS and FEATS", "A=" + "b" * 247),
    ],
)
def test_udpipe_tagger_tells_what_it_cannot_store(column: str, name: str, most: str) -> None:
    def sentence(value: str) -> Sentence:
        values = {"forms": ("a", "b"), "upos": ("X", "X"), "lemmas": ("a", "b")}
        values |= {column: (value, "_" if column == "feats" else "b")}
        return replace(Sentence.from_columns(**values), path="t.conllu", line=7)

    spec = make_tagger("udpipe")
    with pytest.raises(UserError, match=rf"^t\.conllu:7: {name} .*: 251 bytes, and UDPipe"):
        spec.check([sentence(most + "c")])
    spec.check([sentence(most)])
    tagger = train_udpipe_tagger([sentence(most)] * 3, settings=TaggerSettings(iterations=1))
    (found,) = tagger.tag([sentence(most)])
    assert (found.xpos, found.feats) == (sentence(most).xpos, sentence(most).feats)
