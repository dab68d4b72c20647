"""The search for the best trees of a lattice: climbs from many starts, keeping the best trees met.

The first starts are the best first-order trees, the others are drawn at random (starts.pyx).  From
each the tree is improved word by word (climbing.pyx), and every tree whose score becomes known on
the way, neighbours included, may enter the list of the best (pool.pyx).

Source: Zhang, Lei, Barzilay and Jaakkola (EMNLP 2014, "Greed is good if randomized").  Ours differs
in that arcs carry labels, and in that list.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from tk_spacy.features.hashing cimport mix
from tk_spacy.parallel.stopping cimport is_stopped
from tk_spacy.parsers.sampling.search.climbing cimport beyond_rounding, climb
from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.parsers.sampling.search.pool cimport offer, set_least
from tk_spacy.parsers.sampling.search.starts cimport (
    chances, choose_arcs, draw_start, first_order_trees,
)
from tk_spacy.parsers.sampling.search.structs cimport NONE, STOPPED, Lattice, Model, Pool, Search
from tk_spacy.parsers.sampling.search.tree cimport exact_score
from tk_spacy.trees.spanning cimport free_spanning


cdef int search(
    Lattice *g, const Model *model, Search *s, int room, int exact, int starts, int patience,
    double temperature, uint64_t seed,
) noexcept nogil:
    """Climb from up to `starts` trees; the best tree's arcs are s.best, its score s.score.

    room: trees kept in the pool.  exact: how many of the first starts are the best first-order
    trees; the others are drawn.  patience: starts in a row without a better tree that end the
    search.  temperature: of the distribution that starts are drawn from.
    Returns 0, 1 where the lattice has no tree, -1 without memory, STOPPED where asked to end.
    """
    cdef int i, idle = 0, found
    cdef double best = -INFINITY
    exact = max(1, min(exact, starts))
    if reserve(g, s, room, exact, starts) < 0:
        return -1
    s.random = mix(seed, <uint64_t>0x2545F4914F6CDD1DULL)
    found = first_order_trees(g, model, s, exact)
    if found <= 0:
        return 1 if found == 0 else -1
    for i in range(starts):
        if is_stopped(g.watch):
            return STOPPED
        if i < found:
            choose_arcs(g, s, s.heads + i * (s.n + 1))
        else:
            if i == found:
                chances(g, s, temperature)
            if not draw_start(g, model, s):
                continue
        s.score = exact_score(g, model, s, s.start)
        if s.pool.room and s.score > s.pool.least:
            offer(g, s, 0, NONE, s.score)
        climb(g, model, s)
        if s.score > beyond_rounding(best):
            best = s.score
            memcpy(s.best, s.arc, (s.n + 1) * sizeof(int32_t))
            idle = 0
        else:
            idle += 1
            if idle >= patience:
                break
    s.score = best
    return -1 if g.failed else 0


cdef int search_again(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """Climb on from the best tree of the pool, after scores of the lattice have changed.

    The pool's scores must be those of now (`rescore`).  Returns 0, or -1 without memory.
    """
    cdef int i, best = 0
    for i in range(1, s.pool.size):
        if s.pool.scores[i] > s.pool.scores[best]:
            best = i
    s.n_summits = 0
    s.score = exact_score(g, model, s, s.pool.arcs + best * (s.n + 1))
    climb(g, model, s)
    return -1 if g.failed else 0


cdef void rescore(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """Give the pool's trees the scores that they have now."""
    cdef Pool *pool = &s.pool
    cdef int i
    for i in range(pool.size):
        if is_stopped(g.watch):
            return
        pool.scores[i] = exact_score(g, model, s, pool.arcs + i * (s.n + 1))
    set_least(pool)


cdef int has_tree(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """1 where the arcs make up a tree, 0 where they do not, -1 without memory."""
    if reserve(g, s, 0, 1, 1) < 0:
        return -1
    return first_order_trees(g, model, s, 1)


cdef void release_search(Search *s) noexcept nogil:
    """Give all memory back."""
    free(s.word_memory.data)
    free(s.chance_memory.data)
    free(s.choice_memory.data)
    free(s.pool_memory.data)
    free(s.exact_memory.data)
    free(s.summit_memory.data)
    free_spanning(&s.spanning)
    memset(s, 0, sizeof(Search))


cdef int reserve(Lattice *g, Search *s, int room, int exact, int starts) noexcept nogil:
    cdef int width = g.n + 1
    cdef int32_t *words = <int32_t *>ensure(&s.word_memory, 12 * width * sizeof(int32_t))
    s.n = g.n
    s.chance = <double *>ensure(&s.chance_memory, (g.n_arcs + 2 * width) * sizeof(double))
    s.choice = <int32_t *>ensure(&s.choice_memory, width * width * sizeof(int32_t))
    s.pool.scores = <double *>ensure(
        &s.pool_memory,
        room * (sizeof(double) + sizeof(uint64_t) + width * sizeof(int32_t)) + 8,
    )
    s.totals = <double *>ensure(
        &s.exact_memory, exact * (sizeof(double) + width * sizeof(int32_t))
    )
    s.summits = <uint64_t *>ensure(&s.summit_memory, starts * sizeof(uint64_t))
    s.n_summits = 0
    if s.summits == NULL or s.totals == NULL or words == NULL or s.pool.scores == NULL:
        return -1
    if s.chance == NULL or s.choice == NULL:
        return -1
    s.pool.hashes = <uint64_t *>(s.pool.scores + room)
    s.pool.arcs = <int32_t *>(s.pool.hashes + room)
    s.pool.room = room
    s.pool.size = 0
    s.pool.least = -INFINITY
    s.arc = words
    s.prev = words + width
    s.next = words + 2 * width
    s.below = words + 3 * width
    s.stack = words + 4 * width
    s.best = words + 5 * width
    s.heads = <int32_t *>(s.totals + exact)
    s.start = words + 6 * width
    s.low = words + 7 * width
    s.high = words + 8 * width
    s.crossing = words + 9 * width
    s.nearest = words + 10 * width
    memset(s.below, 0, width * sizeof(int32_t))
    s.stamp = 0
    return 0
