"""Hill climbing over the trees of a lattice, from many starts, keeping the best trees met.

A step takes one word out of the tree and puts it back under the best of its arcs, which changes the
score by what its neighbours score with it.  Where only one word may be a root, a step of its own
exchanges it.  The first starts are the best first-order trees, the others are drawn from the
first-order distribution by Wilson's loop-erased random walks.

Source: Zhang, Lei, Barzilay and Jaakkola (EMNLP 2014, "Greed is good if randomized").  Ours differs
in that arcs carry labels, and in that every tree whose score becomes known on the way, neighbours
included, may enter the list of the best.
"""

from libc.math cimport INFINITY, exp
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from tk_spacy.features cimport mix
from tk_spacy.sampling.lattice cimport (
    CROSSING_UNIT,
    NONE,
    Lattice,
    Model,
    chain_term,
    crosses,
    ensure,
    grandparent,
    triple_score,
)
from tk_spacy.sampling.spanning cimport free_spanning, k_best_trees, max_tree

cdef enum:
    MAX_SWEEPS = 100     # of one climb; far more than ever needed
    MAX_DRAWS = 20       # of one arc, in search of one that is no root's

cdef double LEAST_GAIN = 1e-7    # smaller ones are rounding


cdef void release_search(Search *s) noexcept nogil:
    """Give all memory back."""
    free(s.word_memory.data)
    free(s.chance_memory.data)
    free(s.choice_memory.data)
    free(s.pool_memory.data)
    free(s.exact_memory.data)
    free_spanning(&s.spanning)
    memset(s, 0, sizeof(Search))


cdef int search(
    Lattice *g, const Model *model, Search *s, int room, int exact, int starts, int patience,
    double temperature, uint64_t seed,
) noexcept nogil:
    """Climb from up to `starts` trees; the best tree's arcs are s.best, its score s.score.

    room: trees kept in the pool.  exact: how many of the first starts are the best first-order
    trees; the others are drawn.  patience: starts in a row without a better tree that end the
    search.  temperature: of the distribution that starts are drawn from.
    Returns 0, 1 where the lattice has no tree, -1 without memory.
    """
    cdef int i, idle = 0, found
    cdef double best = -INFINITY
    exact = max(1, min(exact, starts))
    if reserve(g, s, room, exact) < 0:
        return -1
    s.random = mix(seed, <uint64_t>0x2545F4914F6CDD1DULL)
    found = first_order_trees(g, model, s, exact)
    if found <= 0:
        return 1 if found == 0 else -1
    for i in range(starts):
        if i < found:
            choose_arcs(g, s, s.heads + i * (s.n + 1))
        else:
            if i == found:
                chances(g, s, temperature)
            if not draw_start(g, model, s):
                continue
        set_tree(g, s, s.start)
        s.score = total_score(g, model, s)
        if s.pool.room and s.score > s.pool.least:
            offer(g, s, 0, NONE, s.score)
        climb(g, model, s)
        if s.score > best + LEAST_GAIN:
            best = s.score
            memcpy(s.best, s.arc, (s.n + 1) * sizeof(int32_t))
            idle = 0
        else:
            idle += 1
            if idle >= patience:
                break
    s.score = best
    return -1 if g.failed else 0


cdef int reserve(Lattice *g, Search *s, int room, int exact) noexcept nogil:
    cdef int n = g.n
    cdef int32_t *words = <int32_t *>ensure(&s.word_memory, 14 * (n + 2) * sizeof(int32_t))
    cdef int width = n + 1
    s.n = n
    s.chance = <double *>ensure(&s.chance_memory, (g.n_arcs + 2 * width) * sizeof(double))
    s.choice = <int32_t *>ensure(&s.choice_memory, width * width * sizeof(int32_t))
    s.pool.scores = <double *>ensure(
        &s.pool_memory,
        room * (sizeof(double) + sizeof(uint64_t) + width * sizeof(int32_t)) + 8,
    )
    s.totals = <double *>ensure(
        &s.exact_memory, exact * (sizeof(double) + width * sizeof(int32_t))
    )
    if s.totals == NULL or words == NULL or s.pool.scores == NULL:
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
    s.start = words + 7 * width
    s.low = words + 8 * width
    s.high = words + 9 * width
    s.crossing = words + 10 * width
    s.nearest = words + 11 * width
    memset(s.below, 0, width * sizeof(int32_t))
    s.stamp = 0
    return 0


# Starts


cdef int first_order_trees(Lattice *g, const Model *model, Search *s, int exact) noexcept nogil:
    """The best trees by arc scores alone, into s.heads; their number, -1 without memory."""
    cdef int n = g.n, width = n + 1, a, at, state
    for at in range(width * width):
        g.first_order[at] = -INFINITY
        s.choice[at] = NONE
    for a in range(g.n_arcs):
        at = g.head[a] * width + g.mod[a]
        if s.choice[at] == NONE or g.score[a] > g.first_order[at]:
            g.first_order[at] = g.score[a]
            s.choice[at] = a
    if exact > 1:
        return k_best_trees(
            g.first_order, n, model.single_root, exact, s.heads, s.totals, &s.spanning
        )
    state = max_tree(g.first_order, n, model.single_root, s.heads, &s.spanning)
    return 1 - state if state >= 0 else -1


