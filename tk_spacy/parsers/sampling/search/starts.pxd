# The trees that climbing starts from (see starts.pyx).

from libc.stdint cimport int32_t

from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model, Search


cdef int first_order_trees(Lattice *g, const Model *model, Search *s, int exact) noexcept nogil
cdef void choose_arcs(Lattice *g, Search *s, const int32_t *heads) noexcept nogil
cdef void chances(Lattice *g, Search *s, double temperature) noexcept nogil
cdef bint draw_start(Lattice *g, const Model *model, Search *s) noexcept nogil
