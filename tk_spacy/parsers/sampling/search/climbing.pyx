"""Hill climbing over the trees of a lattice.

A step takes one word out of the tree and puts it back under the best of its arcs, which changes the
score by what its neighbours score with it.  Where only one word may be a root, a step of its own
exchanges it.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from tk_spacy.parallel.stopping cimport is_stopped
from tk_spacy.parsers.sampling.search.crossing cimport crosses
from tk_spacy.parsers.sampling.search.larger_parts cimport chain_term, grandparent, triple_score
from tk_spacy.parsers.sampling.search.pool cimport offer
from tk_spacy.parsers.sampling.search.structs cimport CROSSING_UNIT, NONE, Lattice, Model, Search
from tk_spacy.parsers.sampling.search.tree cimport mark, set_ends

cdef enum:
    MAX_SWEEPS = 100     # of one climb; far more than ever needed


cdef void climb(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """Climb to a tree that no step betters, or to one that an earlier climb ended in.

    From such a tree no step would lead on, and its neighbours have been offered already.
    """
    cdef int m, _
    cdef bint changed
    for _ in range(MAX_SWEEPS):
        if is_summit(s):
            return
        changed = False
        for m in range(1, g.n + 1):
            if m & 15 == 0 and is_stopped(g.watch):
                return
            if g.first[m + 1] - g.first[m] > 1 and improve(g, model, s, m):
                changed = True
                if is_summit(s):
                    return
        if not changed and model.single_root:
            changed = exchange_root(g, model, s)
        if not changed:
            s.summits[s.n_summits] = s.hash
            s.n_summits += 1
            return


cdef inline bint is_summit(const Search *s) noexcept nogil:
    cdef int i
    for i in range(s.n_summits):
        if s.summits[i] == s.hash:
            return True
    return False


cdef bint improve(Lattice *g, const Model *model, Search *s, int m) noexcept nogil:
    """Put a word under the best of its arcs; whether that changed the tree."""
    cdef int a = s.arc[m], b, h, best = a
    cdef bint is_root = g.head[a] == 0
    cdef double highest = s.score, total
    mark_below(s, m)
    take_out(g, model, s, m)
    for b in range(g.first[m], g.first[m + 1]):
        h = g.head[b]
        if b == a or s.below[h] == s.stamp or (model.single_root and (h == 0) != is_root):
            continue
        total = s.score + gain(g, model, s, m, b)
        if s.pool.room and total > s.pool.least:
            offer(g, s, m, b, total)
        if total > beyond_rounding(highest):
            highest = total
            best = b
    put_in(g, s, m, best, highest)
    return best != a


cdef bint exchange_root(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """Make another word the root's only child where that pays; whether it did."""
    cdef int old = s.nearest[1], a_old = s.arc[old], m, b, c, a, best
    cdef double score = s.score, highest, total
    cdef uint64_t hash_value = s.hash
    for m in range(1, g.n + 1):
        if is_stopped(g.watch):
            return False
        if m == old:
            continue
        for b in range(g.first[m], g.first[m + 1]):
            if g.head[b] != 0:
                continue
            a = s.arc[m]
            take_out(g, model, s, m)
            put_in(g, s, m, b, s.score + gain(g, model, s, m, b))
            mark_below(s, old)
            take_out(g, model, s, old)
            best = NONE
            highest = beyond_rounding(score)
            for c in range(g.first[old], g.first[old + 1]):
                if g.head[c] == 0 or s.below[g.head[c]] == s.stamp:
                    continue
                total = s.score + gain(g, model, s, old, c)
                if s.pool.room and total > s.pool.least:
                    offer(g, s, old, c, total)
                if total > highest:
                    highest = total
                    best = c
            if best != NONE:
                put_in(g, s, old, best, highest)
                return True
            put_in(g, s, old, a_old, 0.0)
            unlink(g, s, m)
            put_in(g, s, m, a, score)
            s.hash = hash_value
    return False


# Moving one word


cdef void take_out(Lattice *g, const Model *model, Search *s, int m) noexcept nogil:
    """Unlink a word, and take what its arc adds from the score."""
    cdef int near = s.prev[m], far = s.next[m], a = s.arc[m]
    unlink(g, s, m)
    s.low[m] = s.high[m] = 0
    s.score -= (
        side_gain(g, model, s, a, near, far)
        + below_gain(g, model, s, m, a)
        + (crossing_gain(g, s, a) if model.crossing else 0.0)
    )


