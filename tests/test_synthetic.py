"""Synthetic sentences and files: same bytes, validity, noise, reading back."""

import subprocess
import sys
from collections import Counter
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank
from tk_spacy.treebank.synthetic import generate, write_treebank

N = 1500
# Of the first 200 sentences of seed 0; a change of the grammar or the lexicon changes it.
DIGEST = "8be74953b89224b1a7d8f3bbb8d9359c4b04c44b97a82c86ebc958f4b9b3c51c"


@pytest.fixture(scope="module")
def clean() -> list[Sentence]:
    return list(generate(N, seed=0, noise=0.0))


def nonprojective_arcs(heads: list[int]) -> int:
    count = 0
    for word, head in enumerate(heads, 1):
        for between in range(min(word, head) + 1, max(word, head)) if head else ():
            above = between
            while above not in (0, head):
                above = heads[above - 1]
            if above != head:
                count += 1
                break
    return count


def text_of(sentences) -> str:
    return "".join(sentence.to_conllu() for sentence in sentences)


# --- sameness ---


def test_synthetic_same_seed_gives_same_bytes():
    text = text_of(generate(200, seed=0))
    assert text == text_of(islice(generate(10**9, seed=0), 200))
    assert sha256(text.encode()).hexdigest() == DIGEST


def test_synthetic_does_not_depend_on_hash_seed():
    program = (
        "from hashlib import sha256; from tk_spacy.treebank.synthetic import generate; "
        "text = ''.join(s.to_conllu() for s in generate(200)); "
        "print(sha256(text.encode()).hexdigest())"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == DIGEST


def test_synthetic_seeds_share_the_language_not_the_sentences(clean):
    other = list(generate(N, seed=1, noise=0.0))
    mine, others = ({s.comments[1] for s in part} for part in (clean, other))
    assert len(mine & others) < 3
    frequent = Counter(form.lower() for s in clean for form in s.forms).most_common(200)
    known = {form.lower() for s in other for form in s.forms}
    assert sum(form in known for form, _ in frequent) >= 195
    foreign = list(generate(200, seed=1, lexicon_seed=5))
    words = {form.lower() for s in foreign for form in s.forms}
    assert len(words & known) < len(words) / 5


# --- validity ---


def test_synthetic_sentences_are_valid(clean):
    for sentence in [*clean, *generate(300, seed=3, noise=0.5)]:
        assert check_tree(sentence.heads) is None
        root = int(np.flatnonzero(sentence.heads == 0)[0])
        assert [d == "root" for d in sentence.deprels] == [i == root for i in range(len(sentence))]
        for column in (sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos):
            assert "_" not in column
        assert "_" not in sentence.deprels
        for column in sentence.feats:
            names = [item.partition("=")[0] for item in column.split("|")]
            assert names == sorted(set(names), key=str.lower)
        assert sentence.forms[0][0].isupper() or not sentence.forms[0][0].isalpha()
        assert sentence.forms[-1] in (".", "!", "?")


def test_synthetic_text_comment_is_the_spelled_sentence(clean):
    for number, sentence in enumerate(clean, 1):
        pieces = zip(sentence.forms, sentence.misc, strict=True)
        text = "".join(form + " " * (misc != "SpaceAfter=No") for form, misc in pieces)
        assert sentence.comments == (
            f"# sent_id = synthetic-0-{number}",
            f"# text = {text.strip()}",
        )
        assert " ," not in text
        assert ",," not in text
        assert ",." not in text


def test_synthetic_lengths_and_inventory(clean):
    lengths = [len(sentence) for sentence in clean]
    assert 12 <= np.mean(lengths) <= 16
    assert min(lengths) >= 3
    assert max(lengths) <= 40
    assert max(lengths) > 30
    assert min(lengths) < 6
    assert set("NOUN PROPN VERB ADJ ADV ADP DET PRON CCONJ SCONJ AUX NUM PUNCT".split()) == {
        tag for sentence in clean for tag in sentence.upos
    }
    labels = Counter(label for sentence in clean for label in sentence.deprels)
    expected = (
        "root nsubj obj iobj obl nmod amod det case advmod conj cc mark advcl acl acl:relcl ccomp "
        "xcomp aux cop punct nummod appos flat"
    )
    assert set(labels) == set(expected.split())
    assert min(labels.values()) > 50


def test_synthetic_word_frequencies_are_zipfian(clean):
    counts = Counter(
        lemma
        for sentence in clean
        for lemma, tag in zip(sentence.lemmas, sentence.upos, strict=True)
        if tag == "NOUN"
    )
    ranked = [count for _, count in counts.most_common()]
    assert sum(ranked[:50]) > 0.4 * sum(ranked)
    assert len(ranked) > 450


def test_synthetic_share_of_nonprojective_arcs(clean):
    for sentences in (clean, list(generate(N, seed=4, noise=0.03))):
        arcs = sum(len(sentence) for sentence in sentences)
        crossed = sum(nonprojective_arcs(sentence.heads.tolist()) for sentence in sentences)
        assert 0.01 <= crossed / arcs <= 0.03


# --- noise ---


@pytest.mark.parametrize("rate", [0.03, 0.2])
def test_synthetic_noise_rate_and_kind(clean, rate):
    noisy = list(generate(N, seed=0, noise=rate))
    changed = Counter()
    words = 0
    for right, wrong in zip(clean, noisy, strict=True):
        assert (right.forms, right.lemmas, right.upos, right.xpos, right.comments) == (
            wrong.forms,
            wrong.lemmas,
            wrong.upos,
            wrong.xpos,
            wrong.comments,
        )
        for word, tag in enumerate(right.upos):
            kinds = [
                name
                for name in ("heads", "deprels", "feats")
                if getattr(right, name)[word] != getattr(wrong, name)[word]
            ]
            assert len(kinds) <= (tag != "PUNCT")
            words += tag != "PUNCT"
            changed.update(kinds)
    assert changed.total() / words == pytest.approx(rate, rel=0.1)
    assert min(changed.values()) > 0.15 * changed.total()


# --- files ---


def test_synthetic_files_round_trip(tmp_path: Path):
    paths = write_treebank(tmp_path / "new", train=120, dev=30, test=20, seed=7)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "dev.conllu",
        "test.conllu",
        "train.conllu",
    ]
    texts = []
    for name, size in (("train", 120), ("dev", 30), ("test", 20)):
        sentences = load_treebank(paths[name])
        assert len(sentences) == size
        assert sentences[0].sent_id == f"synthetic-{name}-1"
        assert text_of(sentences).encode() == paths[name].read_bytes()
        texts += [sentence.comments[1] for sentence in sentences]
    assert len(set(texts)) == len(texts)
    again = write_treebank(tmp_path / "again", train=120, dev=30, test=20, seed=7)
    assert all(paths[name].read_bytes() == again[name].read_bytes() for name in paths)


