"""The arcs that a sentence may have, by their ends, and where each of their parts stands.

Parts are those of templates.pyx, without labels.  All that belong to one modifier and are told by
(g, h, s, m) have one cell together, in a *chain*; tri-siblings (h, t, s, m) have cells of their
own, the *triples*.  Chains of the root, which has one modifier, are no cells: see `scores`.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from tk_spacy.parsers.sampling.search.lattice cimport ensure


cdef int arrange(Arcs *g, int n, const int32_t *first, const int32_t *heads) noexcept nogil:
    """Number the arcs: heads first[m] .. first[m + 1] - 1 of word m, m from 1 to n, ascending.

    Returns -1 without memory.
    """
    cdef int a, h, m, d, n_arcs = first[n + 1] - first[1]
    cdef int32_t *small = <int32_t *>ensure(
        &g.small_memory, (6 * <size_t>n_arcs + 3 * n + 8) * sizeof(int32_t)
    )
    cdef int64_t *large = <int64_t *>ensure(
        &g.large_memory, (4 * <size_t>n_arcs + 4 * n + 8) * sizeof(int64_t)
    )
    g.at = <int32_t *>ensure(&g.table_memory, (n + 1) * <size_t>(n + 1) * sizeof(int32_t))
    if small == NULL or large == NULL or g.at == NULL:
        return -1
    g.n, g.n_arcs = n, n_arcs
    g.head = small
    g.mod = g.head + n_arcs
    g.rank = g.mod + n_arcs
    g.out = g.rank + n_arcs
    g.many = g.out + n_arcs
    g.first = g.many + 2 * n_arcs
    g.side = g.first + n + 2
    g.chain = large
    g.end = g.chain + 2 * n_arcs + 1
    g.pair = g.end + 2 * n_arcs + 1
    g.triple = g.pair + 2 * n + 3
    memset(g.at, -1, (n + 1) * <size_t>(n + 1) * sizeof(int32_t))
    g.first[0] = 0
    for m in range(1, n + 2):
        g.first[m] = first[m] - first[1]
    for m in range(1, n + 1):
        for a in range(g.first[m], g.first[m + 1]):
            h = heads[first[1] + a]
            g.head[a], g.mod[a] = h, m
            g.at[h * (n + 1) + m] = a
    a = 0
    for h in range(n + 1):
        for d in range(2):
            g.side[2 * h + d] = a
            a = list_side(g, h, d, a)
    g.side[2 * n + 2] = a
    number_parts(g)
    return 0


cdef int list_side(Arcs *g, int h, int d, int a) noexcept nogil:
    """Put the arcs from h on a side into `out` from a on, nearest first; where they end."""
    cdef int n = g.n, step = 1 if d == RIGHT else -1, start = a, m = h + step, b
    while 1 <= m <= n:
        b = g.at[h * (n + 1) + m]
        if b >= 0:
            g.rank[b] = a - start
            g.out[a] = b
            a += 1
        m += step
    return a


cdef void number_parts(Arcs *g) noexcept nogil:
    """Where the cells of each arc's and each head's parts begin."""
    cdef int a, h, d, i, n_below
    cdef int64_t chains = 0, ends = 0, pairs = 0, triples = 0, size
    for a in range(g.n_arcs):
        h = g.mod[a]
        for d in range(2):
            n_below = g.side[2 * h + d + 1] - g.side[2 * h + d]
            if (g.head[a] > h) == (d == RIGHT):  # modifiers must not stand beyond the head's head
                for i in range(n_below):
                    if (g.mod[g.out[g.side[2 * h + d] + i]] >= g.head[a]) == (d == RIGHT):
                        n_below = i
                        break
            g.many[2 * a + d] = n_below
            g.chain[2 * a + d], g.end[2 * a + d] = chains, ends
            chains += chain_cell(n_below, -1)
            ends += n_below
    g.chain[2 * g.n_arcs], g.end[2 * g.n_arcs] = chains, ends
    for h in range(2 * g.n + 2):
        g.pair[h], g.triple[h] = pairs, triples
        if h < 2:
            continue  # the root has one modifier
        size = g.side[h + 1] - g.side[h]
        pairs += pair_cell(size, 0)
        triples += triple_cell(size, 0, -1)
    g.pair[2 * g.n + 2], g.triple[2 * g.n + 2] = pairs, triples


cdef void release_arcs(Arcs *g) noexcept nogil:
    free(g.small_memory.data)
    free(g.large_memory.data)
    free(g.table_memory.data)
    memset(g, 0, sizeof(Arcs))


cdef void nearer_siblings(int n, const int32_t *heads, int32_t *last, int32_t *out) noexcept nogil:
    """The modifier of the same head that is next to each word on its side; n + 1 for none.

    heads: int32[n + 1], from word 1 on.  last, out: int32[n + 1].
    """
    cdef int d, i, m, h
    for d in range(2):
        for m in range(n + 1):
            last[m] = n + 1
        for i in range(1, n + 1):
            m = i if d == RIGHT else n + 1 - i
            h = heads[m]
            if (h < m) == (d == RIGHT):
                out[m] = last[h]
                last[h] = m
