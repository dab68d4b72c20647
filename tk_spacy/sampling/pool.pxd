# The best distinct trees met by a search (see pool.pyx).

from tk_spacy.sampling.lattice cimport Lattice
from tk_spacy.sampling.search cimport Pool, Search


cdef void offer(Lattice *g, Search *s, int m, int b, double score) noexcept nogil
cdef void set_least(Pool *pool) noexcept nogil
