"""The best distinct trees met by a search; trees are told apart by the hashes of their arcs."""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from tk_spacy.parsers.sampling.search.structs cimport Lattice, Pool, Search
from tk_spacy.parsers.sampling.search.tree cimport mark


cdef void offer(Lattice *g, Search *s, int m, int b, double score) noexcept nogil:
    """Keep the tree at hand, word m by arc b, if it is new; in place of the worst where full."""
    cdef Pool *pool = &s.pool
    cdef uint64_t value = s.hash
    cdef int i, at, width = s.n + 1
    if m:
        value ^= mark(g, s.arc[m]) ^ mark(g, b)
    for i in range(pool.size):
        if pool.hashes[i] == value:
            return
    if pool.size < pool.room:
        at = pool.size
        pool.size += 1
    else:
        at = 0
        for i in range(1, pool.size):
            if pool.scores[i] < pool.scores[at]:
                at = i
    pool.scores[at] = score
    pool.hashes[at] = value
    memcpy(pool.arcs + at * width, s.arc, width * sizeof(int32_t))
    if m:
        pool.arcs[at * width + m] = b
    set_least(pool)


cdef void set_least(Pool *pool) noexcept nogil:
    """Note the lowest score kept, once the pool is full."""
    cdef int i
    if pool.size == pool.room:
        pool.least = pool.scores[0]
        for i in range(1, pool.size):
            if pool.scores[i] < pool.least:
                pool.least = pool.scores[i]
