"""The best score of every span of a sentence, from the shortest spans to the longest.

The spans are drawn in the package's docstring; each is built in exactly one way from the spans of
one tree, so different derivations are different trees.  A span without any tree has -inf.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from tk_spacy.parsers.projective.arcs cimport (
    LEFT, RIGHT, chain_cell, n_chains, n_ends, n_pairs, pair_cell, triple_cell,
)
from tk_spacy.parsers.sampling.search.lattice cimport ensure


cdef int fill(Chart *chart, const Arcs *g, const Parts *parts) noexcept nogil:
    """Score all spans.  Returns -1 without memory."""
    cdef int n = g.n, width, i, j, a
    cdef int64_t size = <int64_t>g.n_arcs * (n + 1) + n_ends(g) + n_chains(g) + n_pairs(g), c
    cdef double *cells = <double *>ensure(&chart.memory, <size_t>(size + 1) * sizeof(double))
    if cells == NULL:
        return -1
    for c in range(size):
        cells[c] = -INFINITY
    chart.spans = cells
    chart.ends = chart.spans + <int64_t>g.n_arcs * (n + 1)
    chart.chains = chart.ends + n_ends(g)
    chart.gaps = chart.chains + n_chains(g)
    for a in range(g.n_arcs):
        chart.spans[a * <int64_t>(n + 1) + g.mod[a]] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            fill_gaps(chart, g, i, j)
            fill_chains(chart, g, parts, i, j)
            fill_chains(chart, g, parts, j, i)
            fill_spans(chart, g, i, j)
            fill_spans(chart, g, j, i)
    return 0


cdef void fill_gaps(Chart *chart, const Arcs *g, int i, int j) noexcept nogil:
    """What stands between words i < j where both hang on a word beyond one of them."""
    cdef int a, b, h, d, r, n = g.n
    cdef double best, value
    cdef const double *left
    cdef const double *right
    for a in range(g.first[i], g.first[i + 1]):
        h = g.head[a]
        if h == 0 or i < h < j:
            continue
        b = g.at[h * (n + 1) + j]
        if b < 0:
            continue
        left = chart.spans + a * <int64_t>(n + 1)
        right = chart.spans + b * <int64_t>(n + 1)
        best = -INFINITY
        for r in range(i, j):
            value = left[r] + right[r + 1]
            if value > best:
                best = value
        d = RIGHT if h < i else LEFT
        chart.gaps[
            g.pair[2 * h + d] + (
                pair_cell(g.rank[b], g.rank[a]) if d == RIGHT else pair_cell(g.rank[a], g.rank[b])
            )
        ] = best


cdef void fill_chains(Chart *chart, const Arcs *g, const Parts *parts, int h, int m) noexcept nogil:
    """The modifiers of h from the first one to m, below each arc into h."""
    cdef int a, b = g.at[h * (g.n + 1) + m], d = RIGHT if m > h else LEFT, i, j, far
    cdef int64_t at
    cdef double best, value, total, inside
    cdef const double *before
    cdef const float *triples
    if b < 0:
        return
    i = g.rank[b]
    inside = chart.spans[b * <int64_t>(g.n + 1) + (h + 1 if d == RIGHT else h - 1)]
    for a in range(g.first[h], g.first[h + 1]):
        if i >= g.many[2 * a + d]:
            continue
        at = g.chain[2 * a + d] + chain_cell(i, -1)
        total = inside + parts.chains[at]
        chart.chains[at] = total
        for j in range(i):
            value = chart.gaps[g.pair[2 * h + d] + pair_cell(i, j)]
            if value == -INFINITY:
                continue
            before = chart.chains + g.chain[2 * a + d] + chain_cell(j, -1)
            triples = parts.triples + g.triple[2 * h + d] + triple_cell(i, j, -1)
            best = -INFINITY
            for far in range(j + 1):
                if before[far] + triples[far] > best:
                    best = before[far] + triples[far]
            value = (best + value) + parts.chains[at + j + 1]
            chart.chains[at + j + 1] = value
            if value > total:
                total = value
        chart.ends[g.end[2 * a + d] + i] = total


cdef void fill_spans(Chart *chart, const Arcs *g, int h, int e) noexcept nogil:
    """Word h with all modifiers on one side, up to word e, below each arc into h."""
    cdef int a, b, i, d = RIGHT if e > h else LEFT, n = g.n
    cdef double best, value
    for a in range(g.first[h], g.first[h + 1]):
        if (h < g.head[a] <= e) if d == RIGHT else (e <= g.head[a] < h):
            continue
        best = -INFINITY
        for i in range(g.many[2 * a + d]):
            b = g.out[g.side[2 * h + d] + i]
            if (g.mod[b] > e) if d == RIGHT else (g.mod[b] < e):
                break
            value = chart.ends[g.end[2 * a + d] + i] + chart.spans[b * <int64_t>(n + 1) + e]
            if value > best:
                best = value
        chart.spans[a * <int64_t>(n + 1) + e] = best


cdef void release_chart(Chart *chart) noexcept nogil:
    free(chart.memory.data)
    memset(chart, 0, sizeof(Chart))
