"""The arc kernel's explicit feature map, hashed: a table of weights, whatever the support's size.

Source: the kernel of two arcs is the number of combinations (a property of the head, one of the
edge, one of the modifier) that both have (Taub-Tabib et al. 2015, section 2), so the support's
score of an arc is linear in the arc's combinations.  Their weights are summed into a table of 2^b
cells, each at the place and with the sign that a hash of the combination says (Weinberger et al.,
ICML 2009): the expected score is the exact one, and where combinations meet in a cell they add
noise, the less the larger the table.

A combination's hash is the exclusive or of the hashes of its three properties, which is tabulation
hashing (Patrascu and Thorup, JACM 2012: any three combinations are hashed independently), and lets
an arc's hashes be made of some 40 numbers.  That edges should differ in a few low bits only, so
that what two words have with different edges lies close together, was tried: with tables that fit a
second-level cache it was no faster, and combinations of the same two words met far too often.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint32_t, uint64_t

import numpy as np

from tk_spacy.utils.index_checks cimport check_power, check_values
from tk_spacy.kernels.template_kernel cimport length_bin
from tk_spacy.parallel.stopping cimport Listener, is_stopped

from tk_spacy.parallel.threads import effective_n_threads

cdef extern from "hashed_sum.h":
    double tk_map_sum(
        const float *table, uint32_t mask, const uint32_t *heads, Py_ssize_t n_heads,
        const uint32_t *edges, Py_ssize_t n_edges, const uint32_t *modifiers,
        Py_ssize_t n_modifiers,
    ) noexcept nogil

cdef enum:
    HEAD = 0
    EDGE = 1
    MODIFIER = 2
    SKIPPED = -1    # in place of a property's number: the slot is left out
    LABEL = 0
    DISTANCE = 1
    LENGTH = 2

cdef uint32_t SIGN = 0x80000000


cdef inline uint32_t hash_property(
    uint64_t seed, int slot, int32_t number, int32_t value
) noexcept nogil:
    """32 bits for a value of a property in a slot: splitmix64 over all that identifies it."""
    cdef uint64_t x = seed * <uint64_t>0x9E3779B97F4A7C15
    x += (<uint64_t>(<uint32_t>number) << 34) ^ (<uint64_t>slot << 32) ^ <uint64_t>(<uint32_t>value)
    x += <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    x = x ^ (x >> 31)
    return <uint32_t>(x >> 32)


cdef inline int hash_edge(
    uint64_t seed, int32_t distance, int32_t skip, uint32_t *out
) noexcept nogil:
    """The hashes of what an arc's edge has beside its label; their number."""
    cdef int n = 0
    if skip:
        out[n] = hash_property(seed, EDGE, SKIPPED, 0)
        n += 1
    if distance != 0:
        out[n] = hash_property(seed, EDGE, DISTANCE, distance)
        out[n + 1] = hash_property(seed, EDGE, LENGTH, length_bin(distance))
        n += 2
    return n


cdef inline uint32_t hash_label(uint64_t seed, int32_t label) noexcept nogil:
    return hash_property(seed, EDGE, LABEL, label)


def node_hashes(const int32_t[:, ::1] nodes not None, int slot, int skip, uint64_t seed):
    """The hashes of the properties that each node has, in one slot.

    nodes: int32[r, P].  slot: 0 for heads, 2 for modifiers.  skip: 1 where the slot may be left
    out, which is then one more property.
    Returns (starts, values): those of row i are values[starts[i]:starts[i + 1]]; int32[r + 1] and
    uint32[_].
    """
    cdef Py_ssize_t i, n = 0
    cdef int32_t p
    if skip not in (0, 1):
        raise ValueError(f"skip is {skip}, expected 0 or 1")
    starts = np.zeros(nodes.shape[0] + 1, dtype=np.int32)
    values = np.empty(nodes.shape[0] * (nodes.shape[1] + skip), dtype=np.uint32)
    cdef int32_t[::1] out_starts = starts
    cdef uint32_t[::1] out = values
    with nogil:
        for i in range(nodes.shape[0]):
            if skip:
                out[n] = hash_property(seed, slot, SKIPPED, 0)
                n += 1
            for p in range(<int32_t>nodes.shape[1]):
                if nodes[i, p] != 0:
                    out[n] = hash_property(seed, slot, p, nodes[i, p])
                    n += 1
            out_starts[i + 1] = <int32_t>n
    return starts, values[:n]


def add_support(
    const int32_t[:, ::1] nodes not None, const int32_t[:, ::1] columns not None,
    const double[::1] weights not None, skips, uint64_t seed, double[::1] table not None,
):
    """Adds the combinations of support arcs, with the arcs' weights, to a table.

    nodes: int32[s, P].  columns: int32[5, q] (head's row, label, distance, length, modifier's row),
    see SupportParts.  weights: float64[q].  skips: of the three slots.  table: float64[2 ** bits].
    Runs on one thread, in the order of the parts.
    """
    cdef const int32_t[::1] head_starts, modifier_starts
    cdef const uint32_t[::1] heads, modifiers
    if columns.shape[0] != 5 or columns.shape[1] != weights.shape[0]:
        raise ValueError(
            f"columns have shape {(columns.shape[0], columns.shape[1])}, expected "
            f"{(5, weights.shape[0])}"
        )
    check_power(table.shape[0], "table")
    check_values(columns[0], 0, <int32_t>nodes.shape[0] - 1, "columns[0]")
    check_values(columns[4], 0, <int32_t>nodes.shape[0] - 1, "columns[4]")
    head_starts, heads = node_hashes(nodes, HEAD, skips[0], seed)
    modifier_starts, modifiers = node_hashes(nodes, MODIFIER, skips[2], seed)
    cdef int skip_edge = skips[1], n_edges, e
    cdef uint32_t mask = <uint32_t>(table.shape[0] - 1), hashed
    cdef uint32_t edges[4]
    cdef Py_ssize_t q, i, j
    cdef Listener listener = Listener()
    with nogil:
        for q in range(weights.shape[0]):
            if is_stopped(&listener.watch):
                break
            n_edges = hash_edge(seed, columns[2, q], skip_edge, edges)
            if columns[1, q] != 0:
                edges[n_edges] = hash_label(seed, columns[1, q])
                n_edges += 1
            for i in range(head_starts[columns[0, q]], head_starts[columns[0, q] + 1]):
                for j in range(modifier_starts[columns[4, q]], modifier_starts[columns[4, q] + 1]):
                    for e in range(n_edges):
                        hashed = heads[i] ^ edges[e] ^ modifiers[j]
                        if hashed & SIGN:
                            table[hashed & mask] -= weights[q]
                        else:
                            table[hashed & mask] += weights[q]
    listener.check()


