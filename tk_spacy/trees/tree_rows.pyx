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

    def take(self, rows):
        """The trees of these rows, intp[_], in their order: they need no other check."""
        cdef const Py_ssize_t[::1] wanted = rows
        cdef Py_ssize_t i = 0
        if wanted.shape[0] == self.rows.shape[0]:
            while i < wanted.shape[0] and wanted[i] == i:
                i += 1
            if i == wanted.shape[0]:  # all of them, as they are
                return self
        return CheckedTrees(_unchangeable(self.heads[rows]), _KNOWN)


def single_rooted(given):
    """Heads int32[k, n] as CheckedTrees, each with exactly one root, and the rows that are not so.

    The former is None where there is a row of the latter: see `invalid_trees`.
    """
    heads = _unchangeable(checked("heads", given, np.int32, None, None))
    bad = _invalid_trees(heads)
    return (None if bad.size else CheckedTrees(heads, _KNOWN)), bad


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
    return _invalid_trees(checked("heads", given, np.int32, None, None))


cdef _invalid_trees(const int32_t[:, ::1] heads):
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], j, m, roots
    cdef int32_t h
    cdef bint fine
    if n == 0:
        return np.arange(k)
    bad_array = np.zeros(k, dtype=np.uint8)
    # The walk in which a word was met last, counted on through all rows; each has its own range.
    seen_array = np.zeros(n + 1, dtype=np.intp)
    cdef uint8_t[::1] bad = bad_array
    cdef Py_ssize_t[::1] seen = seen_array
    cdef Py_ssize_t walk = 0, before
    with nogil:
        for j in range(k):
            roots = 0
            fine = True
            for m in range(n):
                h = heads[j, m]
                if h < 0 or h > n:
                    fine = False
                roots += h == 0
            before = walk
            if fine and roots == 1:
                for m in range(1, n + 1):
                    walk += 1
                    h = <int32_t>m
                    while h > 0 and seen[h] <= before:
                        seen[h] = walk
                        h = heads[j, h - 1]
                    if h > 0 and seen[h] == walk:  # a cycle
                        fine = False
                        break
            bad[j] = not (fine and roots == 1)
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
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], j, other, m, found, n_groups = 0
    cdef Py_ssize_t mask = 16
    while mask < 2 * k:
        mask *= 2
    table_array = np.full(mask, -1, dtype=np.intp)
    group_array = np.empty(k, dtype=np.intp)
    first_array = np.empty(k, dtype=np.intp)
    cdef Py_ssize_t[::1] table = table_array, group = group_array, first = first_array
    cdef Py_ssize_t row_bytes = n * sizeof(int32_t), slot
    cdef uint64_t value
    mask -= 1
    with nogil:
        for j in range(k):
            value = 0
            for m in range(n):
                value = (value ^ <uint32_t>heads[j, m]) * MULTIPLIER
                value = (value ^ (value >> 29) ^ <uint32_t>labels[j, m]) * MULTIPLIER
                value ^= value >> 32
            slot = <Py_ssize_t>(value & <uint64_t>mask)
            while True:
                found = table[slot]
                if found < 0:
                    table[slot] = n_groups
                    first[n_groups] = j
                    group[j] = n_groups
                    n_groups += 1
                    break
                other = first[found]
                if n == 0 or (
                    not memcmp(&heads[other, 0], &heads[j, 0], row_bytes)
                    and not memcmp(&labels[other, 0], &labels[j, 0], row_bytes)
                ):
                    group[j] = found
                    break
                slot = (slot + 1) & mask
    return group_array, first_array[:n_groups].copy()
