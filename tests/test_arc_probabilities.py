"""How likely parsers find the arcs of chosen trees, and what that is worth for confidence."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import spacy
from test_calibration import drawn_lists, odds
from test_cli import invoke
from trainings import biaffine_training, treebank

from tk_spacy.evaluation.reliability import risk_coverage_area
from tk_spacy.kbest.arc_probabilities import arc_probabilities
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.reranker import calibration as room
from tk_spacy.reranker.calibration import Calibration
from tk_spacy.reranker.decision import Decision
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.confidence_columns import read_confidence
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.workflows.model import REPORT_HTML, open_model

needs_sklearn = pytest.mark.skipif(not room.can_fit(), reason="scikit-learn is not installed")


class Scorer:
    """Finds the arcs of all sentences as likely as it is told."""

    def __init__(self, *probabilities):
        self._log = np.log(np.array(probabilities))

    def arc_scores(self, sentences):
        return [self._log[: len(sentence)] for sentence in sentences]


def test_arc_probabilities_are_the_mean_of_the_parsers_that_can_tell():
    ((sentence, _, _),) = drawn_lists(1, seed=1)
    nan = math.nan
    one = Scorer((0.5, 1.0), (0.25, 0.5), (nan, nan))
    two = Scorer((0.75, 0.5), (nan, 0.25), (nan, nan))
    (found,) = arc_probabilities([one, object(), None, two])([sentence])
    expected = [[0.625, 0.75], [0.25, 0.375], [nan, nan]]
    assert found == pytest.approx(np.array(expected), nan_ok=True)
    assert arc_probabilities([one])([]) == []
    assert arc_probabilities([object(), None]) is None


def arcs_of(lists, *, seed, worth):
    """Made-up probabilities of the best trees' arcs: higher where head, or label, is right."""
    generator = np.random.default_rng(seed)
    found = []
    for item in lists:
        row = int(item.final.argmax())
        heads, labels = (hits[row] for hits in room._right(item))
        values = generator.normal(1.0, 1.0, size=(len(heads), 2))
        values += worth * np.stack([heads, labels], axis=1)
        found.append(1 / (1 + np.exp(-values)))
    return found


@pytest.fixture(scope="module")
def informed():
    if not room.can_fit():
        pytest.skip("scikit-learn is not installed")
    fitted, dev = Calibration.fit(drawn_lists(400, seed=1)), drawn_lists(400, seed=2)
    return fitted.adjusted_to(dev, arcs_of(dev, seed=3, worth=3.0))


def test_arc_probabilities_make_the_unsure_words_the_wrong_ones(informed):
    new = drawn_lists(400, seed=5)
    arcs = arcs_of(new, seed=6, worth=3.0)
    worth = []
    for given in ([None] * len(new), arcs):
        said, right = [], []
        for item, own in zip(new, given, strict=True):
            said.append(informed.confidence(item.candidates, item.final, arcs=own).heads)
            right.append(room._right(item)[0][int(item.final.argmax())])
        worth.append(risk_coverage_area(np.concatenate(said), np.concatenate(right)))
    assert worth[1] < 0.6 * worth[0]


def test_arc_probabilities_weigh_by_their_log_odds(informed):
    assert set(informed.informed) == {"head", "label", "tree"}
    ((_, trees, final),) = drawn_lists(1, seed=7)
    arcs = np.array([[0.9, 0.5], [0.25, 1.0], [0.999, 0.75]])
    plain = replace(informed, adjusted={}, informed={}).confidence(trees, final)
    found = informed.confidence(trees, final, arcs=arcs)

    def expected(kind, before, p):
        model = informed.informed[kind]
        own = math.log((p + 1e-5) / (1 - p + 1e-5))
        value = model.weights["model"] * odds(before) + model.weights["parsers"] * own + model.bias
        return 1 / (1 + math.exp(-value))

    whole = 0.9 * 0.5 * 0.25 * 1.0 * 0.999 * 0.75
    assert found.tree == pytest.approx(expected("tree", plain.tree, whole))
    for kind, of_kind, before, column in (
        ("head", found.heads, plain.heads, 0),
        ("label", found.labels, plain.labels, 1),
    ):
        for word in range(3):
            least = max(found.tree, expected(kind, before[word], arcs[word, column]))
            assert of_kind[word] == pytest.approx(least)


def test_words_whose_arcs_nobody_knows_are_as_sure_as_without(informed):
    ((_, trees, final),) = drawn_lists(1, seed=8)
    without = informed.confidence(trees, final)
    unknown = informed.confidence(trees, final, arcs=np.full((3, 2), math.nan))
    assert unknown.heads.tolist() == without.heads.tolist()
    assert unknown.tree == without.tree
    one = np.array([[0.01, 0.01], [math.nan] * 2, [0.99, 0.99]])
    some = informed.confidence(trees, final, arcs=one)
    assert some.tree == without.tree  # one word of it is not known
    assert some.heads[1] == without.heads[1]
    assert some.heads[0] < without.heads[0]


