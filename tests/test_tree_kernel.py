"""The dependency tree kernel against an enumeration of all sub feature trees as strings."""

from __future__ import annotations

import numpy as np
import pytest
from reference_subtrees import shared, sub_feature_trees, subtrees
from test_kernel import random_tree

from tk_spacy.kernels.forest import Forest
from tk_spacy.kernels.tree_kernel import MOST, TreeSupport, common_subtrees

HE_WON_THE_GAME_TODAY = [2, 0, 4, 2, 2]


def ragged(rows):
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return starts, np.array([i for row in rows for i in row], dtype=np.int32)


def random_features(rng, n_arcs, n_features=4):
    most = min(n_features, 8)
    return [
        sorted(rng.choice(n_features, size=rng.integers(0, most), replace=False).tolist())
        for _ in range(n_arcs)
    ]


def forest_of(trees):
    """Some trees of one sentence, with an arc number for each (head, word)."""
    heads = np.array(trees, dtype=np.int32)
    numbers = {}
    members = [
        [numbers.setdefault((head, word), len(numbers)) for word, head in enumerate(row, 1)]
        for row in heads.tolist()
    ]
    return Forest.make(heads, np.array(members, dtype=np.int32)), members, len(numbers)


def test_the_example_of_the_paper():
    # Four arcs, with two features each.  The print counts He <- won -> today, which it forbids.
    below = HE_WON_THE_GAME_TODAY
    below_the_root = [h for h in below if h != 0]
    found = [words for words in subtrees(below) if 2 not in words]  # without the root's own arc
    assert len(below_the_root) == 4
    assert len(found) == 11
    features = [["w", "p"]] * 5
    features[1] = []  # the arc from the root is no arc of the paper's tree
    assert sum(sub_feature_trees(below, features).values()) == 60
    forest, _, _ = forest_of([below])
    arcs = ragged([[2 * i, 2 * i + 1] if i != 1 else [] for i in range(5)])
    assert common_subtrees(forest, arcs, forest, arcs).sum() == 60


@pytest.mark.parametrize("seed", range(40))
def test_counts_what_enumeration_counts(seed):
    rng = np.random.default_rng(seed)
    trees, features = [], []
    for _ in range(2):
        n = int(rng.integers(1, 8))
        trees.append(random_tree(rng, n).tolist())
        features.append(random_features(rng, n))
    forests = [forest_of([tree])[0] for tree in trees]
    delta = common_subtrees(forests[0], ragged(features[0]), forests[1], ragged(features[1]))
    counted = [sub_feature_trees(*pair) for pair in zip(trees, features, strict=True)]
    assert delta[forests[0].trees[0]][:, forests[1].trees[0]].sum() == shared(*counted)


def test_a_forest_shares_what_trees_share():
    trees = [[2, 0, 4, 2, 2], [2, 0, 4, 2, 4], [2, 0, 2, 2, 2]]
    forest, members, _ = forest_of(trees)
    assert forest.trees.shape == (3, 6)
    # Leaves are one node; of the rest, what hangs on 4 and on 2 and on the root differs.
    assert forest.n_nodes == 1 + 3 - 1 + 3 + 3
    for row, nodes in zip(members, forest.trees, strict=True):
        for word in range(1, 6):
            node = nodes[trees[members.index(row)][word - 1]]
            span = slice(forest.starts[node], forest.starts[node + 1])
            assert row[word - 1] in forest.child_arcs[span]
            assert nodes[word] in forest.child_nodes[span]


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("since", "averaged"), [(0, False), (5, True)])
def test_scores_of_lists_are_those_of_their_trees(n_threads, since, averaged):
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, 6).tolist() for _ in range(5)]
    forest, members, n_arcs = forest_of(trees)
    features = random_features(rng, n_arcs)
    own = [
        sub_feature_trees(tree, [features[arc] for arc in arcs])
        for tree, arcs in zip(trees, members, strict=True)
    ]
    support, expected = TreeSupport(), np.zeros(len(trees))
    for number in range(12):
        pair = [random_tree(rng, int(rng.integers(2, 6))).tolist()]
        pair.append(random_tree(rng, len(pair[0])).tolist())
        other, arcs_of, n_other = forest_of(pair)
        other_features = random_features(rng, n_other)
        weight, mean = rng.integers(1, 5, size=2).tolist()
        coefficients = np.zeros(other.n_nodes)
        np.add.at(coefficients, other.trees[0], 1)
        np.add.at(coefficients, other.trees[1], -1)
        support.append(other, ragged(other_features), coefficients, weight=weight, averaged=mean)
        if number < since:
            continue
        for tree, arcs, sign in zip(pair, arcs_of, (1, -1), strict=True):
            found = sub_feature_trees(tree, [other_features[arc] for arc in arcs])
            factor = sign * (mean if averaged else weight)
            expected += [factor * shared(mine, found) for mine in own]
    out = np.zeros(forest.n_nodes)
    support.add_scores(
        forest, ragged(features), out, since=since, averaged=averaged, n_threads=n_threads
    )
    assert out[forest.trees].sum(axis=1).tolist() == expected.tolist()


def test_a_decay_weighs_each_arc():
    forest, _, _ = forest_of([[0, 1, 2]])
    arcs = ragged([[0], [1], [2]])
    # Three arcs in a chain: 3 of one arc, 2 of two, 1 of three.
    assert (
        common_subtrees(forest, arcs, forest, arcs, decay=0.5).sum() == 3 * 0.5 + 2 * 0.25 + 0.125
    )


def test_counts_beyond_all_bounds_stay_finite():
    n = 400
    forest, _, _ = forest_of([[0, *range(1, n)]])
    arcs = ragged([list(range(40))] * n)
    delta = common_subtrees(forest, arcs, forest, arcs)
    assert np.isfinite(delta).all()
    assert delta.max() == MOST


def test_refuses_what_does_not_fit():
    forest, _, _ = forest_of([[0, 1]])
    arcs = ragged([[0], [0]])
    with pytest.raises(ValueError, match="decay is 0, expected more than 0, 1 at most"):
        common_subtrees(forest, arcs, forest, arcs, decay=0)
    with pytest.raises(ValueError, match="names an arc beyond the 1 that have features"):
        common_subtrees(forest, ragged([[0]]), forest, arcs)
    for starts, ids, message in (
        ([0, 10**8, 2 * 10**8], [0, 0], r"starts\[1\] is 100000000, expected numbers from 0 to 2"),
        ([0, 2, 1], [0, 0], r"starts\[2\] is 1, expected numbers"),
        ([1, 2, 2], [0, 0], r"starts\[0\] is 1, expected 0"),
        ([], [], "starts are empty"),
        ([0, 1, 2], [0, -1], r"ids\[1\] is -1, expected 0"),
    ):
        bad = np.array(starts, dtype=np.int32), np.array(ids, dtype=np.int32)
        with pytest.raises(ValueError, match=message):
            common_subtrees(forest, arcs, forest, bad)
        with pytest.raises(ValueError, match=message):
            TreeSupport().append(forest, bad, np.ones(3), weight=1.0, averaged=1.0)
