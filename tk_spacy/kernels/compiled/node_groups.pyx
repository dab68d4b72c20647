"""Properties of nodes in groups, and a number for each distinct combination of a group's values.

A word's own tags and features, its left neighbour's tags, its right neighbour's: a treebank has few
hundred distinct combinations of each, so what a combination has in common with the support parts is
worth keeping (see blocks.pyx).  Word forms are too many for that; they stay single properties.
"""

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy

import numpy as np

from tk_spacy.utils.array_checks import checked


cdef class Interner:
    """Numbers the distinct rows of int32[width] from 0 on, in the order in which they come."""

    def __cinit__(self, Py_ssize_t width):
        self.width = width
        self.size = 0
        self.capacity = 64
        self.n_slots = 256
        self.values = <int32_t *>malloc(self.capacity * max(width, 1) * sizeof(int32_t))
        self.slots = <int32_t *>calloc(self.n_slots, sizeof(int32_t))
        if self.values == NULL or self.slots == NULL:
            raise MemoryError("no memory for combinations of properties")

    def __dealloc__(self):
        free(self.values)
        free(self.slots)

    cdef int32_t intern(self, const int32_t *values) except -1:
        cdef Py_ssize_t slot = _place(values, self.width, self.n_slots)
        while self.slots[slot]:
            if memcmp(
                self.values + (self.slots[slot] - 1) * self.width, values,
                self.width * sizeof(int32_t),
            ) == 0:
                return self.slots[slot] - 1
            slot = (slot + 1) & (self.n_slots - 1)
        if self.size == self.capacity:
            self._grow()
            slot = _place(values, self.width, self.n_slots)
            while self.slots[slot]:
                slot = (slot + 1) & (self.n_slots - 1)
        memcpy(self.values + self.size * self.width, values, self.width * sizeof(int32_t))
        self.size += 1
        self.slots[slot] = <int32_t>self.size
        return <int32_t>(self.size - 1)

    cdef int _grow(self) except -1:
        cdef Py_ssize_t i, slot, n_slots = 2 * self.n_slots
        cdef int32_t *values = <int32_t *>realloc(
            self.values, 2 * self.capacity * max(self.width, 1) * sizeof(int32_t)
        )
        if values == NULL:
            raise MemoryError("no memory for combinations of properties")
        self.values = values
        cdef int32_t *slots = <int32_t *>calloc(n_slots, sizeof(int32_t))
        if slots == NULL:
            raise MemoryError("no memory for combinations of properties")
        for i in range(self.size):
            slot = _place(self.values + i * self.width, self.width, n_slots)
            while slots[slot]:
                slot = (slot + 1) & (n_slots - 1)
            slots[slot] = <int32_t>(i + 1)
        free(self.slots)
        self.slots = slots
        self.n_slots = n_slots
        self.capacity *= 2
        return 0


cdef inline Py_ssize_t _place(const int32_t *values, Py_ssize_t width, Py_ssize_t n) noexcept nogil:
    cdef uint64_t code = 0
    cdef Py_ssize_t i
    for i in range(width):
        code = (code ^ <uint64_t>values[i]) * <uint64_t>0x9E3779B97F4A7C15ULL
        code ^= code >> 29
    return <Py_ssize_t>(code & <uint64_t>(n - 1))


class NodeGroups:
    """A partition of node properties: groups with few combinations, and single properties.

    groups: columns of node rows; every column that is in none stands singly.  n_properties: width
    of node rows.  Raises ValueError where a column is out of range or in two groups.
    """

    def __init__(self, groups, n_properties):
        named = [column for group in groups for column in group]
        if sorted(set(named)) != sorted(named) or not set(named) <= set(range(n_properties)):
            raise ValueError(f"groups {groups} are no partition of 0..{n_properties - 1}")
        self.n_properties = n_properties
        self.groups = [np.array(group, dtype=np.int32) for group in groups if len(group)]
        self.singles = np.array(sorted(set(range(n_properties)) - set(named)), dtype=np.int32)
        self.clear()

    def clear(self):
        """Forget all combinations; numbers given before are void."""
        self.interners = [Interner(len(group)) for group in self.groups]

    def __len__(self):
        """The number of combinations known, of all groups."""
        return sum(interner.size for interner in self.interners)

    def encode(self, nodes):
        """Numbers of combinations and values of single properties.

        nodes: int32[r, P].  Returns (int32[r, G], int32[r, S]).
        """
        nodes = checked("nodes", nodes, np.int32, None, self.n_properties)
        ids = np.empty((len(nodes), len(self.groups)), dtype=np.int32)
        for g, (columns, interner) in enumerate(zip(self.groups, self.interners)):
            _encode(nodes, columns, interner, ids, g)
        return ids, np.ascontiguousarray(nodes[:, self.singles])


cdef int _encode(
    const int32_t[:, ::1] nodes,     # IN
    const int32_t[::1] columns,      # IN
    Interner interner,               # IN, OUT
    int32_t[:, ::1] ids,             # OUT
    Py_ssize_t g,
) except -1:
    cdef Py_ssize_t i, w
    cdef int32_t[::1] values = np.empty(columns.shape[0], dtype=np.int32)
    for i in range(nodes.shape[0]):
        for w in range(columns.shape[0]):
            values[w] = nodes[i, columns[w]]
        ids[i, g] = interner.intern(&values[0])
    return 0


def first_equal(const int32_t[:, ::1] ids not None, const int32_t[:, ::1] singles not None):
    """For each word the first that equals it in all properties: int32[r].

    ids: int32[r, G], singles: int32[r, S], as NodeGroups.encode gives them.  Raises ValueError
    where there are not as many of both.
    """
    cdef Py_ssize_t n_groups = ids.shape[1], n_singles = singles.shape[1], i, w
    if ids.shape[0] != singles.shape[0]:
        raise ValueError(f"{ids.shape[0]} ids for {singles.shape[0]} singles, expected as many")
    cdef Interner interner = Interner(n_groups + n_singles)
    cdef int32_t[::1] values = np.empty(max(1, n_groups + n_singles), dtype=np.int32)
    found = np.empty(ids.shape[0], dtype=np.int32)
    first_rows = np.empty(ids.shape[0], dtype=np.int32)
    cdef int32_t[::1] out = found, first = first_rows
    cdef int32_t number
    for i in range(ids.shape[0]):
        for w in range(n_groups):
            values[w] = ids[i, w]
        for w in range(n_singles):
            values[n_groups + w] = singles[i, w]
        number = <int32_t>interner.size
        out[i] = interner.intern(&values[0])
        if out[i] == number:
            first[number] = <int32_t>i
        out[i] = first[out[i]]
    return found
