"""Maxima and sums of rows of float32, as numpy finds them to the last bit.

numpy adds the numbers of a row in an order of its own, which keeps rounding small: up to 128 in
eight sums side by side, more in halves.
"""


cdef inline float row_max(const float *x, Py_ssize_t n) noexcept nogil:
    # The largest of n >= 1 numbers; one that is not a number may be passed over.
    cdef float[8] side
    cdef float top = x[0]
    cdef Py_ssize_t i = 0
    cdef int j
    if n >= 16:
        for j in range(8):
            side[j] = x[j]
        i = 8
        while i + 8 <= n:
            for j in range(8):
                side[j] = x[i + j] if x[i + j] > side[j] else side[j]
            i += 8
        for j in range(8):
            top = side[j] if side[j] > top else top
    while i < n:
        top = x[i] if x[i] > top else top
        i += 1
    return top


cdef inline float row_sum(const float *x, Py_ssize_t n) noexcept nogil:
    cdef float[8] side
    cdef float total = 0.0
    cdef Py_ssize_t i = 0, half
    cdef int j
    if n > 128:
        half = n // 2
        half -= half % 8
        return row_sum(x, half) + row_sum(x + half, n - half)
    if n >= 8:
        for j in range(8):
            side[j] = x[j]
        i = 8
        while i + 8 <= n:
            for j in range(8):
                side[j] += x[i + j]
            i += 8
        total = ((side[0] + side[1]) + (side[2] + side[3])) + (
            (side[4] + side[5]) + (side[6] + side[7])
        )
    while i < n:
        total += x[i]
        i += 1
    return total