def test_arc_probabilities_that_tell_nothing_true_are_not_weighed():
    if not room.can_fit():
        pytest.skip("scikit-learn is not installed")
    fitted, dev = Calibration.fit(drawn_lists(400, seed=1)), drawn_lists(400, seed=2)
    assert fitted.adjusted_to(dev, arcs_of(dev, seed=3, worth=-3.0)).informed == {}
    assert fitted.adjusted_to(dev).informed == {}


def test_stored_models_of_arc_probabilities_are_the_same(informed):
    stored = json.loads(json.dumps(informed.to_dict()))
    assert Calibration.from_dict(stored) == informed
    del stored["informed"]  # as earlier versions wrote it
    assert Calibration.from_dict(stored) == replace(informed, informed={})
    for strange, message in (
        ({"head": informed.adjusted["head"].to_dict()}, "features"),
        ({"head": {"bias": 0.0, "weights": {"model": 1.0, "parsers": -1.0}}}, "negative"),
        ({"words": {"bias": 0.0, "weights": {"model": 1.0, "parsers": 1.0}}}, "informed is of"),
    ):
        with pytest.raises(ValueError, match=message):
            Calibration.from_dict({**stored, "informed": strange})


# A whole training, its commands and its pipeline


@pytest.fixture(scope="module")
def model():
    if not room.can_fit():
        pytest.skip("scikit-learn is not installed")
    return biaffine_training()[0]


def test_page_of_a_training_tells_where_probabilities_were_adjusted(model):
    text = (model / REPORT_HTML).read_text(encoding="utf-8")
    assert "Probabilities on dev" in text
    assert "Probabilities on test" in text
    assert text.count("adjusted to the very trees that judge them") == 1


def decided_by(opened, sentences, inventory):
    parsers = opened.open_parsers(inventory)
    source = opened.in_order(parsers.sources)
    lists = list(source.candidates(sentences, k=parsers.k))
    pairs = list(zip(sentences, lists, strict=True))
    return list(opened.reranker.decisions(pairs)), arc_probabilities(parsers.sources)


def test_commands_and_pipeline_ask_the_parsers_of_the_chosen_trees(model, tmp_path):
    opened = open_model(model)
    assert opened.reranker.calibration.informed
    out = tmp_path / "out.conllu"
    done = invoke("rerank", model, treebank()["test"], "-o", out, "--confidence", "--threads", 1)
    assert done.exit_code == 0, done.output
    gold = load_treebank(treebank()["test"])
    decided, arcs = decided_by(opened, gold, LabelInventory())
    differ = 0
    nlp = spacy.load(model)
    docs = nlp.pipe([doc_from_sentence(nlp.vocab, s) for s in gold])
    for written, doc, (sentence, decision) in zip(load_treebank(out), docs, decided, strict=True):
        (own,) = arcs([decision.chosen(sentence)])
        trees, final, row = decision.candidates, decision.final, decision.row
        expected = opened.reranker.confidence(trees, final, row, arcs=own)
        without = opened.reranker.confidence(trees, final, row)
        differ += np.abs(expected.heads - without.heads).max() > 1e-3
        said = read_confidence(written)
        assert said.heads.tolist() == pytest.approx(expected.heads.tolist(), abs=6e-5)
        assert said.labels.tolist() == pytest.approx(expected.labels.tolist(), abs=6e-5)
        assert said.tree == pytest.approx(expected.tree, abs=6e-5)
        assert [t._.tk_head_prob for t in doc] == pytest.approx(expected.heads.tolist(), abs=1e-4)
    assert differ > len(gold) / 2


def test_confidences_of_many_are_those_of_each(informed):
    lists = drawn_lists(6, seed=11)
    decided = [
        (gold, Decision(trees, final, np.ones(len(trees), dtype=bool)))
        for gold, trees, final in lists
    ]
    asked = []

    def arcs(sentences):
        asked.extend(sentences)
        return [np.full((len(s), 2), 0.5) for s in sentences]

    reranker = open_model(biaffine_training()[0]).reranker
    reranker = replace(reranker, calibration=informed)
    found = reranker.confidences(decided, arcs)
    for (gold, decision), sure, sentence in zip(decided, found, asked, strict=True):
        trees, row = decision.candidates, decision.row
        assert sentence.heads.tolist() == trees.heads[row].tolist()
        assert sentence.deprels == trees.deprels(row)
        assert sentence.forms == gold.forms
        expected = informed.confidence(trees, decision.final, row, arcs=np.full((3, 2), 0.5))
        assert sure.heads.tolist() == expected.heads.tolist()
    assert replace(reranker, calibration=None).confidences(decided, arcs) == [None] * 6
    asked.clear()
    replace(reranker, calibration=replace(informed, informed={})).confidences(decided, arcs)
    assert asked == []  # what has no weight is not asked for