def test_synthetic_distinct_leaves_out_repeated_texts(monkeypatch):
    monkeypatch.setattr(
        "tk_spacy.treebank.synthetic.generator.LONGEST", 3
    )  # so that some are repeated
    plain = [sentence.comments[1] for sentence in generate(60, seed=5)]
    expected = list(dict.fromkeys(plain))
    assert len(expected) < len(plain)
    distinct = generate(len(expected), seed=5, distinct=True)
    assert [sentence.comments[1] for sentence in distinct] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_sentences": -1}, "n_sentences is -1, expected 0 or more"),
        ({"n_sentences": 1, "noise": 1.5}, "noise is 1.5, expected a share from 0 to 1"),
        ({"n_sentences": 1, "noise": float("nan")}, "noise is nan"),
    ],
)
def test_synthetic_refuses_impossible_numbers(arguments, message):
    with pytest.raises(ValueError, match=message):
        generate(**arguments)


def test_synthetic_refuses_negative_seeds_and_empty_parts(tmp_path: Path):
    with pytest.raises(ValueError, match="seed is -3, expected 0 or more"):
        next(generate(1, seed=-3))
    with pytest.raises(ValueError, match="dev is 0 sentences, expected 1 or more"):
        write_treebank(tmp_path / "none", dev=0)
    assert not (tmp_path / "none").exists()
