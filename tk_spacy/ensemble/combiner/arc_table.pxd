# The arcs of a list of candidates, for loops over lists.

from libc.stdint cimport int32_t, int64_t


cdef Py_ssize_t find_arcs(
    const int32_t *heads, const int32_t *labels, Py_ssize_t k, Py_ssize_t n, int32_t *words,
    int32_t *arc_heads, int32_t *arc_labels, int32_t *with_head, int32_t *of_tree,
    int32_t *starts, int64_t *keys,
) noexcept nogil
