from libc.stdint cimport int32_t, int64_t

cdef enum:
    NODE = 0
    EDGE = 1

cdef int32_t length_bin(int32_t distance) noexcept nogil
cdef int32_t node_matches(const int32_t *a, const int32_t *b, Py_ssize_t n) noexcept nogil
cdef int32_t edge_matches(const int32_t *a, const int32_t *b) noexcept nogil
cdef int64_t part_kernel(
    const int32_t *nodes_a, const int32_t *part_a,
    const int32_t *nodes_b, const int32_t *part_b,
    const int32_t *kinds, const int32_t *skips, Py_ssize_t n_slots, Py_ssize_t n_properties,
) noexcept nogil
