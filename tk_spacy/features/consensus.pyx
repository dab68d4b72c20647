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

from tk_spacy.utils.array_checks import checked

SHARE_FEATURES = ("labelled", "heads", "log-labelled", "log-heads", "margin")
"""Sums over the arcs of a candidate of: the share of head and label; that of the head; the
logarithms of both, each share plus LOG_FLOOR; the head's share less that of its best rival."""

LOG_FLOOR = 0.02

cdef double FLOOR = LOG_FLOOR

assert len(SHARE_FEATURES) == N_SHARE_FEATURES


def share_features(heads, labels, weights):
    """The SHARE_FEATURES of every candidate under several weightings of their list.

    heads, labels: int32[k, n].  weights: float64[q, k], rows that sum to 1.
    Returns float64[k, 5 * q].  Words on whose head and label all candidates agree are left out:
    they add the same to each.  Raises TypeError or ValueError for other arrays.
    """
    heads = checked("heads", heads, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *heads.shape)
    weights = checked("weights", weights, np.float64, None, len(heads))
    if not np.isfinite(weights).all():
        raise ValueError(f"weights hold {weights[~np.isfinite(weights)][0]}, expected numbers")
    cdef const int32_t[:, ::1] own_heads = heads, own_labels = labels
    cdef const double[:, ::1] rows = weights
    cdef Py_ssize_t k = own_heads.shape[0], n = own_heads.shape[1]
    out_array = np.zeros((k, N_SHARE_FEATURES * rows.shape[0]))
    cdef double[:, ::1] out = out_array
    if out.shape[0] and out.shape[1] and n and not add_share_features(
        &own_heads[0, 0], &own_labels[0, 0], k, n, &rows[0, 0], rows.shape[0], &out[0, 0],
        out.shape[1],
    ):
        raise MemoryError("no memory for the shares of a list")
    return out_array


cdef bint add_share_features(
    const int32_t *heads,            # IN: [k, n]
    const int32_t *labels,           # IN: [k, n]
    Py_ssize_t k, Py_ssize_t n,
    const double *weights,           # IN: [n_weights, k]
    Py_ssize_t n_weights,
    double *out,                     # IN, OUT: the features of candidate i from i * width on
    Py_ssize_t width,
) noexcept nogil:
    """Adds the SHARE_FEATURES of each weighting to those given; False where memory is short."""
    cdef Py_ssize_t m, i, j, q, n_heads, n_arcs
    cdef double rival
    cdef const double *weight
    cdef double *own
    # Of each head: share, its logarithm, margin.  Of each arc: share, its logarithm.
    cdef double *share = <double *>malloc(5 * max(k, 1) * sizeof(double))
    cdef double *log_share = share + k
    cdef double *margin = log_share + k
    cdef double *labelled = margin + k
    cdef double *log_labelled = labelled + k
    # Of each candidate its head and its arc, and of these the first candidate.
    cdef Py_ssize_t *head_of = <Py_ssize_t *>malloc(4 * max(k, 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t *arc_of = head_of + k
    cdef Py_ssize_t *first_head = arc_of + k
    cdef Py_ssize_t *first_arc = first_head + k
    if share == NULL or head_of == NULL:
        free(share)
        free(head_of)
        return False
    for m in range(n):
        for j in range(1, k):
            if heads[j * n + m] != heads[m] or labels[j * n + m] != labels[m]:
                break
        else:
            continue
        # Number the heads, and the arcs (head and label), that the candidates give the word.
        n_heads = n_arcs = 0
        for i in range(k):
            for j in range(n_heads):
                if heads[first_head[j] * n + m] == heads[i * n + m]:
                    break
            else:
                j = n_heads
                first_head[j] = i
                n_heads += 1
            head_of[i] = j
            for j in range(n_arcs):
                if (
                    head_of[first_arc[j]] == head_of[i]
                    and labels[first_arc[j] * n + m] == labels[i * n + m]
                ):
                    break
            else:
                j = n_arcs
                first_arc[j] = i
                n_arcs += 1
            arc_of[i] = j
        for q in range(n_weights):
            weight = weights + q * k
            for j in range(n_heads):
                share[j] = 0.0
            for j in range(n_arcs):
                labelled[j] = 0.0
            for i in range(k):
                share[head_of[i]] += weight[i]
                labelled[arc_of[i]] += weight[i]
            for j in range(n_heads):
                rival = 0.0
                for i in range(n_heads):
                    if i != j:
                        rival = max(rival, share[i])
                log_share[j] = log(share[j] + FLOOR)
                margin[j] = share[j] - rival
            for j in range(n_arcs):
                log_labelled[j] = log(labelled[j] + FLOOR)
            for i in range(k):
                own = out + i * width + N_SHARE_FEATURES * q
                own[0] += labelled[arc_of[i]]
                own[1] += share[head_of[i]]
                own[2] += log_labelled[arc_of[i]]
                own[3] += log_share[head_of[i]]
                own[4] += margin[head_of[i]]
    free(share)
    free(head_of)
    return True
