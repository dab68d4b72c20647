"""The keys of all features that parts have, slot by slot; see slot_space.py."""

from libc.stdint cimport int32_t, uint64_t

import numpy as np

from tk_spacy.kernels.template_kernel cimport NODE, length_bin
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_values


def slot_keys(nodes, parts, kinds, columns, first_slot):
    """The features of parts.

    nodes: int32[r, P], property ids.  parts: int32[p, w], in slot form, naming rows of nodes.
    kinds, columns: int32[s], see TypeSlots.  first_slot: number of the type's first slot.

    Returns (starts, keys): those of part i are keys[starts[i]:starts[i + 1]], slot after slot and
    ascending; int32[p + 1] and uint64[_].  What a node or edge lacks (0) is left out.
    Raises TypeError or ValueError for arrays that do not fit.
    """
    nodes = checked("nodes", nodes, np.int32, None, None)
    parts = checked("parts", parts, np.int32, None, None)
    kinds = checked("kinds", kinds, np.int32, None)
    columns = checked("columns", columns, np.int32, len(kinds))
    cdef const int32_t[:, ::1] words = nodes, given = parts
    cdef const int32_t[::1] of_slots = kinds, places = columns
    cdef Py_ssize_t n = given.shape[0], i, slot, used = 0
    for slot in range(of_slots.shape[0]):
        if not 0 <= places[slot] < given.shape[1] - (of_slots[slot] != NODE):
            raise ValueError(f"columns[{slot}] is {places[slot]}, of {given.shape[1]} columns")
        if of_slots[slot] == NODE:
            check_values(
                parts[:, places[slot]].copy(), 0, <int32_t>words.shape[0] - 1, "nodes of parts"
            )
    most = int(np.where(kinds == NODE, nodes.shape[1], 3).sum())
    if n * most >= 2**31:
        raise ValueError(f"{n} parts of up to {most} features, expected less than 2**31 in all")
    starts = np.zeros(n + 1, dtype=np.int32)
    keys = np.empty(n * most, dtype=np.uint64)
    cdef int32_t[::1] begins = starts
    cdef uint64_t[::1] out = keys
    cdef uint64_t first = first_slot
    with nogil:
        for i in range(n):
            for slot in range(of_slots.shape[0]):
                if of_slots[slot] == NODE:
                    used += node_keys(
                        &words[given[i, places[slot]], 0], words.shape[1], first + slot,
                        &out[0] + used,
                    )
                else:
                    used += edge_keys(
                        given[i, places[slot]], given[i, places[slot] + 1], first + slot,
                        &out[0] + used,
                    )
            begins[i + 1] = <int32_t>used
    return starts, keys[:used].copy()


cdef int node_keys(
    const int32_t *node, Py_ssize_t n, uint64_t slot, uint64_t *out
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int found = 0
    for i in range(n):
        if node[i] != 0:
            out[found] = slot_key(slot, i, node[i])
            found += 1
    return found


cdef int edge_keys(
    int32_t label, int32_t distance, uint64_t slot, uint64_t *out
) noexcept nogil:
    cdef int found = 0
    if label != 0:
        out[0] = slot_key(slot, LABEL, label)
        found = 1
    if distance != 0:
        out[found] = slot_key(slot, DISTANCE, distance)
        out[found + 1] = slot_key(slot, LENGTH, length_bin(distance))
        found += 2
    return found
