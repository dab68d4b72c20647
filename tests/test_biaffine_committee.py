"""Several networks as one biaffine parser: means of scores, learning apart, storage."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import spacy
from biaffine_parsers import NEW, QUICK, SENTENCES
from spacy.training import Example

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Joins
from tk_spacy.parsers.biaffine import parser as room
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.committee import members_of
from tk_spacy.parsers.biaffine.embedding import embedding_of
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.pipeline.tk_biaffine import add_biaffine
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32

TRAIN = SENTENCES[:60]
SHORT = replace(QUICK, epochs=3)


@functools.cache
def alone() -> list[BiaffineParser]:
    return [train_biaffine_parser(TRAIN, settings=replace(SHORT, seed=seed)) for seed in (3, 4)]


@functools.cache
def committee() -> BiaffineParser:
    return train_biaffine_parser(TRAIN, settings=replace(SHORT, seed=3, networks=2))


def test_networks_of_a_parser_are_those_that_learn_alone_with_the_next_seeds() -> None:
    joined = BiaffineParser.joined(alone())
    assert joined is not None
    assert joined.settings == committee().settings
    assert joined.to_files()["model"] == committee().to_files()["model"]
    assert committee().about["seeds"] == [3, 4]
    curves = [parser.about["curve"]["values"] for parser in alone()]
    assert committee().about["curve"]["values"] == pytest.approx(np.mean(curves, axis=0), abs=1e-5)


def test_scores_of_a_committee_are_the_means_of_its_networks() -> None:
    batch = Batch(NEW[:3])
    scores = committee().model.predict(batch)
    each = [parser.model.predict(batch) for parser in alone()]
    modifiers, heads = np.array([1, 2, 3]), np.array([0, 1, 1])
    for found, of_each in (
        (scores.arcs, [own.arcs for own in each]),
        (
            scores.label_scores(modifiers, heads),
            [own.label_scores(modifiers, heads) for own in each],
        ),
        (
            scores.all_label_scores(1, 2, 0, 3),
            [own.all_label_scores(1, 2, 0, 3) for own in each],
        ),
    ):
        np.testing.assert_allclose(found, (of_each[0] + of_each[1]) / 2, rtol=1e-6)
        assert not np.allclose(found, of_each[0])


def test_log_probabilities_of_a_committee_are_normalized_means() -> None:
    whole, first, second = (
        parser.arc_scores(NEW[:1])[0][:, 0] for parser in (committee(), *alone())
    )
    # The rest of the mean goes to the normalizer, which is never above 1: no arc gets less.
    assert (whole >= (first + second) / 2 - 1e-6).all()
    trees = next(committee().kbest(NEW[:1], k=5, inventory=LabelInventory()))
    (again,) = committee().score(NEW[:1], [trees])
    assert trees.scores[:, 0] == pytest.approx(again)


def test_a_stored_committee_is_the_same() -> None:
    again = BiaffineParser.from_bytes(committee().to_bytes())
    assert again.settings.networks == 2
    pairs = zip(again.parse(NEW), committee().parse(NEW), strict=True)
    assert all((a[0] == b[0]).all() and a[1] == b[1] for a, b in pairs)
    assert b"networks" not in alone()[0].to_files()["meta.json"]


def test_parsers_that_differ_in_more_than_the_seed_are_not_joined() -> None:
    other = train_biaffine_parser(TRAIN[:5], settings=replace(SHORT, epochs=1))
    assert isinstance(BiaffineParser, Joins)
    assert BiaffineParser.joined([alone()[0], other]) is None


def test_a_committee_in_a_pipeline_parses_and_is_not_trained_further() -> None:
    nlp = spacy.blank("xx")
    component = add_biaffine(nlp, committee())
    doc = doc_from_sentence(nlp.vocab, NEW[0])
    assert [token.dep_ for token in component(doc)] != [""] * len(doc)
    assert not component.is_trainable
    before = committee().to_bytes()
    gold = doc_from_sentence(nlp.vocab, NEW[0], with_tree=True)
    assert component.update([Example(doc, gold)]) == {"tk_biaffine": 0.0}
    assert committee().to_bytes() == before


def test_networks_of_the_same_treebank_look_words_up_in_one_vocabulary() -> None:
    again = BiaffineParser.from_bytes(committee().to_bytes())
    readers = [embedding_of(m).attrs["vocabulary"] for m in members_of(again.model)]
    assert readers[0] is readers[1]


def test_trees_are_the_same_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PARSED_ROWS", 60)
    calls = []
    real = room.answers
    monkeypatch.setattr(
        room, "answers", lambda asked, **more: calls.append(len(asked)) or real(asked, **more)
    )
    one, two = (list(committee().parse(NEW, n_threads=n)) for n in (1, 2))
    assert min(calls) > 2
    assert all((a[0] == b[0]).all() and a[1] == b[1] for a, b in zip(one, two, strict=True))
    lists = [
        list(committee().kbest(NEW, k=4, inventory=LabelInventory(), n_threads=n)) for n in (1, 2)
    ]
    assert all(a.scores.tolist() == b.scores.tolist() for a, b in zip(*lists, strict=True))


def test_networks_of_a_committee_look_words_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[int] = []
    encode_all = Vocabulary.encode_all

    def noting(self: Vocabulary, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        looked_up.append(len(sentences))
        return encode_all(self, sentences)

    parser = BiaffineParser.joined(alone())
    assert parser is not None
    monkeypatch.setattr(Vocabulary, "encode_all", noting)
    parser.model.predict(Batch(NEW[:3]))
    assert looked_up == [3]


def test_opened_parsers_of_the_same_words_share_their_vocabulary() -> None:
    first, second = (BiaffineParser.from_files(parser.to_files()) for parser in alone())
    assert first.vocabulary is second.vocabulary
    other = train_biaffine_parser(TRAIN[:10], settings=SHORT)
    assert BiaffineParser.from_files(other.to_files()).vocabulary is not first.vocabulary