def add_map_scores(
    const float[::1] table not None, const int32_t[:, ::1] nodes not None,
    const int32_t[:, ::1] parts not None, skips, uint64_t seed, double[::1] out not None, *,
    n_threads=None,
):
    """Adds to out[i] the score that the table gives arc i.

    table: float32[2 ** bits].  nodes: int32[r, P].  parts: int32[p, 4], arcs in slot form (head's
    row, label, distance, modifier's row).  out: float64[p].
    """
    if not parts.shape[0]:
        return
    threads = effective_n_threads(n_threads)
    if out.shape[0] != parts.shape[0]:
        raise ValueError(f"out has {out.shape[0]} scores, expected {parts.shape[0]}")
    check_power(table.shape[0], "table")
    check_arcs(parts, nodes.shape[0])
    given = np.asarray(parts)
    # Arcs between the same words share all but what has their labels in it.
    order = np.lexsort((given[:, 3], given[:, 0])).astype(np.int32)
    ends = given[order][:, [0, 3]]
    new = np.flatnonzero(np.diff(ends, axis=0).any(axis=1)) + 1
    groups = np.concatenate([[0], new, [len(order)]]).astype(np.int32)
    head_starts, heads = node_hashes(nodes, HEAD, skips[0], seed)
    modifier_starts, modifiers = node_hashes(nodes, MODIFIER, skips[2], seed)
    _add_map_scores(
        table, parts, order, groups, head_starts, heads, modifier_starts, modifiers, skips[1], seed,
        out, threads,
    )


cdef int check_arcs(const int32_t[:, ::1] parts, Py_ssize_t n_nodes) except -1:
    """Raises ValueError unless parts are arcs in slot form between nodes that there are."""
    cdef Py_ssize_t i, c
    if parts.shape[1] != 4:
        raise ValueError(f"parts have {parts.shape[1]} columns, expected 4")
    for i in range(parts.shape[0]):
        for c in (0, 3):
            if not 0 <= parts[i, c] < n_nodes:
                raise ValueError(
                    f"parts[{i}, {c}] names node {parts[i, c]}, expected 0 to {n_nodes - 1}"
                )
    return 0


cdef void _add_map_scores(
    const float[::1] table,               # IN
    const int32_t[:, ::1] parts,          # IN
    const int32_t[::1] order,             # IN, parts between the same words one after the other
    const int32_t[::1] groups,            # IN, where these begin
    const int32_t[::1] head_starts,       # IN
    const uint32_t[::1] heads,            # IN
    const int32_t[::1] modifier_starts,   # IN
    const uint32_t[::1] modifiers,        # IN
    int skip_edge,
    uint64_t seed,
    double[::1] out,                      # IN, OUT
    int n_threads,
) noexcept:
    cdef Py_ssize_t group
    for group in prange(
        groups.shape[0] - 1, nogil=True, schedule="dynamic", chunksize=8, num_threads=n_threads
    ):
        _score_group(
            table, parts, order, groups[group], groups[group + 1], head_starts, heads,
            modifier_starts, modifiers, skip_edge, seed, out,
        )


cdef void _score_group(
    const float[::1] table, const int32_t[:, ::1] parts, const int32_t[::1] order,
    Py_ssize_t start, Py_ssize_t stop, const int32_t[::1] head_starts, const uint32_t[::1] heads,
    const int32_t[::1] modifier_starts, const uint32_t[::1] modifiers, int skip_edge, uint64_t seed,
    double[::1] out,
) noexcept nogil:
    cdef const int32_t *part = &parts[order[start], 0]
    cdef const uint32_t *head = &heads[0] + head_starts[part[0]]
    cdef const uint32_t *modifier = &modifiers[0] + modifier_starts[part[3]]
    cdef Py_ssize_t n_heads = head_starts[part[0] + 1] - head_starts[part[0]]
    cdef Py_ssize_t n_modifiers = modifier_starts[part[3] + 1] - modifier_starts[part[3]]
    cdef uint32_t mask = <uint32_t>(table.shape[0] - 1), label
    cdef uint32_t edges[3]
    cdef Py_ssize_t i
    cdef int n_edges
    cdef int32_t distance = 0
    cdef double shared = 0.0
    for i in range(start, stop):
        part = &parts[order[i], 0]
        if i == start or part[2] != distance:
            distance = part[2]
            n_edges = hash_edge(seed, distance, skip_edge, edges)
            shared = tk_map_sum(
                &table[0], mask, head, n_heads, edges, n_edges, modifier, n_modifiers
            )
        out[order[i]] += shared
        if part[1] != 0:
            label = hash_label(seed, part[1])
            out[order[i]] += tk_map_sum(
                &table[0], mask, head, n_heads, &label, 1, modifier, n_modifiers
            )
