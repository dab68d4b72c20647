"""Trees and the same trees with one label changed in one list, best first."""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range


def with_changed_labels(heads, totals, labels, margins, k, quota):
    """The k best of trees and of trees with one label changed: heads, labels and scores.

    heads: int32[m, n], 0..n, m >= 1, best first.  totals: float64[m], their scores, none larger
        than the one before.
    labels: int32[n, n + 1, 2], the best label of each arc and the second best (negative for none).
    margins: float64[n, n + 1], by how much the second best is worse.
    quota: trees with a changed label, at most, the best ones.
    Of equal scores, trees as they are come first, and others in the order of trees and words.
    Returns int32[j, n], int32[j, n] and float64[j], j <= k.  Raises TypeError or ValueError for
    other arrays.
    """
    heads = checked("heads", heads, np.int32, None, None)
    m, n = heads.shape
    checked_range("heads", heads, 0, n)
    totals = checked("totals", totals, np.float64, m)
    labels = checked("labels", labels, np.int32, n, n + 1, 2)
    margins = checked("margins", margins, np.float64, n, n + 1)
    if m < 1 or k < 1:
        raise ValueError(f"{k} of {m} trees, expected at least 1 of at least 1")
    quota = max(0, min(quota, k, m * n))
    changed, places = np.empty(quota), np.empty(quota, dtype=np.int64)
    cdef Py_ssize_t limit = k
    cdef Py_ssize_t kept = _best_changes(heads, totals, labels, margins, limit, changed, places)
    size = min(limit, m + kept)
    out_heads, out_labels = np.empty((2, size, n), dtype=np.int32)
    scores = np.empty(size)
    _merge(
        heads, totals, labels, changed[:kept], places[:kept], out_heads, out_labels, scores
    )
    return out_heads, out_labels, scores


cdef Py_ssize_t _best_changes(
    const int32_t[:, ::1] heads, const double[::1] totals, const int32_t[:, :, ::1] labels,
    const double[:, ::1] margins, Py_ssize_t k, double[::1] changed, int64_t[::1] places,
) noexcept:
    # The scores of the best changes and where they are, best first; returns how many there are.
    cdef Py_ssize_t tree, word, at, m = heads.shape[0], n = heads.shape[1]
    cdef Py_ssize_t kept = 0, most = changed.shape[0]
    cdef double score
    with nogil:
        for tree in range(m if most > 0 else 0):
            for word in range(n):
                if labels[word, heads[tree, word], 1] < 0:
                    continue
                score = totals[tree] - margins[word, heads[tree, word]]
                # No room, or k trees as they are come before it.
                if not isfinite(score) or (m >= k and score <= totals[k - 1]):
                    continue
                if kept == most and score <= changed[most - 1]:
                    continue
                at = kept if kept < most else most - 1
                while at > 0 and changed[at - 1] < score:
                    changed[at], places[at] = changed[at - 1], places[at - 1]
                    at -= 1
                changed[at], places[at] = score, tree * n + word
                if kept < most:
                    kept += 1
    return kept


cdef void _merge(
    const int32_t[:, ::1] heads, const double[::1] totals, const int32_t[:, :, ::1] labels,
    const double[::1] changed, const int64_t[::1] places,
    int32_t[:, ::1] out_heads, int32_t[:, ::1] out_labels, double[::1] scores,
) noexcept:
    cdef Py_ssize_t row, tree, word, at, n = heads.shape[1], whole = 0, other = 0
    with nogil:
        for row in range(scores.shape[0]):
            at = -1
            if other == changed.shape[0] or (
                whole < heads.shape[0] and totals[whole] >= changed[other]
            ):
                tree = whole
                scores[row] = totals[tree]
                whole += 1
            else:
                tree, at = places[other] // n, places[other] % n
                scores[row] = changed[other]
                other += 1
            for word in range(n):
                out_heads[row, word] = heads[tree, word]
                out_labels[row, word] = labels[word, heads[tree, word], 1 if word == at else 0]
