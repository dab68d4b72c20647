"""How far the candidates of a list agree: what the shares of a candidate's arcs add up to.

Each candidate of a list has a weight, and the weights sum to 1.  The share of an arc is the weight
of all candidates that hold it: what a vote of the list says about it.  The sum of the shares of a
candidate's arcs is the number of arcs that it is expected to have right if the weights were
probabilities (minimum Bayes risk decoding: Goel and Byrne 2000; over parse trees, Goodman 1996).
Ours differs in that such sums, under several weightings of the list, are features to be learned
from, together with sums of logarithms, where a single unlikely arc counts, and of margins.
"""

from libc.math cimport log
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

import numpy as np

SHARE_FEATURES = ("labelled", "heads", "log-labelled", "log-heads", "margin")
"""Sums over the arcs of a candidate of: the share of head and label; that of the head; the
logarithms of both, each share plus LOG_FLOOR; the head's share less that of its best rival."""

LOG_FLOOR = 0.02

cdef double FLOOR = LOG_FLOOR
cdef enum:
    WIDTH = 5


def share_features(heads, labels, weights):
    """The SHARE_FEATURES of every candidate under several weightings of their list.

    heads, labels: int32[k, n].  weights: float64[q, k], rows that sum to 1.
    Returns float64[k, 5 * q].  Words on whose head and label all candidates agree are left out:
    they add the same to each.  Raises ValueError for shapes that do not fit.
    """
    heads = np.ascontiguousarray(heads, dtype=np.int32)
    labels = np.ascontiguousarray(labels, dtype=np.int32)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if heads.ndim != 2 or heads.shape != labels.shape:
        raise ValueError(
            f"heads and labels have shapes {heads.shape} and {labels.shape}, expected one [k, n]"
        )
    if weights.ndim != 2 or weights.shape[1] != len(heads):
        raise ValueError(f"weights have shape {weights.shape}, expected [q, {len(heads)}]")
    out = np.zeros((len(heads), WIDTH * len(weights)))
    _share_features(heads, labels, weights, out)
    return out


cdef int _share_features(
    const int32_t[:, ::1] heads,     # IN
    const int32_t[:, ::1] labels,    # IN
    const double[:, ::1] weights,    # IN
    double[:, ::1] out,              # IN, OUT
) except -1:
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], n_weights = weights.shape[0]
    cdef Py_ssize_t m, i, j, q
    cdef double labelled, rival
    cdef double *share = <double *>malloc(max(k, 1) * sizeof(double))
    if share == NULL:
        raise MemoryError("no memory for the shares of a list")
    with nogil:
        for m in range(n):
            for j in range(1, k):
                if heads[j, m] != heads[0, m] or labels[j, m] != labels[0, m]:
                    break
            else:
                continue
            for q in range(n_weights):
                for j in range(k):
                    share[j] = 0.0
                    for i in range(k):
                        if heads[i, m] == heads[j, m]:
                            share[j] += weights[q, i]
                for j in range(k):
                    labelled = rival = 0.0
                    for i in range(k):
                        if heads[i, m] != heads[j, m]:
                            rival = max(rival, share[i])
                        elif labels[i, m] == labels[j, m]:
                            labelled += weights[q, i]
                    out[j, WIDTH * q] += labelled
                    out[j, WIDTH * q + 1] += share[j]
                    out[j, WIDTH * q + 2] += log(labelled + FLOOR)
                    out[j, WIDTH * q + 3] += log(share[j] + FLOOR)
                    out[j, WIDTH * q + 4] += share[j] - rival
    free(share)
    return 0
