"""What quick parsers choose from their lists, and what speaks for it: see `cascade`."""

import numpy as np

from libc.math cimport INFINITY, exp, isfinite, log

from tk_spacy.utils.array_checks import checked

FEATURES = (
    "words", "score", "score_a_word", "margin", "agreement", "doubtful_words", "least_sure_word",
)
"""Of a choice, in the order of `quick_choice`."""
MOST_MARGIN = 10.0
"""Of the margin, also that of a single tree: in units of `scales`."""


def quick_choice(heads, labels, scores, scales, own):
    """The tree that the scores of some parsers choose from a list of k trees over n words.

    heads, labels: int32[k, n].  scores: float64[k, q], NaN where a parser has none; what is not
    finite counts as its lowest, 0 where it has none at all.
    scales: float64[q], positive, what a parser's scores are divided by.
    own: int32[m], rows of the parsers' own first choices.

    Returns the row, of equals the first, the sums of scores that chose it, float64[k], and
    float64[len(FEATURES)]: the logarithm of n; the sum, and the same a word; how far the next tree
    is behind; the share of the words on which the own choices have the chosen arc; and, by the
    softmax of the sums, how many words are expected to have another arc, and how likely the least
    sure word is to have none.
    Raises TypeError or ValueError for other arrays.
    """
    cdef const int[:, ::1] heads_ = checked("heads", heads, np.int32, None, None)
    cdef Py_ssize_t k = heads_.shape[0], n = heads_.shape[1]
    cdef const int[:, ::1] labels_ = checked("labels", labels, np.int32, k, n)
    cdef const double[:, ::1] scores_ = checked("scores", scores, np.float64, k, None)
    cdef Py_ssize_t q = scores_.shape[1]
    cdef const double[::1] scales_ = checked("scales", scales, np.float64, q)
    cdef const int[::1] own_ = checked("own", own, np.int32, None)
    if not k or not n or not own_.shape[0]:
        raise ValueError(f"{k} trees over {n} words and {own_.shape[0]} choices, expected some")
    cdef Py_ssize_t m
    for m in range(own_.shape[0]):
        if not 0 <= own_[m] < k:
            raise ValueError(f"own has {own_[m]}, expected a row from 0 to {k - 1}")
    totals = np.zeros(k)
    features = np.zeros(len(FEATURES))
    cdef double[::1] totals_ = totals, features_ = features
    cdef double most = MOST_MARGIN
    cdef Py_ssize_t row
    with nogil:
        _sum(scores_, scales_, totals_)
        row = _describe(heads_, labels_, totals_, own_, most, features_)
    return row, totals, features


cdef void _sum(
    const double[:, ::1] scores, const double[::1] scales, double[::1] totals
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double least
    for j in range(scores.shape[1]):
        least = INFINITY
        for i in range(scores.shape[0]):
            if isfinite(scores[i, j]) and scores[i, j] < least:
                least = scores[i, j]
        if least == INFINITY:
            least = 0.0
        for i in range(scores.shape[0]):
            totals[i] += (scores[i, j] if isfinite(scores[i, j]) else least) / scales[j]


cdef Py_ssize_t _describe(
    const int[:, ::1] heads,
    const int[:, ::1] labels,
    const double[::1] totals,
    const int[::1] own,
    double most,
    double[::1] out,
) noexcept nogil:
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], row = 0, i, w, m, agreeing = 0
    cdef double margin = most, whole = 0.0, share, least = 1.0, doubtful = 0.0
    for i in range(1, k):
        if totals[i] > totals[row]:
            row = i
    for i in range(k):
        whole += exp(totals[i] - totals[row])
        if i != row and totals[row] - totals[i] < margin:
            margin = totals[row] - totals[i]
    for w in range(n):
        share = 0.0
        for i in range(k):
            if heads[i, w] == heads[row, w] and labels[i, w] == labels[row, w]:
                share += exp(totals[i] - totals[row])
        share /= whole
        doubtful += 1.0 - share
        if share < least:
            least = share
        for m in range(own.shape[0]):
            i = own[m]
            agreeing += heads[i, w] == heads[row, w] and labels[i, w] == labels[row, w]
    out[0] = log(<double> n)
    out[1] = totals[row]
    out[2] = totals[row] / n
    out[3] = margin
    out[4] = <double> agreeing / (n * own.shape[0])
    out[5] = doubtful
    out[6] = least
    return row
