# Trees over one sentence that were checked (see tree_rows.pyx), and the checks of single rows.

from cython cimport final
from libc.stdint cimport int32_t


@final
cdef class CheckedTrees:
    cdef const int32_t[:, ::1] rows
    cdef readonly object heads


# HEADs int32[k, n] that nobody can write to, as CheckedTrees, from who has checked them.
cdef CheckedTrees known_trees(heads)


# Whether n HEADs are a tree with exactly one root.
# seen: [n + 1], the walk in which each word was met last, and how many walks there were: counted on
# from row to row, also over sentences of different lengths.
cdef inline bint is_single_rooted(
    const int32_t *heads, Py_ssize_t n, Py_ssize_t *seen, Py_ssize_t *walks
) noexcept nogil:
    cdef Py_ssize_t m, roots = 0, before = walks[0], walk = before
    cdef int32_t h
    cdef bint outside = False
    for m in range(n):
        h = heads[m]
        outside |= h < 0 or h > n
        roots += h == 0
    if outside or roots != 1:
        return False
    for m in range(1, n + 1):
        walk += 1
        h = <int32_t>m
        while h > 0 and seen[h] <= before:
            seen[h] = walk
            h = heads[h - 1]
        if h > 0 and seen[h] == walk:  # a cycle
            walks[0] = walk
            return False
    walks[0] = walk
    return True


# Group number of each of k trees over n words, and the first row of each group, groups by first
# appearance; returns their number.
# table: room for mask + 1 numbers, a power of two of at least 2k; group, first: [k].
cdef Py_ssize_t group_rows(
    const int32_t *heads, const int32_t *labels, Py_ssize_t k, Py_ssize_t n,
    Py_ssize_t *table, Py_ssize_t mask, Py_ssize_t *group, Py_ssize_t *first,
) noexcept nogil
