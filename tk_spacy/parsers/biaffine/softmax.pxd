"""Maxima of rows of float32, as numpy finds them."""


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
