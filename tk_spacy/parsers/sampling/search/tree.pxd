# The tree at hand of a search (see tree.pyx).

from libc.stdint cimport int32_t, uint64_t

from tk_spacy.features.hashing cimport mix
from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model, Search


cdef void set_tree(Lattice *g, Search *s, const int32_t *arcs) noexcept nogil
cdef double exact_score(
    Lattice *g, const Model *model, Search *s, const int32_t *arcs
) noexcept nogil


cdef inline uint64_t mark(Lattice *g, int a) noexcept nogil:
    """A random number for an arc; the tree's hash is the exclusive or of its arcs'."""
    # The modifier is mixed before the head joins it: mix() is symmetric in its arguments.
    cdef uint64_t value = mix(mix(mix(mix(g.mod[a], 99), g.head[a]), g.label[a]), 99)
    return mix(value, value >> 7)


cdef inline void set_ends(Lattice *g, Search *s, int m, int a) noexcept nogil:
    cdef int h = g.head[a]
    s.low[m] = h if h < m else m
    s.high[m] = m if h < m else h
    s.crossing[m] = g.crossing[a]