cdef void choose_arcs(Lattice *g, Search *s, const int32_t *heads) noexcept nogil:
    """Start from a tree's heads, with the best label of each arc."""
    cdef int m
    s.start[0] = NONE
    for m in range(1, g.n + 1):
        s.start[m] = s.choice[heads[m] * (g.n + 1) + m]


cdef inline double draw(Search *s) noexcept nogil:
    """A number from 0 to 1, 1 excluded (splitmix64)."""
    cdef uint64_t z
    s.random += <uint64_t>0x9E3779B97F4A7C15ULL
    z = s.random
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EBULL
    z = z ^ (z >> 31)
    return <double>(z >> 11) / 9007199254740992.0


cdef void chances(Lattice *g, Search *s, double temperature) noexcept nogil:
    """Cumulative chances of each word's arcs; behind them the odds of each word as the root."""
    cdef int m, a, n = g.n
    cdef double best, total, of_root, odds = 0.0
    for m in range(1, n + 1):
        best = -INFINITY
        for a in range(g.first[m], g.first[m + 1]):
            if g.score[a] > best:
                best = g.score[a]
        total = 0.0
        of_root = 0.0
        for a in range(g.first[m], g.first[m + 1]):
            total += exp((g.score[a] - best) / temperature)
            s.chance[a] = total
            if g.head[a] == 0:
                of_root += exp((g.score[a] - best) / temperature)
        for a in range(g.first[m], g.first[m + 1]):
            s.chance[a] /= total
        of_root /= total
        odds += of_root / (1.0 - of_root if of_root < 1.0 - 1e-9 else 1e-9)
        s.chance[g.n_arcs + m] = odds


cdef int draw_arc(Lattice *g, Search *s, int m) noexcept nogil:
    cdef double x = draw(s)
    cdef int a
    for a in range(g.first[m], g.first[m + 1] - 1):
        if x < s.chance[a]:
            return a
    return g.first[m + 1] - 1


cdef bint draw_start(Lattice *g, const Model *model, Search *s) noexcept nogil:
    """A tree drawn from the first-order distribution; False where the walk found none."""
    cdef int n = g.n, m, u, a, _, root = 0, steps = 0
    cdef double x
    s.stamp += 1
    s.below[0] = s.stamp        # here: words that are in the tree
    if model.single_root:
        x = draw(s) * s.chance[g.n_arcs + n]
        for m in range(1, n + 1):
            if x < s.chance[g.n_arcs + m] or m == n:
                root = m
                break
        a = s.choice[root]      # row 0 of the matrix: the arc from the root
        if a == NONE:
            return False
        s.start[root] = a
        s.below[root] = s.stamp
    for m in range(1, n + 1):
        u = m
        while s.below[u] != s.stamp:
            a = draw_arc(g, s, u)
            if model.single_root:
                for _ in range(MAX_DRAWS):
                    if g.head[a] != 0:
                        break
                    a = draw_arc(g, s, u)
                else:
                    return False
            s.start[u] = a
            u = g.head[a]
            steps += 1
            if steps > 50 * n + 200:
                return False
        u = m
        while s.below[u] != s.stamp:
            s.below[u] = s.stamp
            u = g.head[s.start[u]]
    return True


# The tree


cdef inline uint64_t mark(Lattice *g, int a) noexcept nogil:
    """A random number for an arc; the tree's hash is the exclusive or of its arcs'."""
    # The modifier is mixed before the head joins it: mix() is symmetric in its arguments.
    cdef uint64_t value = mix(mix(mix(mix(g.mod[a], 99), g.head[a]), g.label[a]), 99)
    return mix(value, value >> 7)


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


cdef double exact_score(
    Lattice *g, const Model *model, Search *s, const int32_t *arcs
) noexcept nogil:
    """The score of a tree, which becomes the one at hand."""
    set_tree(g, s, arcs)
    return total_score(g, model, s)


cdef inline void set_ends(Lattice *g, Search *s, int m, int a) noexcept nogil:
    cdef int h = g.head[a]
    s.low[m] = h if h < m else m
    s.high[m] = m if h < m else h
    s.crossing[m] = g.crossing[a]


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


# Climbing


cdef void climb(Lattice *g, const Model *model, Search *s) noexcept nogil:
    cdef int m, _
    cdef bint changed
    for _ in range(MAX_SWEEPS):
        changed = False
        for m in range(1, g.n + 1):
            if g.first[m + 1] - g.first[m] > 1 and improve(g, model, s, m):
                changed = True
        if not changed and model.single_root:
            changed = exchange_root(g, model, s)
        if not changed:
            break


cdef void take_out(Lattice *g, const Model *model, Search *s, int m) noexcept nogil:
    """Unlink a word, and take what its arc adds from the score."""
    cdef int near = s.prev[m], far = s.next[m], a = s.arc[m]
    unlink(g, s, m)
    s.low[m] = s.high[m] = 0
    s.score -= (
        side_gain(g, model, s, a, near, far)
        + below_gain(g, model, s, m, a)
        + (crossing_gain(g, s, a) if model.order > 1 else 0.0)
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
        + (crossing_gain(g, s, b) if model.order > 1 else 0.0)
    )


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
        if total > highest + LEAST_GAIN:
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
            highest = score + LEAST_GAIN
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


# The best trees met


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
    if pool.size == pool.room:
        pool.least = pool.scores[0]
        for i in range(1, pool.size):
            if pool.scores[i] < pool.least:
                pool.least = pool.scores[i]
