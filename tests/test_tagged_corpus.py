"""The corpus whose words are tagged by taggers that did not see them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from memorising_tagger import MemorisingTagger
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry

from tk_spacy.errors import UserError
from tk_spacy.pipeline import tagged_corpus
from tk_spacy.pipeline.tagged_corpus import REGISTERED, create_jackknifed_reader
from tk_spacy.spacy_io.gold import gold_sentences, tagged_sentences
from tk_spacy.tagging import kinds
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate


def distinct(n: int) -> list[Sentence]:
    """Sentences of which no two have the same words."""
    found = {sentence.forms: sentence for sentence in generate(3 * n, seed=4)}
    return list(found.values())[:n]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Taggers know by heart what they saw, and tag the rest X; gives the number of trainings."""
    diary = tmp_path / "diary"
    diary.touch()
    monkeypatch.setattr(kinds, "make_tagger", lambda text, seed: MemorisingTagger(diary=diary))
    tagged_corpus._tagged_file.cache_clear()
    return lambda: len(diary.read_text(encoding="utf-8").splitlines())


def read(path: Path, **more: Any) -> list[Any]:
    reader = registry.readers.get(REGISTERED)(path, processes=1, **more)
    return list(reader(spacy.blank("xx")))


def test_tagged_corpus_no_tagger_saw_what_it_tags(
    tmp_path: Path, memory: Callable[[], int]
) -> None:
    gold = distinct(12)
    write_conllu(tmp_path / "a.conllu", gold)
    examples = read(tmp_path / "a.conllu", folds=3)
    assert memory() == 3
    for example, sentence in zip(examples, gold, strict=True):
        assert [t.text for t in example.predicted] == list(sentence.forms)
        assert {t.pos_ for t in example.predicted} == {"X"}
        assert not example.predicted.has_annotation("DEP")
        assert tuple(t.pos_ for t in example.reference) == sentence.upos
        assert tuple(t.lemma_ for t in example.reference) == sentence.lemmas
    # Parsers learn from what the words are tagged with, taggers from what is right.
    met, right = gold_sentences(examples), tagged_sentences(examples)
    assert {tag for s in met for tag in s.upos} == {"X"}
    assert [s.upos for s in right] == [s.upos for s in gold]
    assert [s.heads.tolist() for s in met] == [s.heads.tolist() for s in gold]


@pytest.mark.parametrize("tagger", ["spacy:max_steps=1", "bilstm:epochs=1:steps=1"])
def test_tagged_corpus_leaves_chance_as_it_was(tmp_path: Path, tagger: str) -> None:
    """So that a training goes on as it would with the taggers of an earlier one."""
    path = tmp_path / "a.conllu"
    write_conllu(path, distinct(12))
    tagged_corpus._tagged_file.cache_clear()
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = random.Random(3).random(), np.random.RandomState(3).random()
    assert len(read(path, folds=2, tagger=tagger)) == 12
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


def test_tagged_corpus_trains_its_taggers_once(tmp_path: Path, memory: Callable[[], int]) -> None:
    path = tmp_path / "a.conllu"
    write_conllu(path, distinct(12))
    assert len(read(path, folds=2)) == len(read(path, folds=2)) == 12
    assert memory() == 2
    write_conllu(path, distinct(11))  # another file
    assert len(read(path, folds=2, workdir=tmp_path / "work")) == 11
    assert memory() == 4
    tagged_corpus._tagged_file.cache_clear()
    assert len(read(path, folds=2, workdir=tmp_path / "work")) == 11  # taken over
    assert memory() == 4
    assert [t.text for t in read(path, folds=2, limit=5)[4].predicted]
    assert len(read(path, folds=2, limit=5)) == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folds": 1}, "folds is 1; it must be 2 or more"),
        ({"limit": -1}, "limit is -1; it must be 0, for all sentences, or more"),
        ({"processes": 0}, "processes is 0; it must be 1 or more"),
        ({"tagger": "brill"}, "unknown tagger 'brill'; choose from bilstm, udpipe, spacy"),
        ({"tagger": "udpipe:iterations=0"}, "tagger 'udpipe:iterations=0': iterations is 0"),
    ],
)
def test_tagged_corpus_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        create_jackknifed_reader(None, **settings)
    assert message in str(error.value)


def test_tagged_corpus_files_that_cannot_be(tmp_path: Path) -> None:
    nlp, path = spacy.blank("xx"), tmp_path / "a.conllu"
    with pytest.raises(UserError, match="path is null; give it the CoNLL-U file"):
        list(create_jackknifed_reader(None)(nlp))
    with pytest.raises((UserError, OSError), match=r"a\.conllu"):
        list(create_jackknifed_reader(path)(nlp))
    write_conllu(path, distinct(2))
    with pytest.raises(UserError, match=r"a\.conllu: 2 sentences cannot be dealt into 5 folds"):
        list(create_jackknifed_reader(path)(nlp))
    untagged = Sentence.from_columns(forms=["a", "b"]).with_tree([0, 1], ["root", "x"])
    write_conllu(path, [untagged] * 6)
    with pytest.raises(UserError, match=r"a\.conllu: no word has UPOS"):
        list(create_jackknifed_reader(path)(nlp))


def test_taggers_learn_from_sentences_without_trees() -> None:
    nlp = spacy.blank("xx")
    reference = Doc(
        nlp.vocab,
        words=["the", "cat", "sat", "it", "ran"],
        pos=["DET", "NOUN", "VERB", "PRON", "VERB"],
        sent_starts=[True, False, False, True, False],
    )
    first, second = tagged_sentences([Example(nlp.make_doc("the cat sat it ran"), reference)])
    assert (first.forms, first.upos) == (("the", "cat", "sat"), ("DET", "NOUN", "VERB"))
    assert (second.forms, second.upos) == (("it", "ran"), ("PRON", "VERB"))
    with pytest.raises(UserError, match="the training examples hold no words"):
        tagged_sentences([])
