"""The trees that climbing starts from: the best by arc scores alone, then trees drawn at random.

Source: the random ones are drawn from the first-order distribution by Wilson's loop-erased random
walks (STOC 1996, "Generating random spanning trees more quickly than the cover time"), as in Zhang
et al. (EMNLP 2014).  Where only one word may be a root, that word is drawn first.
"""

from libc.math cimport INFINITY, exp
from libc.stdint cimport int32_t, uint64_t

from tk_spacy.parsers.sampling.search.structs cimport NONE, Lattice, Model, Search
from tk_spacy.trees.spanning cimport k_best_trees, max_tree

cdef enum:
    MAX_DRAWS = 20       # of one arc, in search of one that is no root's


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


cdef int draw_arc(Lattice *g, Search *s, int m) noexcept nogil:
    cdef double x = draw(s)
    cdef int a
    for a in range(g.first[m], g.first[m + 1] - 1):
        if x < s.chance[a]:
            return a
    return g.first[m + 1] - 1


cdef inline double draw(Search *s) noexcept nogil:
    """A number from 0 to 1, 1 excluded (splitmix64)."""
    cdef uint64_t z
    s.random += <uint64_t>0x9E3779B97F4A7C15ULL
    z = s.random
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EBULL
    z = z ^ (z >> 31)
    return <double>(z >> 11) / 9007199254740992.0
