"""The best label of each arc and the second best, and the labels of given arcs.

Scores become log-probabilities in three steps, of which the middle one is numpy's: `shift_labels`
or `shift_arc_labels` takes the best score of each arc from all of them, `softmax.log_sums` finds
what else is to be taken, and who reads the scores takes it.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t

from tk_spacy.parsers.biaffine.softmax cimport row_max

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range, checked_target


def shift_labels(scores, forbidden):
    """The scores of all labels of arcs less the best one: float32[m, h, l].

    scores: float32[m, l, h], of m modifiers and h heads, the first of which is the root.
    forbidden: uint8[2, l], nonzero for the labels that an arc from the root may not have, and for
        those of all other arcs; one at least may be.  They become -inf.
    Raises TypeError or ValueError for other arrays.
    """
    scores = checked("scores", scores, np.float32, None, None, None)
    m, n_labels, heads = scores.shape
    forbidden = _checked_forbidden(forbidden, n_labels)
    out = np.empty((m, heads, n_labels), dtype=np.float32)
    _shift_labels(scores, forbidden, out)
    return out


def shift_arc_labels(scores, heads, forbidden):
    """The same of single arcs: float32[arcs, l].

    scores: float32[arcs, l].  heads: int64[arcs], 0 for the root.  forbidden: see `shift_labels`.
    """
    scores = checked("scores", scores, np.float32, None, None)
    forbidden = _checked_forbidden(forbidden, scores.shape[1])
    heads = checked("heads", heads, np.int64, len(scores))
    out = np.empty_like(scores)
    _shift_arc_labels(scores, heads, forbidden, out)
    return out


def _checked_forbidden(forbidden, n_labels):
    forbidden = checked("forbidden", forbidden, np.uint8, 2, n_labels)
    if forbidden.all(axis=1).any():
        raise ValueError("no label to choose from")
    return forbidden


def choose_labels(scores, less, totals, labels, margins, *, second):
    """The labels of arcs with the highest scores, the first of equal ones.

    scores: float32[m, h, l], l >= 1, -inf for a label that may not be.
    less: float32[m, h], which is taken from each of an arc's scores.
    totals: float64[m, h], to which the best scores are added.
    labels: int32[m, h, 2], where the best label goes and, with `second`, the second best; -1 where
        there is none.
    margins: float64[m, h], where with `second` goes how much less the second best has, 0 for none.
    Raises TypeError or ValueError for other arrays.
    """
    scores = checked("scores", scores, np.float32, None, None, None)
    if not scores.shape[2]:
        raise ValueError("no label to choose from")
    shape = scores.shape[:2]
    _choose_labels(
        scores, checked("less", less, np.float32, *shape),
        checked_target("totals", totals, np.float64, *shape),
        checked_target("labels", labels, np.int32, *shape, 2),
        checked_target("margins", margins, np.float64, *shape), second,
    )


def distinct_arcs(heads):
    """The arcs that some trees of a sentence have, each once.

    heads: int32[k, n], 0..n.
    Returns modifiers int64[arcs] from 0 on and their heads int64[arcs], in order, and the arc of
    each word of each tree, int32[k, n].  Raises TypeError or ValueError for other arrays.
    """
    heads = checked("heads", heads, np.int32, None, None)
    cdef Py_ssize_t n = heads.shape[1]
    checked_range("heads", heads, 0, n)
    places = np.full((n, n + 1), -1, dtype=np.int32)
    cdef Py_ssize_t found = _number_arcs(heads, places)
    modifiers, governors = np.empty((2, found), dtype=np.int64)
    arcs = np.empty_like(heads)
    _list_arcs(heads, places, modifiers, governors, arcs)
    return modifiers, governors, arcs


def pick_labels(scores, less, arcs, labels):
    """The score of each word's label in each tree: float32[k, n], NaN for an unknown label.

    scores: float32[a, l], of the labels of a arcs.  less: float32[a], which is taken from them.
    arcs: int32[k, n], 0..a - 1.  labels: int32[k, n], negative where unknown.
    Raises TypeError or ValueError for other arrays.
    """
    scores = checked("scores", scores, np.float32, None, None)
    arcs = checked("arcs", arcs, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *arcs.shape)
    checked_range("arcs", arcs, 0, len(scores) - 1)
    if labels.size and int(labels.max()) >= scores.shape[1]:
        raise ValueError(f"labels hold {labels.max()}, expected less than {scores.shape[1]}")
    out = np.empty(arcs.shape, dtype=np.float32)
    _pick_labels(scores, checked("less", less, np.float32, len(scores)), arcs, labels, out)
    return out


cdef void _shift_labels(
    const float[:, :, ::1] scores, const uint8_t[:, ::1] forbidden, float[:, :, ::1] out
) noexcept:
    cdef Py_ssize_t m, h, i
    with nogil:
        for m in range(out.shape[0]):
            for h in range(out.shape[1]):
                for i in range(out.shape[2]):
                    out[m, h, i] = scores[m, i, h]
                _shift(&out[m, h, 0], &forbidden[0 if h == 0 else 1, 0], out.shape[2])


cdef void _shift_arc_labels(
    const float[:, ::1] scores, const int64_t[::1] heads, const uint8_t[:, ::1] forbidden,
    float[:, ::1] out,
) noexcept:
    cdef Py_ssize_t arc, i
    with nogil:
        for arc in range(out.shape[0]):
            for i in range(out.shape[1]):
                out[arc, i] = scores[arc, i]
            _shift(&out[arc, 0], &forbidden[0 if heads[arc] == 0 else 1, 0], out.shape[1])


cdef inline void _shift(float *scores, const uint8_t *forbidden, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef float top
    for i in range(n):
        scores[i] = -INFINITY if forbidden[i] else scores[i]
    top = row_max(scores, n)
    for i in range(n):
        scores[i] = scores[i] - top


cdef void _choose_labels(
    const float[:, :, ::1] scores,   # IN
    const float[:, ::1] less,        # IN
    double[:, ::1] totals,           # IN, OUT
    int32_t[:, :, ::1] labels,       # OUT
    double[:, ::1] margins,          # OUT
    bint second,
) noexcept:
    cdef Py_ssize_t m, h, i, n_labels = scores.shape[2], best, next_best
    cdef float top, runner_up, score, taken
    with nogil:
        for m in range(scores.shape[0]):
            for h in range(scores.shape[1]):
                taken = less[m, h]
                best, next_best = 0, -1
                top, runner_up = scores[m, h, 0] - taken, -INFINITY
                for i in range(1, n_labels):
                    score = scores[m, h, i] - taken
                    if score > top:
                        runner_up, next_best = top, best
                        top, best = score, i
                    elif score > runner_up:
                        runner_up, next_best = score, i
                totals[m, h] += top
                labels[m, h, 0] = <int32_t>best
                if not second:
                    continue
                if runner_up == -INFINITY:
                    next_best = -1
                labels[m, h, 1] = <int32_t>next_best
                margins[m, h] = <double>top - runner_up if next_best >= 0 else 0.0


cdef Py_ssize_t _number_arcs(const int32_t[:, ::1] heads, int32_t[:, ::1] places) noexcept:
    # The number of each arc, into places, and how many there are.
    cdef Py_ssize_t tree, word, head
    cdef int32_t found = 0
    with nogil:
        for tree in range(heads.shape[0]):
            for word in range(heads.shape[1]):
                places[word, heads[tree, word]] = 0
        for word in range(places.shape[0]):
            for head in range(places.shape[1]):
                if places[word, head] == 0:
                    places[word, head] = found
                    found += 1
    return found


cdef void _list_arcs(
    const int32_t[:, ::1] heads, const int32_t[:, ::1] places, int64_t[::1] modifiers,
    int64_t[::1] governors, int32_t[:, ::1] arcs,
) noexcept:
    cdef Py_ssize_t tree, word, head
    with nogil:
        for word in range(places.shape[0]):
            for head in range(places.shape[1]):
                if places[word, head] >= 0:
                    modifiers[places[word, head]] = word
                    governors[places[word, head]] = head
        for tree in range(heads.shape[0]):
            for word in range(heads.shape[1]):
                arcs[tree, word] = places[word, heads[tree, word]]


cdef void _pick_labels(
    const float[:, ::1] scores, const float[::1] less, const int32_t[:, ::1] arcs,
    const int32_t[:, ::1] labels, float[:, ::1] out,
) noexcept:
    cdef Py_ssize_t tree, word
    cdef int32_t arc, label
    with nogil:
        for tree in range(arcs.shape[0]):
            for word in range(arcs.shape[1]):
                arc, label = arcs[tree, word], labels[tree, word]
                out[tree, word] = scores[arc, label] - less[arc] if label >= 0 else <float>NAN
