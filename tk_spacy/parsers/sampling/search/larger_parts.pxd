# Scores of the parts that the arcs of a lattice form (see larger_parts.pyx).

from libc.stdint cimport int32_t, int64_t, uint32_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model

cdef enum:
    SIBLING = 1              # kinds of pairs, as in part_types.PART_TYPES
    GRANDPARENT = 2


cdef void pair_part(Lattice *g, int kind, int outer, int arc, int32_t *part) noexcept nogil
cdef float pair_score(
    Lattice *g, const Model *model, int kind, int outer, int arc, int64_t at
) noexcept nogil
cdef float triple_score(
    Lattice *g, const Model *model, int kind, int a, int s, int m
) noexcept nogil


cdef inline int64_t grandparent_place(Lattice *g, int above, int arc) noexcept nogil:
    """Where `pairs` has the chain of two arcs."""
    return g.pair_at[arc] + above - g.first[g.head[arc]]


cdef inline int64_t sibling_place(Lattice *g, int near, int arc) noexcept nogil:
    """Where `pairs` has two adjacent modifiers; near is NONE for the first."""
    cdef int h = g.head[arc]
    cdef int64_t at = g.pair_at[arc] + (g.first[h + 1] - g.first[h] if h > 0 else 0)
    return at + 1 + g.rank[near] if near >= 0 else at


cdef inline double grandparent(Lattice *g, const Model *model, int above, int arc) noexcept nogil:
    """Score of the chain of two arcs, `above` into the head of `arc`; 0 under the root."""
    cdef int64_t at
    cdef float value
    if above < 0 or model.order < 2:
        return 0.0
    at = grandparent_place(g, above, arc)
    value = g.pairs[at]
    if value != value:
        value = g.pairs[at] = pair_score(g, model, GRANDPARENT, above, arc, at)
    return value


cdef inline double sibling(Lattice *g, const Model *model, int near, int arc) noexcept nogil:
    """Score of two adjacent modifiers of one head on one side; near is NONE for the first."""
    cdef int64_t at
    cdef float value
    if model.order < 2:
        return 0.0
    at = sibling_place(g, near, arc)
    value = g.pairs[at]
    if value != value:
        value = g.pairs[at] = pair_score(g, model, SIBLING, near, arc, at)
    return value


cdef inline double chain_term(
    Lattice *g, const Model *model, int above, int far, int near, int arc
) noexcept nogil:
    """All that `arc` scores with its neighbours towards the head.

    above: the arc into the head, NONE under the root.  near: the arc of the nearer sibling, far
    that sibling's own; NONE where there is none.
    """
    cdef double total = sibling(g, model, near, arc)
    if model.order > 2:
        if above >= 0:
            total += triple_score(g, model, 3, above, near, arc)
        if near >= 0:
            total += triple_score(g, model, 4, far, near, arc)
    return total
