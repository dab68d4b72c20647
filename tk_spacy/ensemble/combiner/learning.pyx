"""Conditional logistic regression over the arcs of each word, learned online.

The arcs that candidates give a word compete: their probabilities are the softmax of their scores,
and the likelihood of the gold arcs is raised by one step of AdaGrad (Duchi, Hazan and Singer 2011)
for each word.  The weights are averaged over all steps.
"""

from libc.math cimport exp, isfinite, log, sqrt
from libc.stdint cimport int32_t

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, is_stopped

cdef double EPSILON = 1e-8


def learn_arcs(
    const float[:, ::1] dense not None,     # IN: [a, d], standardised
    const int32_t[:, ::1] hashed not None,  # IN: [a, t], ids below size
    const int32_t[::1] starts not None,     # IN: [w + 1], the arcs of each word
    const int32_t[::1] gold not None,       # IN: [w], the number of its right arc
    int size,
    int epochs,
    double rate,
    double hashed_rate,
):
    """Averaged weights float64[d] and float64[size] after some passes in the words' order.

    Raises ValueError for numbers that do not fit.
    """
    check(dense, hashed, starts, size)
    cdef Py_ssize_t d = dense.shape[1], t = hashed.shape[1], n_words = len(starts) - 1
    if len(gold) != n_words:
        raise ValueError(f"{len(gold)} gold arcs, expected one for each of {n_words} words")
    for word in range(n_words):
        if not starts[word] <= gold[word] < starts[word + 1]:
            raise ValueError(f"gold arc {gold[word]} is not of word {word}")
    # u: the sum of each weight's changes, times the step; the average is w - u / steps.
    w_array, u_array, g_array = np.zeros(d), np.zeros(d), np.zeros(d)
    ws_array, us_array, gs_array = np.zeros(size), np.zeros(size), np.zeros(size)
    p_array = np.zeros(widest(starts))
    gradient_array = np.zeros(d)
    cdef double[::1] w = w_array, u = u_array, g = g_array, gradient = gradient_array
    cdef double[::1] ws = ws_array, us = us_array, gs = gs_array, p = p_array
    cdef Py_ssize_t _epoch, i, j, a, f, start, stop
    cdef double step = 0.0, slope, change
    cdef Listener listener = Listener()
    with nogil:
        for _epoch in range(epochs):
            for i in range(n_words):
                if is_stopped(&listener.watch):
                    break
                start, stop = starts[i], starts[i + 1]
                if stop - start < 2:
                    continue
                softmax(dense, hashed, w, ws, start, stop, &p[0])
                for j in range(d):
                    gradient[j] = 0.0
                for a in range(start, stop):
                    slope = p[a - start] - (1.0 if a == gold[i] else 0.0)
                    for j in range(d):
                        gradient[j] += slope * dense[a, j]
                    for f in range(t):
                        j = hashed[a, f]
                        gs[j] += slope * slope
                        change = hashed_rate * slope / (sqrt(gs[j]) + EPSILON)
                        ws[j] -= change
                        us[j] -= step * change
                for j in range(d):
                    g[j] += gradient[j] * gradient[j]
                    change = rate * gradient[j] / (sqrt(g[j]) + EPSILON)
                    w[j] -= change
                    u[j] -= step * change
                step += 1.0
    listener.check()
    if step == 0.0:
        return w_array, ws_array
    return w_array - u_array / step, ws_array - us_array / step


def arc_log_probabilities(
    const float[:, ::1] dense not None,         # IN: [a, d], as in learn_arcs
    const int32_t[:, ::1] hashed not None,      # IN: [a, t]
    const int32_t[::1] starts not None,         # IN: [w + 1]
    const double[::1] weights not None,         # IN: [d]
    const double[::1] hashed_weights not None,  # IN: [size]
):
    """float64[a]: the logarithm of each arc's probability among the arcs of its word."""
    check(dense, hashed, starts, len(hashed_weights))
    if len(weights) != dense.shape[1]:
        raise ValueError(f"{len(weights)} weights, expected {dense.shape[1]}")
    out_array = np.zeros(len(dense))
    cdef double[::1] out = out_array
    cdef Py_ssize_t i, a
    with nogil:
        for i in range(len(starts) - 1):
            if starts[i + 1] - starts[i] < 2:
                continue
            softmax(
                dense, hashed, weights, hashed_weights, starts[i], starts[i + 1], &out[starts[i]]
            )
            for a in range(starts[i], starts[i + 1]):
                out[a] = log(out[a] + 1e-300)
    return out_array


cdef void softmax(
    const float[:, ::1] dense, const int32_t[:, ::1] hashed, const double[::1] weights,
    const double[::1] hashed_weights, Py_ssize_t start, Py_ssize_t stop, double *out,
) noexcept nogil:
    # The probabilities of the arcs of one word.
    cdef Py_ssize_t a, j
    cdef double score, best = -1e300, total = 0.0
    for a in range(start, stop):
        score = 0.0
        for j in range(dense.shape[1]):
            score += weights[j] * dense[a, j]
        for j in range(hashed.shape[1]):
            score += hashed_weights[hashed[a, j]]
        out[a - start] = score
        best = max(best, score)
    for a in range(stop - start):
        out[a] = exp(out[a] - best)
        total += out[a]
    for a in range(stop - start):
        out[a] /= total


cdef int check(
    const float[:, ::1] dense, const int32_t[:, ::1] hashed, const int32_t[::1] starts,
    Py_ssize_t size,
) except -1:
    cdef Py_ssize_t i, j
    if dense.shape[0] != hashed.shape[0]:
        raise ValueError(f"{len(dense)} rows of dense features, {len(hashed)} of hashed ones")
    if starts.shape[0] < 1 or starts[0] != 0 or starts[len(starts) - 1] != dense.shape[0]:
        raise ValueError(f"starts must run from 0 to {len(dense)}, the number of arcs")
    for i in range(len(starts) - 1):
        if starts[i] > starts[i + 1]:
            raise ValueError(f"starts must not fall, got {starts[i]} before {starts[i + 1]}")
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            if not isfinite(dense[i, j]):
                raise ValueError(f"a dense feature is {dense[i, j]}, expected a finite number")
    for i in range(hashed.shape[0]):
        for j in range(hashed.shape[1]):
            if hashed[i, j] < 0 or hashed[i, j] >= size:
                raise ValueError(f"a hashed feature is {hashed[i, j]}, expected 0 to {size - 1}")
    return 0


def widest(const int32_t[::1] starts not None):
    """The most arcs of a word."""
    return int(np.diff(np.asarray(starts)).max(initial=1))
