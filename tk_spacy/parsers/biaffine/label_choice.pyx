"""The best label of each arc and the second best, in one pass over the scores of all labels."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

import numpy as np

from tk_spacy.utils.array_checks import checked


def choose_labels(scores, totals, labels, margins, *, second):
    """The labels of arcs with the highest scores, the first of equal ones.

    scores: float32[m, h, l], l >= 1, -inf for a label that may not be.
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
        scores, checked("totals", totals, np.float64, *shape),
        checked("labels", labels, np.int32, *shape, 2),
        checked("margins", margins, np.float64, *shape), second,
    )


cdef void _choose_labels(
    const float[:, :, ::1] scores,   # IN
    double[:, ::1] totals,           # IN, OUT
    int32_t[:, :, ::1] labels,       # OUT
    double[:, ::1] margins,          # OUT
    bint second,
) noexcept:
    cdef Py_ssize_t m, h, i, n_labels = scores.shape[2], best, next_best
    cdef float top, runner_up
    with nogil:
        for m in range(scores.shape[0]):
            for h in range(scores.shape[1]):
                best, next_best = 0, -1
                top, runner_up = scores[m, h, 0], -INFINITY
                for i in range(1, n_labels):
                    if scores[m, h, i] > top:
                        runner_up, next_best = top, best
                        top, best = scores[m, h, i], i
                    elif scores[m, h, i] > runner_up:
                        runner_up, next_best = scores[m, h, i], i
                totals[m, h] += top
                labels[m, h, 0] = <int32_t>best
                if not second:
                    continue
                if runner_up == -INFINITY:
                    next_best = -1
                labels[m, h, 1] = <int32_t>next_best
                margins[m, h] = <double>top - runner_up if next_best >= 0 else 0.0
