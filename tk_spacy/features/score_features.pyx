"""Features of the scores of candidates within their list, in compiled loops.

Sums are numpy's own, to the bit: eight running sums a block of at most 128 numbers, so that
weights that were learnt with numpy's means and deviations see the same numbers.
"""

from libc.math cimport INFINITY, isfinite, sqrt
from libc.stdint cimport uint8_t

import numpy as np

from tk_spacy.utils.array_checks import checked

cdef enum:
    BLOCK = 128
    UNROLLED = 8
    N_FEATURES = 5

SCORE_FEATURES = ("gap", "standard", "rank", "first", "unscored")
"""Of each source: how far a candidate is from the best one; its standard score; minus the logarithm
of its rank from 1; whether it is the best; whether others have scored it, but not this source."""

assert len(SCORE_FEATURES) == N_FEATURES


def score_features(scores, known, scales, temperatures):
    """SCORE_FEATURES of the candidates, and what becomes of their weights.

    scores: float64[s, k], each source's, NaN or infinite where it has none.
    known: bool[k], whether any source at all has scored a candidate.
    scales: float64[s], positive.  temperatures: float64[t], positive.

    Returns float64[k, 5 * s], where unscored trees count as the worst; float64[s, t, k], the gaps
    to the best one divided by scale and temperature, -inf for unscored trees and 0 for all where
    none is scored; and float64[s, k], 1 for the best one, or all alike where none is scored.
    Raises TypeError or ValueError for other arrays.
    """
    scores = checked("scores", scores, np.float64, None, None)
    n_sources, k = scores.shape
    known = checked("known", np.asarray(known, dtype=np.uint8), np.uint8, k)
    scales = checked("scales", scales, np.float64, n_sources)
    temperatures = checked("temperatures", temperatures, np.float64, None)
    full = np.empty((n_sources, k))
    missing = np.empty((n_sources, k), dtype=np.uint8)
    features = np.empty((k, N_FEATURES * n_sources))
    gaps = np.empty((n_sources, len(temperatures), k))
    first = np.empty((n_sources, k))
    if full.size:
        _fill(scores, full, missing)
        # numpy's functions where C's might differ in the last bit.
        _score_features(
            full, missing, np.argsort(-full, axis=1, kind="stable"), known, scales, temperatures,
            np.log1p(np.arange(k, dtype=np.float64)), features, gaps, first, np.empty(k),
        )
    return features, gaps, first


cdef void _fill(
    const double[:, ::1] scores,     # IN
    double[:, ::1] full,             # OUT: the lowest where there is none, 0 where there are none
    uint8_t[:, ::1] missing,         # OUT
) noexcept:
    cdef Py_ssize_t s, j
    cdef double worst
    with nogil:
        for s in range(scores.shape[0]):
            worst = INFINITY
            for j in range(scores.shape[1]):
                missing[s, j] = not isfinite(scores[s, j])
                if not missing[s, j]:
                    worst = min(worst, scores[s, j])
            if worst == INFINITY:
                worst = 0.0
            for j in range(scores.shape[1]):
                full[s, j] = worst if missing[s, j] else scores[s, j]


cdef void _score_features(
    const double[:, ::1] full,       # IN
    const uint8_t[:, ::1] missing,   # IN
    const Py_ssize_t[:, ::1] order,  # IN, rows by falling scores
    const uint8_t[::1] known,        # IN
    const double[::1] scales,        # IN
    const double[::1] temperatures,  # IN
    const double[::1] log_ranks,     # IN, logarithms of 1, 2, ...
    double[:, ::1] features,         # OUT
    double[:, :, ::1] gaps,          # OUT
    double[:, ::1] first,            # OUT
    double[::1] squares,             # room
) noexcept:
    cdef Py_ssize_t k = full.shape[1], s, j, i, at, best
    cdef double top, mean, deviation, scale, value
    with nogil:
        for s in range(full.shape[0]):
            scale, top, at = scales[s], full[s, order[s, 0]], N_FEATURES * s
            mean = pairwise_sum(&full[s, 0], k) / k
            best = -1
            for j in range(k):
                squares[j] = (full[s, j] - mean) * (full[s, j] - mean)
                if not missing[s, j] and (best < 0 or full[s, j] > full[s, best]):
                    best = j
            deviation = sqrt(pairwise_sum(&squares[0], k) / k)
            if not deviation > 0:
                deviation = 1.0
            for i in range(k):
                j = order[s, i]
                features[j, at] = (full[s, j] - top) / scale
                features[j, at + 1] = (full[s, j] - mean) / deviation
                features[j, at + 2] = -log_ranks[i] if best >= 0 else 0.0
                features[j, at + 3] = 1.0 if best >= 0 and i == 0 else 0.0
                features[j, at + 4] = 1.0 if missing[s, j] and known[j] else 0.0
                if best < 0:
                    first[s, j] = 1.0 / k
                else:
                    first[s, j] = 1.0 if j == best else 0.0
            for i in range(temperatures.shape[0]):
                for j in range(k):
                    value = 0.0
                    if best >= 0 and missing[s, j]:
                        value = -INFINITY
                    elif best >= 0:
                        value = (full[s, j] - full[s, best]) / (scale * temperatures[i])
                    gaps[s, i, j] = value


def normalize(weights):
    """Divides the numbers of each row, float64[rows, k], by their sum, in place."""
    cdef double[:, ::1] rows = weights
    cdef Py_ssize_t i, j
    cdef double total
    with nogil:
        for i in range(rows.shape[0]):
            total = pairwise_sum(&rows[i, 0], rows.shape[1])
            for j in range(rows.shape[1]):
                rows[i, j] /= total


cdef double pairwise_sum(const double *values, Py_ssize_t n) noexcept nogil:
    """The sum as numpy makes it of numbers that stand one after the other."""
    cdef double r[UNROLLED]
    cdef double total
    cdef Py_ssize_t i, j, half
    if n < UNROLLED:
        total = 0.0
        for i in range(n):
            total += values[i]
        return total
    if n <= BLOCK:
        for j in range(UNROLLED):
            r[j] = values[j]
        i = UNROLLED
        while i < n - n % UNROLLED:
            for j in range(UNROLLED):
                r[j] += values[i + j]
            i += UNROLLED
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
        while i < n:
            total += values[i]
            i += 1
        return total
    half = n // 2
    half -= half % UNROLLED
    return pairwise_sum(values, half) + pairwise_sum(values + half, n - half)
