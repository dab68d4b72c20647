"""The tree at hand of a search: set up from its arcs, scored from scratch.

How one word of it changes places, and what that changes of the score: see climbing.pyx.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from tk_spacy.parsers.sampling.search.crossing cimport crosses
from tk_spacy.parsers.sampling.search.larger_parts cimport chain_term, grandparent
from tk_spacy.parsers.sampling.search.structs cimport CROSSING_UNIT, NONE, Lattice, Model, Search


cdef double exact_score(
    Lattice *g, const Model *model, Search *s, const int32_t *arcs
) noexcept nogil:
    """The score of a tree, which becomes the one at hand."""
    set_tree(g, s, arcs)
    return total_score(g, model, s)


cdef void set_tree(Lattice *g, Search *s, const int32_t *arcs) noexcept nogil:
    """Make the tree of these arcs the one at hand; its score is not computed."""
    cdef int n = g.n, m, h, a
    cdef int32_t *last = s.stack
    if arcs != s.arc:
        memcpy(s.arc, arcs, (n + 1) * sizeof(int32_t))
    s.arc[0] = NONE
    s.low[0] = 0
    s.high[0] = 0
    s.crossing[0] = 0
    memset(s.prev, 0, (n + 1) * sizeof(int32_t))
    memset(s.next, 0, (n + 1) * sizeof(int32_t))
    memset(s.nearest, 0, 2 * (n + 1) * sizeof(int32_t))
    memset(last, 0, (n + 1) * sizeof(int32_t))
    s.hash = 0
    for m in range(1, n + 1):
        a = s.arc[m]
        s.hash ^= mark(g, a)
        h = g.head[a]
        set_ends(g, s, m, a)
        if h < m:
            s.prev[m] = last[h]
            if last[h]:
                s.next[last[h]] = m
            else:
                s.nearest[2 * h + 1] = m
            last[h] = m
    memset(last, 0, (n + 1) * sizeof(int32_t))
    for m in range(n, 0, -1):
        h = g.head[s.arc[m]]
        if h > m:
            s.prev[m] = last[h]
            if last[h]:
                s.next[last[h]] = m
            else:
                s.nearest[2 * h] = m
            last[h] = m


cdef double total_score(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """The score of the tree at hand, from scratch."""
    cdef int m, a, above, near
    cdef int64_t crossings = 0
    cdef int other
    cdef double total = 0.0
    for m in range(1, g.n + 1):
        a = s.arc[m]
        above = s.arc[g.head[a]]
        near = s.prev[m]
        for other in range(1, m):
            if crosses(s.low[other], s.high[other], s.low[m], s.high[m]):
                crossings += s.crossing[other] + s.crossing[m]
        total += (
            g.score[a]
            + grandparent(g, model, above, a)
            + chain_term(g, model, above, s.arc[s.prev[near]], s.arc[near], a)
        )
    return total + <double>crossings / CROSSING_UNIT
