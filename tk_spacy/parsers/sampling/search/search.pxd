# The search for a sentence's best trees: its state and its memory (see search.pyx).

from libc.stdint cimport int32_t, uint64_t

from tk_spacy.parsers.sampling.search.structs cimport Buffer, Lattice, Model, Search

cdef void release_search(Search *s) noexcept nogil
cdef int search(
    Lattice *g, const Model *model, Search *s, int room, int exact, int starts, int patience,
    double temperature, uint64_t seed,
) noexcept nogil
cdef int search_again(Lattice *g, const Model *model, Search *s) noexcept nogil
cdef void rescore(Lattice *g, const Model *model, Search *s) noexcept nogil
cdef int has_tree(Lattice *g, const Model *model, Search *s) noexcept nogil
