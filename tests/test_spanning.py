"""Spanning trees against all trees of short sentences and against slow twins on longer ones."""

from __future__ import annotations

import time

import numpy as np
import pytest
from reference_spanning import all_totals, best_tree, is_tree, total

from tk_spacy.trees.spanning import k_best_spanning_trees, max_spanning_tree

KINDS = ["real", "integer", "tenths", "negative", "sparse", "sparse integer", "huge"]
ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single", "any"])


def random_scores(rng, n, kind):
    """Scores of n words; column 0 and the diagonal hold what must never be looked at."""
    shape = (n + 1, n + 1)
    if "integer" in kind:
        scores = rng.integers(-2, 3, size=shape).astype(float)
    elif kind == "tenths":  # equal sums which differ once they are rounded
        scores = rng.integers(-3, 4, size=shape) * 0.1
    else:
        scores = rng.normal(size=shape)
    if kind == "negative":
        scores -= 100.0
    if kind == "huge":
        scores *= 10.0 ** rng.integers(-5, 6, size=shape)
    if "sparse" in kind:
        scores[rng.random(shape) < rng.uniform(0.3, 0.7)] = -np.inf
    scores[:, 0] = rng.choice([np.nan, np.inf, 5.0, -np.inf])
    np.fill_diagonal(scores, rng.choice([np.nan, np.inf, 5.0, -np.inf]))
    return scores


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_spanning_best_is_the_best_of_all_trees(rng, kind, single_root):
    without = 0
    for n in (1, 2, 3, 4, 5, 6) * 20:
        scores = random_scores(rng, n, kind)
        kept = scores.copy()
        expected = all_totals(scores, single_root=single_root)
        if not len(expected):
            without += 1
            with pytest.raises(ValueError, match="contain no tree"):
                max_spanning_tree(scores, single_root=single_root)
            continue
        heads = max_spanning_tree(scores, single_root=single_root)
        assert heads.shape == (n,)
        assert heads.dtype == np.int32
        assert is_tree(heads, single_root=single_root)
        assert total(scores, heads) == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(scores, kept)
    assert (without > 0) == ("sparse" in kind)


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_spanning_best_equals_recursive_contraction(rng, kind, single_root):
    for n in (7, 12, 20) if single_root else (7, 20, 40, 60):
        scores = random_scores(rng, n, kind)
        expected = best_tree(scores, single_root=single_root)
        if expected is None:
            with pytest.raises(ValueError, match="contain no tree"):
                max_spanning_tree(scores, single_root=single_root)
            continue
        heads = max_spanning_tree(scores, single_root=single_root)
        assert is_tree(heads, single_root=single_root)
        assert total(scores, heads) == pytest.approx(total(scores, expected), rel=1e-12)


def test_spanning_best_expands_nested_cycles():
    # Words 1 and 2, then 3, then 4 want each other; the root enters at 4.
    scores = np.full((5, 5), -100.0)
    scores[2, 1] = scores[1, 2] = 10.0
    scores[3, 1] = scores[2, 3] = 9.0
    scores[4, 3] = scores[1, 4] = 8.0
    scores[0, 4] = 1.0
    assert max_spanning_tree(scores).tolist() == [3, 1, 4, 0]


def test_spanning_best_of_equal_scores_is_always_the_same():
    scores = np.zeros((7, 7))
    assert max_spanning_tree(scores, single_root=False).tolist() == [0] * 6
    first = max_spanning_tree(scores)
    assert is_tree(first, single_root=True)
    assert all(np.array_equal(max_spanning_tree(scores), first) for _ in range(3))


def test_spanning_single_root_costs_no_precision():
    # Every word wants the root, and which one gets it hangs on 1e-14.
    scores = np.zeros((4, 4))
    scores[0, 1:] = 1.0
    scores[1, 2] = scores[1, 3] = 1e-14
    assert max_spanning_tree(scores).tolist() == [0, 1, 1]
    assert max_spanning_tree(scores, single_root=False).tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["real", "integer", "nested"])
def test_spanning_best_of_500_words_is_quick(rng, kind):
    if kind == "nested":  # every word wants its neighbour, which wants it back: 499 contractions
        places = np.arange(501)
        scores = -np.abs(places[:, None] - places) - 0.001 * np.minimum.outer(places, places)
    else:
        scores = random_scores(rng, 500, kind)
    start = time.perf_counter()
    heads = max_spanning_tree(scores)
    assert time.perf_counter() - start < 1.0
    assert is_tree(heads, single_root=True)


