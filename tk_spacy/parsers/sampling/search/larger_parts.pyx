"""Scores of the parts that the arcs of a lattice form: pairs, triples and crossing arcs.

They are looked up in tables that are filled when a part is met for the first time, so a climbing
step costs look-ups and no part is scored that the search never meets.  Pairs have a table with a
cell for each; triples are hashed.

Source: the parts are Zhang et al. (EMNLP 2014)'s.  Ours differ in that they know their labels.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from tk_spacy.features.columns cimport G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, S, T, WIDTH
from tk_spacy.features.hashing cimport mix
from tk_spacy.features.templates cimport Sink, id_sink, listed_score, part_features
from tk_spacy.parsers.sampling.search.pair_kernel cimport with_kernel
from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model

cdef enum:
    BOUNDARY_LABEL = 1


cdef void pair_part(Lattice *g, int kind, int outer, int arc, int32_t *part) noexcept nogil:
    """The row of a sibling (outer is the nearer one's arc) or grandparent part (outer is above)."""
    begin_part(g, part, arc)
    if kind == GRANDPARENT:
        put_above(g, part, outer)
    else:
        put_sibling(g, part, S, LABEL_S, outer)


cdef float pair_score(
    Lattice *g, const Model *model, int kind, int outer, int arc, int64_t at
) noexcept nogil:
    """Score of a pair, which stands at `at` in the table; a kernel's share included."""
    cdef int32_t part[WIDTH]
    cdef float value
    pair_part(g, kind, outer, arc, part)
    value = hashed_score(g, model, kind, part)
    return value if g.own_pairs == NULL else with_kernel(g, kind, outer, at, value)


cdef float triple_score(
    Lattice *g, const Model *model, int kind, int a, int s, int m
) noexcept nogil:
    """Score of a grand-sibling (kind 3, a the arc into the head) or tri-sibling (kind 4)."""
    cdef uint64_t width = g.n_arcs + 1
    cdef uint64_t key = ((<uint64_t>(a + 1) * width + <uint64_t>(s + 1)) * width + m) * 2 + kind - 2
    cdef uint64_t slot = mix(key, 0) & (g.n_slots - 1)
    cdef int32_t part[WIDTH]
    cdef float value
    while g.keys[slot] != 0:
        if g.keys[slot] == key:
            return g.values[slot]
        slot = (slot + 1) & (g.n_slots - 1)
    begin_part(g, part, m)
    put_sibling(g, part, S, LABEL_S, s)
    if kind == 3:
        put_above(g, part, a)
    else:
        put_sibling(g, part, T, LABEL_T, a)
    value = hashed_score(g, model, kind, part)
    if 2 * (g.n_keys + 1) > g.n_slots and not more_slots(g):
        g.failed = True  # the value is right, only not kept
        return value
    slot = mix(key, 0) & (g.n_slots - 1)
    while g.keys[slot] != 0:
        slot = (slot + 1) & (g.n_slots - 1)
    g.keys[slot] = key
    g.values[slot] = value
    g.n_keys += 1
    return value


cdef inline void begin_part(Lattice *g, int32_t *part, int arc) noexcept nogil:
    """The part of an arc alone."""
    part[G] = part[T] = part[S] = -1
    part[LABEL_H] = part[LABEL_T] = part[LABEL_S] = 0
    part[H] = g.head[arc]
    part[M] = g.mod[arc]
    part[LABEL_M] = g.label[arc]


cdef inline void put_above(Lattice *g, int32_t *part, int arc) noexcept nogil:
    """Add the arc into the head."""
    part[G] = g.head[arc]
    part[LABEL_H] = g.label[arc]


cdef inline void put_sibling(
    Lattice *g, int32_t *part, int slot, int label_slot, int arc
) noexcept nogil:
    """Add the arc of a nearer sibling, NONE for the first modifier's boundary."""
    part[slot] = g.mod[arc] if arc >= 0 else g.n + 1
    part[label_slot] = g.label[arc] if arc >= 0 else BOUNDARY_LABEL


cdef bint more_slots(Lattice *g) noexcept nogil:
    """Twice the slots; False, and all as before, without memory."""
    cdef uint64_t n_slots = 2 * g.n_slots, i, slot
    cdef uint64_t *keys = <uint64_t *>malloc(n_slots * sizeof(uint64_t))
    cdef float *values = <float *>malloc(n_slots * sizeof(float))
    if keys == NULL or values == NULL:
        free(keys)
        free(values)
        return False
    memset(keys, 0, n_slots * sizeof(uint64_t))
    for i in range(g.n_slots):
        if g.keys[i] == 0:
            continue
        slot = mix(g.keys[i], 0) & (n_slots - 1)
        while keys[slot] != 0:
            slot = (slot + 1) & (n_slots - 1)
        keys[slot] = g.keys[i]
        values[slot] = g.values[i]
    free(g.keys)
    free(g.values)
    g.keys = keys
    g.values = values
    g.key_memory.data = keys
    g.key_memory.size = n_slots * sizeof(uint64_t)
    g.value_memory.data = values
    g.value_memory.size = n_slots * sizeof(float)
    g.n_slots = n_slots
    return True


cdef float hashed_score(
    Lattice *g, const Model *model, int kind, const int32_t *part
) noexcept nogil:
    cdef Sink sink = id_sink(g.ids, model.mask)
    part_features(&sink, &g.words, kind, part)
    return <float>listed_score(&sink, model.weights)
