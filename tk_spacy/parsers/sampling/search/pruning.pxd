# Which heads a word keeps (see pruning.pyx).

from libc.stdint cimport int32_t

from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model


cdef int score_heads(Lattice *g, const Model *model) noexcept nogil
cdef int keep_heads(Lattice *g, const Model *model, const int32_t *tree) noexcept nogil
