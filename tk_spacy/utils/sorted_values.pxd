# Search in ascending values.

from libc.stdint cimport int32_t, int64_t

ctypedef fused integer:
    int32_t
    int64_t


cdef inline Py_ssize_t place_of(
    const integer *values, Py_ssize_t n, integer value
) noexcept nogil:
    """The place of the first of n ascending values that is not below this one, n for none."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t find_value(
    const integer *values, Py_ssize_t n, integer value
) noexcept nogil:
    """The place of a value among n ascending ones, -1 where it is missing."""
    cdef Py_ssize_t place = place_of(values, n, value)
    return place if place < n and values[place] == value else -1