cdef void put_in(Lattice *g, Search *s, int m, int b, double score) noexcept nogil:
    """Link a word by arc b; the score of the tree that arises is known."""
    cdef int near, far
    s.hash ^= mark(g, s.arc[m]) ^ mark(g, b)
    s.arc[m] = b
    set_ends(g, s, m, b)
    find_place(s, g.head[b], m, &near, &far)
    link(g, s, m, near, far)
    s.score = score


cdef inline double gain(Lattice *g, const Model *model, Search *s, int m, int b) noexcept nogil:
    """What arc b adds for a word that is taken out."""
    cdef int near, far
    find_place(s, g.head[b], m, &near, &far)
    return (
        side_gain(g, model, s, b, near, far)
        + below_gain(g, model, s, m, b)
        + (crossing_gain(g, s, b) if model.crossing else 0.0)
    )


cdef inline void unlink(Lattice *g, Search *s, int m) noexcept nogil:
    cdef int h = g.head[s.arc[m]], near = s.prev[m], far = s.next[m]
    if near:
        s.next[near] = far
    else:
        s.nearest[2 * h + (h < m)] = far
    if far:
        s.prev[far] = near


cdef inline void link(Lattice *g, Search *s, int m, int near, int far) noexcept nogil:
    cdef int h = g.head[s.arc[m]]
    s.prev[m] = near
    s.next[m] = far
    if near:
        s.next[near] = m
    else:
        s.nearest[2 * h + (h < m)] = m
    if far:
        s.prev[far] = m


cdef inline void find_place(Search *s, int h, int m, int *near, int *far) noexcept nogil:
    """The siblings that m would stand between under h."""
    cdef int left = 0, right = s.nearest[2 * h + (h < m)]
    if h < m:
        while right and right < m:
            left = right
            right = s.next[right]
    else:
        while right and right > m:
            left = right
            right = s.next[right]
    near[0] = left
    far[0] = right


cdef void mark_below(Search *s, int m) noexcept nogil:
    """Stamp m and all words below it."""
    cdef int top = 0, u, c, side
    s.stamp += 1
    s.stack[0] = m
    s.below[m] = s.stamp
    while top >= 0:
        u = s.stack[top]
        top -= 1
        for side in range(2):
            c = s.nearest[2 * u + side]
            while c:
                s.below[c] = s.stamp
                top += 1
                s.stack[top] = c
                c = s.next[c]


# What an arc adds


cdef double side_gain(
    Lattice *g, const Model *model, Search *s, int b, int near, int far
) noexcept nogil:
    """What arc b adds to the tree between two siblings, without the arcs below its word."""
    cdef int above = s.arc[g.head[b]]
    cdef int a_near = s.arc[near], a_nearer = s.arc[s.prev[near]], a_far, farther
    cdef double total
    total = (
        g.score[b]
        + grandparent(g, model, above, b)
        + chain_term(g, model, above, a_nearer, a_near, b)
    )
    if far and model.order > 1:
        a_far = s.arc[far]
        total += chain_term(g, model, above, a_near, b, a_far)
        total -= chain_term(g, model, above, a_nearer, a_near, a_far)
        farther = s.next[far]
        if farther and model.order > 2:
            total += triple_score(g, model, 4, b, a_far, s.arc[farther])
            total -= triple_score(g, model, 4, a_near, a_far, s.arc[farther])
    return total


cdef double below_gain(Lattice *g, const Model *model, Search *s, int m, int b) noexcept nogil:
    """What arc b into m adds with the arcs out of m."""
    cdef int side, c, near
    cdef double total = 0.0
    if model.order < 2:
        return 0.0
    for side in range(2):
        near = NONE
        c = s.nearest[2 * m + side]
        while c:
            total += grandparent(g, model, b, s.arc[c])
            if model.order > 2:
                total += triple_score(g, model, 3, b, near, s.arc[c])
            near = s.arc[c]
            c = s.next[c]
    return total


cdef inline double crossing_gain(Lattice *g, Search *s, int b) noexcept nogil:
    """What arc b adds by the arcs that it crosses; the word's own arc must be taken out."""
    cdef int h = g.head[b], m = g.mod[b], i
    cdef int low = h if h < m else m, high = m if h < m else h
    cdef int32_t number = 0, total = 0, cross
    for i in range(1, s.n + 1):
        cross = crosses(s.low[i], s.high[i], low, high)
        number += cross
        total += -cross & s.crossing[i]
    return <double>(<int64_t>number * g.crossing[b] + total) / CROSSING_UNIT
