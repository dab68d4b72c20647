"""What a model was made from: stored values of every version, and typed ones."""

from __future__ import annotations

from typing import Any

import pytest

from tk_spacy.reranker.provenance import Candidates, PartFacts, Provenance

PART = {"file": "a.conllu", "sentences": 3, "words": 20, "sha256": "00"}
STORED: dict[str, Any] = {
    "title": "UD_A",
    "tk_spacy": "0.1.0",
    "treebank": {"train": PART},
    "upstream": {"trained": True, "pipeline": None, "folds": 5},
    "views": {"biaffine-seed1": {"epochs": 3}, "file:turbo": {"scored": True, "files": {}}},
    "sources": ["biaffine-seed1", "turbo"],
    "candidates": {"k": 8, "search": "discrepancy", "files": {"dev": "d.conllu"}},
    "backward": None,
    "seed": 1,
    "paper_grid": False,
    "tuning_folds": None,
    "scores": {"dev": {}},
    "compressed": [{"keep": 5}],
    "of a later version": 1,
}


def test_what_is_stored_comes_back_as_it_was() -> None:
    made = Provenance.from_dict(STORED)
    assert made.to_dict() == STORED
    assert made.treebank == {
        "train": PartFacts(file="a.conllu", sentences=3, words=20, sha256="00")
    }
    assert made.candidates == Candidates(k=8, search="discrepancy", files={"dev": "d.conllu"})
    assert made.own_parsers == ["biaffine-seed1"]
    assert made.file_parsers == {"turbo": True}
    assert (made.parsers_trained, made.folds, made.seed) == (True, 5, 1)
    assert made.more == {"of a later version": 1}


def test_how_the_combination_was_tuned_is_stored_where_it_is_not_the_default() -> None:
    paper = {**STORED, "paper_grid": True, "raw_scores": True, "tuning_metric": "uas"}
    made = Provenance.from_dict(paper)
    assert (made.raw_scores, made.tuning_metric) == (True, "uas")
    assert made.to_dict() == paper
    assert Provenance.from_dict(STORED).tuning_metric == "las"


def test_a_model_of_one_spacy_parser_is_read() -> None:
    how = {"trained": True, "pipeline": None, "config": "a.cfg", "max_steps": 9, "folds": 5}
    made = Provenance.from_dict({"upstream": how, "backward": True})
    assert made.parsers == {"spacy": {"config": "a.cfg", "max_steps": 9, "backward": True}}
    assert (made.sources, made.folds) == ((), 5)
    given = Provenance.from_dict({"upstream": {**how, "trained": False, "pipeline": "fr_core"}})
    assert given.parsers == {"spacy": {"pipeline": "fr_core"}}
    ready = Provenance.from_dict({"upstream": {**how, "trained": False}})
    assert ready.parsers == {}


def test_a_model_that_spacy_trained_is_read() -> None:
    stored = {"search": "beam", "k": 12, "sources": ["spacy"], "backward": False}
    made = Provenance.from_dict(stored)
    assert made.candidates == Candidates(k=12, search="beam")
    assert (made.sources, made.backward, made.parsers) == (("spacy",), False, None)
    assert Provenance.from_dict({}) == Provenance()


@pytest.mark.parametrize("name", ["treebank", "upstream", "candidates", "views"])
@pytest.mark.parametrize("value", [None, 5, [1], {"a": 1}])
def test_strange_values_are_refused_or_missing(name: str, value: object) -> None:
    with pytest.raises((AttributeError, LookupError, TypeError, ValueError)):
        Provenance.from_dict({**STORED, name: value})
    kept = {key: stored for key, stored in STORED.items() if key != name}
    made = Provenance.from_dict({**STORED, name: value}, strict=False)
    assert made == Provenance.from_dict(kept)
