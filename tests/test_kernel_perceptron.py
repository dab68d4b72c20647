"""Kernel perceptrons against perceptrons over explicit features, which they must equal."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from functools import cache

import numpy as np
import pytest
from reference_subtrees import combinations_of_arcs, shared, sub_feature_trees
from test_kernel import random_tree
from test_tree_kernel import forest_of, ragged, random_features

from tk_spacy.selection.basic import ArcLists
from tk_spacy.selection.perceptron import (
    Committee,
    PolynomialModel,
    TreeModel,
    train_perceptron,
    voted,
)

N_FEATURES = 6


def random_lists(seed, n_lists, *, n_trees=4, n_features=N_FEATURES):
    """Lists, and for each candidate the features of its arcs."""
    rng = np.random.default_rng(seed)
    lists, trees = [], []
    for _ in range(n_lists):
        n = int(rng.integers(2, 6))
        heads = [random_tree(rng, n).tolist() for _ in range(n_trees)]
        _, members, n_arcs = forest_of(heads)
        features = random_features(rng, n_arcs, n_features)
        lists.append(
            ArcLists(np.array(heads, np.int32), np.array(members, np.int32), *ragged(features))
        )
        trees.append(
            [(h, [features[arc] for arc in m]) for h, m in zip(heads, members, strict=True)]
        )
    return lists, trees, rng.integers(0, n_trees, size=n_lists).tolist()


def explicit(trees, oracles, kernel, iterations):
    """The perceptron of the paper with whole kernel sums; returns the averaged scorer."""
    support = []
    total, step = iterations * len(trees), 0
    for _ in range(iterations):
        for candidates, oracle in zip(trees, oracles, strict=True):
            step += 1
            scores = [sum(w * kernel(tree, s) for s, w, _ in support) for tree in candidates]
            best = scores.index(max(scores))
            if candidates[best][0] != candidates[oracle][0]:
                share = (total - step + 1) / total
                support += [(candidates[oracle], 1, share), (candidates[best], -1, -share)]
    return lambda tree: sum(a * kernel(tree, s) for s, _, a in support), len(support) // 2


def arc_kernel(degree):
    def kernel(a, b):
        return sum((len(set(x) & set(y)) + 1) ** degree for x in a[1] for y in b[1])

    return kernel


def whole_kernel(a, b):
    return (shared(*(Counter(f for arc in tree[1] for f in arc) for tree in (a, b))) + 1) ** 2


def subtree_kernel(a, b):
    return shared(*(patterns(str(tree)) for tree in (a, b)))


@cache
def patterns(tree):
    return sub_feature_trees(*literal_eval(tree))


CASES = {
    "quadratic": (lambda: PolynomialModel(N_FEATURES, 2), arc_kernel(2)),
    "biquadratic": (lambda: PolynomialModel(N_FEATURES, 4), arc_kernel(4)),
    "whole": (lambda: PolynomialModel(N_FEATURES, 2, whole_trees=True), whole_kernel),
    "tree": (TreeModel, subtree_kernel),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_equals_the_perceptron_in_the_explicit_space(name, n_threads):
    make, kernel = CASES[name]
    lists, trees, oracles = random_lists(1, 70)  # more than one chunk
    model = make()
    updates = train_perceptron(model, lists, oracles, iterations=2, n_threads=n_threads)
    scorer, expected = explicit(trees, oracles, kernel, 2)
    assert updates == expected > 20
    new, new_trees, _ = random_lists(2, 6)
    found = model.scores([model.prepare(arcs) for arcs in new], averaged=True)
    for scores, candidates in zip(found, new_trees, strict=True):
        whole = np.array([scorer(tree) for tree in candidates])
        # What all candidates share is left out.
        assert np.allclose(scores - scores[0], whole - whole[0], rtol=1e-9, atol=1e-9)


def test_arcs_of_degree_two_see_pairs():
    a = combinations_of_arcs([["x", "y"]], degree=2)
    assert a == Counter({("x",): 1, ("y",): 1, ("x", "y"): 1})


def test_parts_learn_apart_and_vote():
    lists, _, oracles = random_lists(4, 23)
    committee = Committee.train(
        lambda: PolynomialModel(N_FEATURES, 2), lists, oracles, parts=3, iterations=2
    )
    assert len(committee.models) == 3
    for model, part in zip(
        committee.models, (slice(0, 8), slice(8, 15), slice(15, 23)), strict=True
    ):
        alone = PolynomialModel(N_FEATURES, 2)
        train_perceptron(alone, lists[part], oracles[part], iterations=2)
        for arcs, scores in zip(lists, committee.scores(lists), strict=True):
            (own,) = alone.scores([alone.prepare(arcs)], averaged=True)
            assert own.tolist() == scores[committee.models.index(model)].tolist()


def test_a_vote_goes_to_the_first_of_equals():
    assert voted(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]])) == 0
    assert voted(np.array([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0], [0.0, 5.0, 1.0]])) == 1
