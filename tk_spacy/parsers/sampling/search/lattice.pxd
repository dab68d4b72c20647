# The arcs a sentence may have, and the memory for what they score (see lattice.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.sampling.search.structs cimport Buffer, Lattice, Model

cdef void *ensure(Buffer *buffer, size_t size) noexcept nogil
cdef void release(Lattice *g) noexcept nogil
cdef int begin(Lattice *g, const Words *x, const Model *model) noexcept nogil
cdef int build(
    Lattice *g, const Model *model, const int32_t *gold_heads, const int32_t *gold_labels,
    double head_cost, double label_cost, double arc_margin,
) noexcept nogil
cdef int take(
    Lattice *g, const int64_t *first, const int32_t *head, const int32_t *label,
    const double *score,
) noexcept nogil
cdef int arrange(Lattice *g, const Model *model) noexcept nogil
