"""Updates of the weights against a twin with explicit feature vectors, and what a step promises."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from reference_sampling import PlainLearner
from sampling_parsers import list_of, random_parser, random_sentence, random_tree

from tk_spacy.features.schema import FIRST_MORPH
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.search.updates import Learner
from tk_spacy.parsers.sampling.search.words import encode

BITS = 8
ORDERS = pytest.mark.parametrize("order", [1, 2, 3])


def rows(values):
    """Values of words 1..n as the learner wants them, with a root before and a boundary behind."""
    return np.array([0, *values, 0], dtype=np.int32)


class Trees:
    """Random trees over one sentence, for a learner of 2**BITS cells."""

    def __init__(self, seed, *, n=5, bits=BITS):
        self.rng = np.random.default_rng(seed)
        self.sentence = random_sentence(self.rng, n)
        self.parser = random_parser(self.rng, [self.sentence], bits=bits)
        self.fields = encode(self.parser.schema, [self.sentence]).fields
        self.n = n
        self.options = {
            "size": 1 << bits,
            "n_cells": len(self.parser.places),
            "morph_end": FIRST_MORPH + len(self.parser.schema.morph),
        }

    def draw(self):
        heads = random_tree(self.rng, self.n)
        labels = [3 if head == 0 else int(self.rng.integers(4, 6)) for head in heads]
        return tuple(heads.tolist()), tuple(labels)

    def update(self, learner, gold, other, loss):
        return learner.update(self.fields, *map(rows, gold), *map(rows, other), loss)

    def margin(self, learner, gold, other, order):
        """How far gold lies above the other tree, as a parser with these weights scores them."""
        parser = SamplingParser(
            schema=self.parser.schema,
            settings=replace(self.parser.settings, order=order),
            weights=learner.weights,
            pruner=self.parser.pruner,
            places=self.parser.places,
        )
        scores = parser.score([self.sentence], [list_of([gold, other], parser)], n_threads=1)[0]
        return scores[0] - scores[1]


@pytest.mark.parametrize(
    ("order", "crossing"), [(1, True), (2, True), (3, True), (1, False), (3, False)]
)
@pytest.mark.parametrize("C", [math.inf, 0.002])
def test_updates_equal_those_of_explicit_feature_vectors(order, crossing, C):
    trees = Trees(order)
    learner = Learner(order=order, C=C, crossing=crossing, **trees.options)
    plain = PlainLearner(order=order, C=C, crossing=crossing, **trees.options)
    sizes = []
    for _ in range(8):
        gold, other = trees.draw(), trees.draw()
        loss = float(sum(a != b for a, b in zip(gold[0], other[0], strict=True)))
        expected = plain.update(trees.fields, gold, other, loss)
        sizes.append(trees.update(learner, gold, other, loss))
        assert sizes[-1] == pytest.approx(expected, rel=1e-4, abs=1e-7)
        np.testing.assert_allclose(learner.weights, plain.weights, rtol=0, atol=1e-5)
        np.testing.assert_allclose(learner.averaged(), plain.averaged(), rtol=0, atol=1e-5)
    assert learner.steps == 8
    assert learner.updates == sum(size > 0 for size in sizes) > 4
    assert max(sizes) <= C
    assert (C < 1) == (C in sizes)


@ORDERS
def test_updates_make_the_margin_the_loss(order):
    # In a table large enough to keep features apart, and as the parser itself scores the trees.
    trees = Trees(20 + order, n=12, bits=18)
    learner = Learner(order=order, C=math.inf, **trees.options)
    for _ in range(10):
        gold, other = trees.draw(), trees.draw()
        loss = float(trees.rng.uniform(1, 9))
        before = trees.margin(learner, gold, other, order)
        weights = learner.weights.copy()
        step = trees.update(learner, gold, other, loss)
        if before >= loss:
            assert step == 0.0
            np.testing.assert_array_equal(learner.weights, weights)
        else:
            assert step > 0.0
            # Crossing arcs score in units of 1/4096, in which a margin is rounded.
            assert trees.margin(learner, gold, other, order) == pytest.approx(loss, abs=0.01)
        # What is right by now stays as it is.
        weights = learner.weights.copy()
        assert trees.update(learner, gold, other, loss - 0.01) == 0.0
        np.testing.assert_array_equal(learner.weights, weights)


@ORDERS
def test_updates_with_a_bound_go_part_of_the_way(order):
    trees = Trees(order, n=9, bits=18)
    learner = Learner(order=order, C=1e-4, **trees.options)
    gold, other = trees.draw(), trees.draw()
    margins = []
    for _ in range(3):
        assert trees.update(learner, gold, other, 5.0) == 1e-4
        margins.append(trees.margin(learner, gold, other, order))
    assert 0 < margins[0] < margins[1] < margins[2] < 5.0
    assert margins[2] == pytest.approx(3 * margins[0], abs=0.01)


def test_updates_of_equal_trees_change_nothing():
    trees = Trees(1)
    learner = Learner(order=3, C=math.inf, **trees.options)
    gold = trees.draw()
    assert trees.update(learner, gold, gold, 1.0) == 0.0
    assert not learner.weights.any()
    assert (learner.steps, learner.updates) == (1, 0)


def test_updates_for_a_wrong_label_leave_the_heads_alone():
    # The two trees differ in one label only: the features without it are in both.
    trees = Trees(2, n=6, bits=16)
    learner = Learner(order=1, C=math.inf, **trees.options)
    heads, labels = trees.draw()
    word = labels.index(4) if 4 in labels else labels.index(5)
    wrong = tuple(9 - name if m == word else name for m, name in enumerate(labels))
    assert trees.update(learner, (heads, labels), (heads, wrong), 0.5) > 0
    other = trees.draw()[0]
    unlabelled = [(heads, (3,) * 6), (other, (3,) * 6)]
    # But for a feature or two that share a cell with others.
    assert trees.margin(learner, *unlabelled, 1) == pytest.approx(0.0, abs=0.02)
    assert trees.margin(learner, (heads, labels), (heads, wrong), 1) == pytest.approx(0.5, abs=1e-4)


def test_average_is_the_mean_over_all_steps_those_without_change_too():
    trees = Trees(3)
    learner = Learner(order=2, C=math.inf, **trees.options)
    np.testing.assert_array_equal(learner.averaged(), 0 * learner.weights)
    stored = []
    gold, other = trees.draw(), trees.draw()
    for loss in (1.0, 0.5, 0.5, 3.0, 0.1):
        trees.update(learner, gold, other, loss)
        stored.append(learner.weights.copy())
    assert learner.updates == 2
    averaged = learner.averaged()
    assert averaged.dtype == np.float32
    np.testing.assert_allclose(averaged, np.mean(stored, axis=0), rtol=0, atol=1e-6)


def test_updates_of_the_pruner_make_the_margin_the_loss():
    # Its scores are not to be asked for: the next step with the same trees sees their margin.
    trees = Trees(4, n=8)
    options = {**trees.options, "n_cells": 1, "size": 1 << 16}
    learner = Learner(order=1, C=math.inf, **options)
    for _ in range(5):
        (gold, _), (other, _) = trees.draw(), trees.draw()
        nothing = (0,) * 8
        trees.update(learner, (gold, nothing), (other, nothing), 4.0)
        assert trees.update(learner, (gold, nothing), (other, nothing), 4.0 - 1e-4) == 0.0
        more = trees.update(learner, (gold, nothing), (other, nothing), 5.0)
        assert more > 0
        # The step for one more is 1 / |difference|**2: undo it, and the same size comes back.
        back = trees.update(learner, (other, nothing), (gold, nothing), -4.0)
        assert back == pytest.approx(more, rel=1e-3)


@pytest.mark.parametrize("size", [0, 1, 3, 1000])
def test_learner_refuses_sizes_that_are_no_powers_of_two(size):
    with pytest.raises(ValueError, match=f"size is {size}, expected a power of two"):
        Learner(size=size, n_cells=1, order=1, C=1.0, morph_end=4)
