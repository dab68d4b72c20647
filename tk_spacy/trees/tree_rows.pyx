"""Checks of many trees over one sentence, given as rows of HEADs and labels."""

from cython cimport final
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table, check_trees

cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ULL


cdef object _KNOWN = object()   # says that heads need no check; nobody outside can say it


@final
cdef class CheckedTrees:
    """HEADs of k trees over n words that were checked once, since nobody can change them.

    heads: int32[k, n], an own copy that can never be made writable.

    Raises TypeError or ValueError for arrays of another kind, and for heads that do not all lead to
    the root.
    """

    def __cinit__(self, given, known=None):
        if known is not _KNOWN:
            given = _unchangeable(checked("heads", given, np.int32, None, None))
            check_trees(given)
        self.heads = given
        self.rows = given

    def __reduce__(self):
        return CheckedTrees, (self.heads,)


cdef CheckedTrees known_trees(heads):
    return CheckedTrees(heads, _KNOWN)


cdef _unchangeable(heads):
    """A copy in the memory of a bytes object, which numpy lets no one write to."""
    if not heads.size:
        return np.zeros(heads.shape, dtype=np.int32)
    return np.frombuffer(heads.tobytes(), dtype=np.int32).reshape(heads.shape)


def invalid_trees(given):
    """Rows of int32[k, n] HEAD arrays that are no tree with exactly one root: intp[_], ascending.

    Twin of `treebank.check_tree`: a walk up from every word to one that is known to be below the
    root.
    """
    cdef const int32_t[:, ::1] heads = checked("heads", given, np.int32, None, None)
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], j
    if n == 0:
        return np.arange(k)
    bad_array = np.zeros(k, dtype=np.uint8)
    seen_array = np.zeros(n + 1, dtype=np.intp)
    cdef uint8_t[::1] bad = bad_array
    cdef Py_ssize_t[::1] seen = seen_array
    cdef Py_ssize_t walks = 0
    with nogil:
        for j in range(k):
            bad[j] = not is_single_rooted(&heads[j, 0], n, &seen[0], &walks)
    return np.flatnonzero(bad_array)


def check_labels(given, int n_labels):
    """Ids of labels, int32[k, n]; raises TypeError or ValueError unless all are below n_labels.
    """
    labels = checked("labels", given, np.int32, None, None)
    check_table(labels, 0, n_labels - 1, "labels")
    return labels


def group_equal(given_heads, given_labels):
    """Group number of each tree, and the first row of each group, groups by first appearance.

    given_heads, given_labels: int32[k, n].  Returns intp[k] and intp[_].  Raises ValueError for
    shapes that do not fit.
    """
    given_heads = checked("heads", given_heads, np.int32, None, None)
    cdef const int32_t[:, ::1] heads = given_heads
    cdef const int32_t[:, ::1] labels = checked(
        "labels", given_labels, np.int32, *given_heads.shape
    )
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], n_groups = 0
    cdef Py_ssize_t mask = 16
    while mask < 2 * k:
        mask *= 2
    table_array = np.empty(mask, dtype=np.intp)
    group_array = np.zeros(k, dtype=np.intp)
    first_array = np.empty(k, dtype=np.intp)
    cdef Py_ssize_t[::1] table = table_array, group = group_array, first = first_array
    if k and n:
        with nogil:
            n_groups = group_rows(
                &heads[0, 0], &labels[0, 0], k, n, &table[0], mask - 1, &group[0], &first[0]
            )
    elif k:  # trees of no words are all alike
        first[0], n_groups = 0, 1
    return group_array, first_array[:n_groups].copy()


cdef Py_ssize_t group_rows(
    const int32_t *heads, const int32_t *labels, Py_ssize_t k, Py_ssize_t n,
    Py_ssize_t *table, Py_ssize_t mask, Py_ssize_t *group, Py_ssize_t *first,
) noexcept nogil:
    cdef Py_ssize_t j, m, slot, found, n_groups = 0
    cdef size_t row_bytes = n * sizeof(int32_t)
    cdef uint64_t value
    cdef const int32_t *own_heads
    cdef const int32_t *own_labels
    for slot in range(mask + 1):
        table[slot] = -1
    for j in range(k):
        own_heads, own_labels = heads + j * n, labels + j * n
        value = 0
        for m in range(n):
            value = (value ^ <uint32_t>own_heads[m]) * MULTIPLIER
            value = (value ^ (value >> 29) ^ <uint32_t>own_labels[m]) * MULTIPLIER
            value ^= value >> 32
        slot = <Py_ssize_t>(value & <uint64_t>mask)
        while True:
            found = table[slot]
            if found < 0:
                table[slot] = group[j] = n_groups
                first[n_groups] = j
                n_groups += 1
                break
            if (
                not memcmp(heads + first[found] * n, own_heads, row_bytes)
                and not memcmp(labels + first[found] * n, own_labels, row_bytes)
            ):
                group[j] = found
                break
            slot = (slot + 1) & mask
    return n_groups
