"""Lists with changed labels, against all changes sorted."""

from __future__ import annotations

import numpy as np
import pytest

from tk_spacy.parsers.biaffine.label_changes import with_changed_labels


def plain_list(heads, totals, labels, margins, k, quota):
    """All changes, the best of them, and the best of these and the trees."""
    changes = []
    for tree, word in np.ndindex(heads.shape):
        head = heads[tree, word]
        score = totals[tree] - margins[word, head]
        if labels[word, head, 1] >= 0 and np.isfinite(score):
            changes.append((-score, tree, word))
    changes = sorted(changes)[:quota]
    rows = [(-total, 0, tree, -1) for tree, total in enumerate(totals)]
    rows += [(score, 1 + place, tree, word) for place, (score, tree, word) in enumerate(changes)]
    found = []
    for score, _, tree, word in sorted(rows)[:k]:
        own = [int(labels[w, head, int(w == word)]) for w, head in enumerate(heads[tree].tolist())]
        found.append((heads[tree].tolist(), own, -score))
    return found


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (3, 2), (9, 6)])
def test_lists_are_those_of_all_changes_sorted(m: int, n: int, equal: bool) -> None:
    rng = np.random.default_rng([m, n])
    for k in (1, 2, 5, 9, 40):
        for quota in (0, 1, 3, 100):
            heads = rng.integers(0, n + 1, size=(m, n)).astype(np.int32)
            totals = -np.sort(rng.exponential(2, size=m))
            labels = rng.integers(-1, 6, size=(n, n + 1, 2)).astype(np.int32)
            margins = rng.exponential(2, size=(n, n + 1))
            if equal:
                totals, margins = np.round(totals), np.round(margins)
            margins[rng.random(margins.shape) < 0.1] = np.inf
            found = with_changed_labels(heads, totals, labels, margins, k, quota)
            rows = list(zip(*(array.tolist() for array in found), strict=True))
            assert rows == plain_list(heads, totals, labels, margins, k, quota)
            assert [array.dtype for array in found] == [np.int32, np.int32, np.float64]


def test_scores_that_are_no_numbers_change_nothing() -> None:
    heads = np.zeros((1, 2), np.int32)
    labels, margins = np.ones((2, 3, 2), np.int32), np.full((2, 3), np.nan)
    _, _, scores = with_changed_labels(heads, np.zeros(1), labels, margins, 5, 5)
    assert scores.tolist() == [0]


def test_wrong_arrays_are_refused() -> None:
    heads, totals = np.zeros((1, 2), np.int32), np.zeros(1)
    labels, margins = np.zeros((2, 3, 2), np.int32), np.zeros((2, 3))
    with pytest.raises(ValueError, match="heads holds 3, expected 0 to 2"):
        with_changed_labels(heads + 3, totals, labels, margins, 1, 1)
    with pytest.raises(ValueError, match="0 of 1 trees"):
        with_changed_labels(heads, totals, labels, margins, 0, 1)
    with pytest.raises(ValueError, match="0 trees"):
        with_changed_labels(heads[:0], totals[:0], labels, margins, 1, 1)
    with pytest.raises(ValueError, match="margins must be"):
        with_changed_labels(heads, totals, labels, margins.T, 1, 1)
