# The best distinct trees met by a search (see pool.pyx).

from tk_spacy.parsers.sampling.search.structs cimport Lattice, Pool, Search


cdef void offer(Lattice *g, Search *s, int m, int b, double score) noexcept nogil
cdef void set_least(Pool *pool) noexcept nogil
