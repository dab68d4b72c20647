"""The labels of arcs in compiled loops, against plain statements of what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tk_spacy.parsers.biaffine.label_choice import (
    choose_labels,
    distinct_arcs,
    pick_labels,
    shift_arc_labels,
    shift_labels,
)
from tk_spacy.parsers.biaffine.softmax import log_sums

M, H = 4, 5


def forbidding(n_labels: int) -> np.ndarray:
    """The last label is the root's alone, the first one no other's."""
    forbidden = np.zeros((2, n_labels), dtype=np.uint8)
    if n_labels > 1:
        forbidden[0, :-1] = 1
        forbidden[1, -1] = 1
    return forbidden


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 9, 40])
def test_log_probabilities_are_those_of_the_labels_that_may_be(
    n_labels: int, restricted: bool
) -> None:
    rng = np.random.default_rng(n_labels)
    scores = (4 * rng.standard_normal((M, n_labels, H))).astype(np.float32)
    forbidden = forbidding(n_labels) if restricted else np.zeros((2, n_labels), np.uint8)
    shifted = shift_labels(scores, forbidden)
    found = shifted - log_sums(shifted)[:, :, None]
    for m, h in np.ndindex(M, H):
        kept = np.flatnonzero(forbidden[min(h, 1)] == 0)
        own = scores[m, kept, h].astype(np.float64)
        expected = np.full(n_labels, -np.inf)
        expected[kept] = own - own.max() - np.log(np.exp(own - own.max()).sum())
        np.testing.assert_allclose(found[m, h], expected, rtol=1e-5, atol=1e-6)
        heads = np.full(M, h)
        alone = shift_arc_labels(np.ascontiguousarray(scores[:, :, h]), heads, forbidden)
        np.testing.assert_array_equal(alone[m], shifted[m, h])


def test_sums_keep_the_shape_of_their_rows() -> None:
    zeros = np.zeros((2, 3, 4), dtype=np.float32)
    np.testing.assert_allclose(log_sums(zeros), np.full((2, 3), np.log(4)), rtol=1e-6)
    assert log_sums(zeros[0, 0]).shape == ()
    assert log_sums(zeros[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="rows of no number"):
        log_sums(np.zeros((3, 0), np.float32))


@pytest.mark.parametrize("n_labels", [1, 2, 5])
@pytest.mark.parametrize("second", [False, True])
def test_chosen_labels_are_the_first_of_the_best_two(n_labels: int, second: bool) -> None:
    rng = np.random.default_rng(n_labels)
    scores = rng.integers(0, 4, size=(6, 7, n_labels)).astype(np.float32)  # many are equal
    scores[rng.random(scores.shape) < 0.3] = -np.inf
    scores[..., rng.integers(n_labels)] = 2.5
    less = rng.integers(0, 3, size=(6, 7)).astype(np.float32)
    totals, margins = np.ones((6, 7)), np.zeros((6, 7))
    labels = np.full((6, 7, 2), -1, np.int32)
    choose_labels(scores, less, totals, labels, margins, second=second)
    for place in np.ndindex(6, 7):
        best, *others = np.argsort(-scores[place], kind="stable").tolist()
        others = [i for i in others if scores[place][i] > -np.inf]
        assert totals[place] == 1 + scores[place][best] - less[place]
        assert labels[place].tolist() == [best, others[0] if second and others else -1]
        least = scores[place][best] - scores[place][others[0]] if second and others else 0
        assert margins[place] == least


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 6), (30, 6), (4, 40)])
def test_distinct_arcs_are_those_of_the_trees_in_order(k: int, n: int) -> None:
    heads = np.random.default_rng([k, n]).integers(0, n + 1, size=(k, n)).astype(np.int32)
    modifiers, governors, arcs = distinct_arcs(heads)
    expected = sorted({(word, head) for tree in heads.tolist() for word, head in enumerate(tree)})
    assert list(zip(modifiers.tolist(), governors.tolist(), strict=True)) == expected
    for tree, word in np.ndindex(k, n):
        assert expected[arcs[tree, word]] == (word, heads[tree, word])


def test_picked_labels_are_not_numbers_where_unknown() -> None:
    scores = np.arange(6, dtype=np.float32).reshape(2, 3)
    arcs = np.array([[0, 1], [1, 0]], dtype=np.int32)
    labels = np.array([[2, 0], [-1, 1]])
    found = pick_labels(scores, np.array([0.5, 1], np.float32), arcs, labels)
    np.testing.assert_array_equal(found, np.array([[1.5, 2], [np.nan, 0.5]], np.float32))


FLOATS = np.zeros((2, 3), np.float32)
REFUSED: dict[str, tuple[str, Callable[[], object]]] = {
    "nothing to choose from": (
        "no label to choose from",
        lambda: choose_labels(
            np.zeros((2, 2, 0), np.float32), np.zeros((2, 2), np.float32), np.zeros((2, 2)),
            np.zeros((2, 2, 2), np.int32), np.zeros((2, 2)), second=True,
        ),
    ),
    "all labels forbidden": (
        "no label to choose from",
        lambda: shift_labels(np.zeros((1, 2, 2), np.float32), np.array([[0, 0], [1, 1]])),
    ),
    "masks of other labels": (
        "forbidden must be",
        lambda: shift_labels(np.zeros((1, 2, 2), np.float32), np.zeros((2, 3), np.uint8)),
    ),
    "heads of other arcs": (
        "heads must be",
        lambda: shift_arc_labels(FLOATS, np.zeros(3, np.int64), np.zeros((2, 3), np.uint8)),
    ),
    "a head beyond the sentence": (
        "heads holds 3, expected 0 to 2", lambda: distinct_arcs(np.array([[3, 0]], np.int32))
    ),
    "a head before the root": (
        "heads holds -1, expected 0 to 2", lambda: distinct_arcs(np.array([[0, -1]], np.int32))
    ),
    "an arc beyond the scores": (
        "arcs holds 2, expected 0 to 1",
        lambda: pick_labels(FLOATS, FLOATS[:, 0], np.array([[2]]), np.array([[0]])),
    ),
    "a label beyond the scores": (
        "labels hold 3, expected less than 3",
        lambda: pick_labels(FLOATS, FLOATS[:, 0], np.array([[1]]), np.array([[3]])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arrays_are_refused(name: str) -> None:
    message, call = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()
