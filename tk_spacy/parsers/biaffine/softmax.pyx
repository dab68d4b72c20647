"""Logarithms of the softmax of rows, of several softmaxes side by side.

The same to the last bit as numpy's maxima, sums and differences; exponentials and logarithms are
numpy's own, whose SIMD is faster than a compiler's.
"""

from libc.stdint cimport int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.numpy_sums cimport pairwise_sum


def log_softmax_parts(scores, sizes):
    """The logarithms float32[n, values] of softmaxes side by side.

    scores: float32[n, values].  sizes: columns of each softmax, at least one; they are as many as
    there are scores, or the scores that follow are left out.
    NaN where a number of the same softmax is NaN.
    Raises TypeError or ValueError for other arrays.
    """
    scores = checked("scores", scores, np.float32, None, None)
    sizes = checked("sizes", sizes, np.int64, None)
    # Each alone first: a sum of numbers as large as they come may be any number.
    if not len(sizes) or sizes.min() < 1 or sizes.max() > scores.shape[1]:
        width = 0
    else:
        width = sum(sizes.tolist())
    if not 0 < width <= scores.shape[1]:
        raise ValueError(
            f"sizes are {sizes.tolist()}, expected columns of {scores.shape[1]} scores"
        )
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    out = np.empty((len(scores), width), dtype=np.float32)
    _shift_parts(scores, ends, out)
    sums = np.empty((len(scores), len(ends) - 1), dtype=np.float32)
    _sum_parts(np.exp(out), ends, sums)
    _take_parts(np.log(sums, out=sums), ends, out)
    return out


def log_sums(shifted):
    """The logarithms float32[...] of the sums of exponentials along the last axis.

    shifted: float32[..., n], n >= 1, the largest of each row 0.
    Raises TypeError or ValueError for other arrays.
    """
    shifted = checked("shifted", shifted, np.float32, *[None] * max(np.ndim(shifted), 1))
    *rows, n = shifted.shape
    if not n:
        raise ValueError("rows of no number have no sum")
    sums = np.empty(rows, dtype=np.float32)
    _sum_rows(np.exp(shifted).reshape(-1, n), sums.reshape(-1))
    return np.log(sums, out=sums)


cdef void _sum_rows(const float[:, ::1] values, float[::1] sums) noexcept:
    cdef Py_ssize_t row
    with nogil:
        for row in range(values.shape[0]):
            sums[row] = pairwise_sum(&values[row, 0], values.shape[1])


cdef void _shift_parts(
    const float[:, ::1] scores, const int64_t[::1] ends, float[:, ::1] out
) noexcept:
    cdef Py_ssize_t row, part, i
    cdef float top
    with nogil:
        for row in range(scores.shape[0]):
            for part in range(ends.shape[0] - 1):
                top = row_max(&scores[row, ends[part]], ends[part + 1] - ends[part])
                for i in range(ends[part], ends[part + 1]):
                    out[row, i] = scores[row, i] - top


cdef void _sum_parts(
    const float[:, ::1] values, const int64_t[::1] ends, float[:, ::1] sums
) noexcept:
    cdef Py_ssize_t row, part
    with nogil:
        for row in range(values.shape[0]):
            for part in range(ends.shape[0] - 1):
                sums[row, part] = pairwise_sum(
                    &values[row, ends[part]], ends[part + 1] - ends[part]
                )


cdef void _take_parts(
    const float[:, ::1] less, const int64_t[::1] ends, float[:, ::1] out
) noexcept:
    cdef Py_ssize_t row, part, i
    cdef float own
    with nogil:
        for row in range(out.shape[0]):
            for part in range(ends.shape[0] - 1):
                own = less[row, part]
                for i in range(ends[part], ends[part + 1]):
                    out[row, i] -= own
