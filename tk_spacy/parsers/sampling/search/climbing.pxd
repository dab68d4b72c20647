# Hill climbing over the trees of a lattice (see climbing.pyx).

from tk_spacy.parsers.sampling.search.structs cimport Lattice, Model, Search


cdef void climb(Lattice *g, const Model *model, Search *s) noexcept nogil


cdef inline double beyond_rounding(double score) noexcept nogil:
    """What a score must exceed to be really higher than this one."""
    return score + 1e-7
