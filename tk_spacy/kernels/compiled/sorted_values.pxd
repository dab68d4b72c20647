# Search in ascending values.

from libc.stdint cimport int32_t


cdef inline Py_ssize_t find_value(
    const int32_t *values, Py_ssize_t n, int32_t value
) noexcept nogil:
    """The place of a value among n ascending ones, -1 where it is missing."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < n and values[low] == value else -1
