# The scalar kernel, inline for every loop that calls it (see template_kernel.pyx for the source).

from libc.stdint cimport int32_t, int64_t


cdef enum:
    NODE = 0
    EDGE = 1


cdef inline int32_t length_bin(int32_t distance) noexcept nogil:
    """1, 2, 3, 4, 5-6, 7-10, 11-20, 21 and more, as 1..8; 0 where there is no distance."""
    cdef int32_t length = distance if distance >= 0 else -distance
    if length <= 4:
        return length
    if length <= 6:
        return 5
    if length <= 10:
        return 6
    if length <= 20:
        return 7
    return 8


cdef inline int32_t node_matches(
    const int32_t *a, const int32_t *b, Py_ssize_t n
) noexcept nogil:
    """The number of properties that two nodes share; a missing one (0) equals nothing."""
    cdef int32_t count = 0
    cdef Py_ssize_t i
    for i in range(n):
        count += (a[i] == b[i]) & (a[i] != 0)
    return count


cdef inline int32_t edge_matches(const int32_t *a, const int32_t *b) noexcept nogil:
    """Equal label, equal distance, equal length bin; each arc is (label, signed distance)."""
    cdef int32_t count = (a[0] == b[0]) & (a[0] != 0)
    if a[1] != 0 and b[1] != 0:
        count += (a[1] == b[1]) + (length_bin(a[1]) == length_bin(b[1]))
    return count


cdef inline int64_t part_kernel(
    const int32_t *nodes_a, const int32_t *part_a,
    const int32_t *nodes_b, const int32_t *part_b,
    const int32_t *kinds, const int32_t *skips, Py_ssize_t n_slots, Py_ssize_t n_properties,
) noexcept nogil:
    """The kernel of two parts of one type."""
    cdef int64_t product = 1
    cdef Py_ssize_t j, column = 0
    for j in range(n_slots):
        if kinds[j] == NODE:
            product *= skips[j] + node_matches(
                nodes_a + part_a[column] * n_properties,
                nodes_b + part_b[column] * n_properties,
                n_properties,
            )
            column += 1
        else:
            product *= skips[j] + edge_matches(part_a + column, part_b + column)
            column += 2
        if product == 0:
            break
    return product


cdef int check_part_nodes(
    const int32_t[:, ::1] parts, const int32_t[::1] kinds, Py_ssize_t n_nodes
) except -1