def check_k_best(scores, heads, totals, *, single_root):
    """What holds for every k-best list."""
    assert heads.dtype == np.int32
    assert len(heads) == len(totals)
    assert heads.shape[1] == len(scores) - 1
    assert len({tuple(row) for row in heads.tolist()}) == len(heads)
    assert (np.diff(totals) <= 0).all()
    for row, value in zip(heads, totals, strict=True):
        assert is_tree(row, single_root=single_root)
        assert total(scores, row) == value > -np.inf


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_spanning_k_best_are_the_best_of_all_trees(rng, kind, single_root):
    for n in (1, 2, 3, 4, 5) * 8:
        scores = random_scores(rng, n, kind)
        expected = all_totals(scores, single_root=single_root)
        if not len(expected):
            with pytest.raises(ValueError, match="contain no tree"):
                k_best_spanning_trees(scores, 3, single_root=single_root)
            continue
        for k in (1, 2, len(expected) // 2 + 1, len(expected) + 3):
            heads, totals = k_best_spanning_trees(scores, k, single_root=single_root)
            check_k_best(scores, heads, totals, single_root=single_root)
            np.testing.assert_allclose(totals, expected[:k], rtol=1e-12, atol=1e-10)


@ROOTS
@pytest.mark.parametrize("kind", KINDS)
def test_spanning_k_best_of_longer_sentences(rng, kind, single_root):
    for n in (10, 25, 60):
        scores = random_scores(rng, n, kind)
        try:
            heads, totals = k_best_spanning_trees(scores, 40, single_root=single_root)
        except ValueError:
            assert best_tree(scores, single_root=single_root) is None
            continue
        check_k_best(scores, heads, totals, single_root=single_root)
        assert heads[0].tolist() == max_spanning_tree(scores, single_root=single_root).tolist()
        fewer, _ = k_best_spanning_trees(scores, 7, single_root=single_root)
        if kind == "real":
            np.testing.assert_array_equal(fewer, heads[:7])
        # No tree that loses one arc of the best one is better than the second.
        for word in range(1, n + 1) if n == 10 else ():
            without = scores.copy()
            without[heads[0][word - 1], word] = -np.inf
            other = best_tree(without, single_root=single_root)
            if other:
                assert total(scores, other) <= totals[1] + 1e-12 * abs(totals[1])


def test_spanning_k_best_tail_outside_the_cycle():
    # Words 1 and 2 are a cycle of best arcs, entered at 1; the second best head of 2 is word 3.
    scores = np.full((4, 4), -50.0)
    scores[1, 2] = scores[2, 1] = 10.0
    scores[0, 3], scores[0, 1], scores[3, 2] = 5.0, 4.0, 9.0
    heads, totals = k_best_spanning_trees(scores, 3, single_root=False)
    assert heads.tolist() == [[2, 3, 0], [0, 1, 0], [0, 3, 0]]
    assert totals.tolist() == [24.0, 19.0, 18.0]


def test_spanning_k_best_same_tail_into_another_word_of_the_cycle():
    scores = np.full((3, 3), -np.inf)
    scores[1, 2] = scores[2, 1] = 10.0
    scores[0, 1], scores[0, 2] = 4.0, 3.0
    heads, totals = k_best_spanning_trees(scores, 9)
    assert heads.tolist() == [[0, 1], [2, 0]]
    assert totals.tolist() == [14.0, 13.0]


def test_spanning_k_best_of_equal_scores_are_all_trees():
    for n, count in ((4, 64), (5, 625)):  # n^(n-1) trees with a single root
        heads, totals = k_best_spanning_trees(np.full((n + 1, n + 1), 0.1), 700)
        check_k_best(np.full((n + 1, n + 1), 0.1), heads, totals, single_root=True)
        assert len(heads) == count


def test_spanning_accepts_what_becomes_a_float_matrix():
    assert max_spanning_tree([[0, 1], [0, 0]]).tolist() == [0]
    read_only = np.asfortranarray(np.arange(9, dtype=np.float32).reshape(3, 3))
    read_only.flags.writeable = False
    assert max_spanning_tree(read_only).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(4), r"scores have shape \(4,\), expected \[n\+1, n\+1\]"),
        (np.zeros((3, 4)), r"shape \(3, 4\)"),
        (np.zeros((1, 1)), r"shape \(1, 1\)"),
        ([[0, np.nan], [0, 0]], r"scores\[0, 1\] is nan, expected -inf or a number"),
        ([[0, 1, 1], [0, 0, np.inf], [0, 1, 0]], r"scores\[1, 2\] is inf"),
        ([[0, 1e301], [0, 0]], r"scores\[0, 1\] is 1e\+301"),
        ([[0, -np.inf], [0, 0]], "0 arcs contain no tree with one child of the root"),
    ],
)
def test_spanning_refuses(scores, message):
    with pytest.raises(ValueError, match=message):
        max_spanning_tree(scores)
    with pytest.raises(ValueError, match=message):
        k_best_spanning_trees(scores, 2)


def test_spanning_refuses_two_forced_roots():
    scores = np.array([[0, 1, 1], [0, 0, -np.inf], [0, -np.inf, 0]])
    assert max_spanning_tree(scores, single_root=False).tolist() == [0, 0]
    with pytest.raises(ValueError, match="2 arcs contain no tree with one child of the root"):
        max_spanning_tree(scores)


@pytest.mark.parametrize("k", [0, -3])
def test_spanning_refuses_k(k):
    with pytest.raises(ValueError, match=f"k is {k}, expected at least 1"):
        k_best_spanning_trees(np.zeros((3, 3)), k)
