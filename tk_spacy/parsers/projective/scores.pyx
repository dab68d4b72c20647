"""Scores of parts: sums of the weights of their hashed features, without labels.

The templates are the sampling parser's, read in "rows", that is without DEPREL: of arcs
(sampling.search.templates) and of larger parts (features.templates).  What belongs to one modifier
is summed as a float at once, so a tree found in the chart has the score that it has where it is
given.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from tk_spacy.features.columns cimport (
    FIRST_MORPH, G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, S, T, WIDTH,
)
from tk_spacy.features.templates cimport (
    GRAND_SIBLING, GRANDPARENT, SIBLING, Sink, TRI_SIBLING, id_sink, most_features, part_features,
)
from tk_spacy.parsers.projective.arcs cimport (
    chain_cell, n_chains, n_triples, triple_cell,
)
from tk_spacy.parsers.sampling.search.lattice cimport ensure
from tk_spacy.parsers.sampling.search.templates cimport MOST_EXTRA, arc_templates


cdef uint32_t *room_for_ids(Buffer *memory, int morph_end) noexcept nogil:
    """Room for the features of one part; NULL without memory."""
    return <uint32_t *>ensure(
        memory, (most_features(morph_end - FIRST_MORPH) + MOST_EXTRA) * sizeof(uint32_t)
    )


cdef int arc_ids(const Words *x, uint64_t mask, uint32_t *ids, int h, int m) noexcept nogil:
    """The features of an arc; their number."""
    cdef Sink sink = id_sink(ids, mask)
    sink.rows = True
    arc_templates(&sink, x, h, m)
    return sink.count


cdef int part_ids(
    const Words *x, uint64_t mask, uint32_t *ids, int kind, int g, int h, int t, int s, int m
) noexcept nogil:
    """The features of a larger part, n + 1 for a sibling that is not there; their number."""
    cdef int32_t part[WIDTH]
    cdef Sink sink = id_sink(ids, mask)
    sink.rows = True
    part[G], part[H], part[T], part[S], part[M] = g, h, t, s, m
    part[LABEL_H] = part[LABEL_T] = part[LABEL_S] = part[LABEL_M] = 0
    part_features(&sink, x, kind, part)
    return sink.count


cdef inline float total(const Model *model, const uint32_t *ids, int count) noexcept nogil:
    cdef double value = 0.0
    cdef int i
    for i in range(count):
        value += model.weights[ids[i]]
    return <float>value


cdef inline float arc_score(
    const Words *x, const Model *model, uint32_t *ids, int h, int m
) noexcept nogil:
    return total(model, ids, arc_ids(x, model.mask, ids, h, m))


cdef inline float part_score(
    const Words *x, const Model *model, uint32_t *ids, int kind, int g, int h, int t, int s, int m
) noexcept nogil:
    return total(model, ids, part_ids(x, model.mask, ids, kind, g, h, t, s, m))


cdef inline float together(
    double arc, double sibling, double grandparent, double grand_sibling
) noexcept nogil:
    return <float>(((arc + sibling) + grandparent) + grand_sibling)


cdef int score_parts(
    PartScores *s, const Arcs *g, const Words *x, const Model *model, const int32_t *gold,
    double cost,
) noexcept nogil:
    """Score all parts of the arcs kept.

    gold: int32[n + 1] or NULL.  cost: what every arc that is not gold gains.
    Returns -1 without memory.
    """
    cdef int64_t most = 0, size
    cdef int h, a
    for h in range(2 * g.n + 2):
        most = max(most, chain_cell(g.side[h + 1] - g.side[h], -1))
    size = 2 * <int64_t>g.n_arcs + n_chains(g) + n_triples(g) + most + 1
    cdef float *cells = <float *>ensure(&s.part_memory, <size_t>size * sizeof(float))
    s.ids = room_for_ids(&s.id_memory, model.morph_end)
    if cells == NULL or s.ids == NULL:
        return -1
    s.parts.root = cells
    s.arcs = s.parts.root + g.n_arcs
    s.parts.chains = s.arcs + g.n_arcs
    s.parts.triples = s.parts.chains + n_chains(g)
    s.siblings = s.parts.triples + n_triples(g)
    for a in range(g.n_arcs):
        s.arcs[a] = arc_score(x, model, s.ids, g.head[a], g.mod[a])
        if gold != NULL and gold[g.mod[a]] != g.head[a]:
            s.arcs[a] += <float>cost
        s.parts.root[a] = 0.0
        if g.head[a] == 0:
            s.parts.root[a] = together(
                s.arcs[a], part_score(x, model, s.ids, SIBLING, -1, 0, -1, g.n + 1, g.mod[a]), 0, 0
            )
    for h in range(2, 2 * g.n + 2):
        score_siblings(s, g, x, model, h // 2, h % 2)
        for a in range(g.first[h // 2], g.first[h // 2 + 1]):
            score_chains(s, g, x, model, a, h % 2)
    return 0


cdef void score_siblings(
    PartScores *s, const Arcs *g, const Words *x, const Model *model, int h, int d
) noexcept nogil:
    """The pairs of modifiers on one side of a head, for its chains, and the triples."""
    cdef const int32_t *out = g.out + g.side[2 * h + d]
    cdef float *triples = s.parts.triples + g.triple[2 * h + d]
    cdef int count = g.side[2 * h + d + 1] - g.side[2 * h + d], none = g.n + 1, i, j, far
    for i in range(count):
        for j in range(-1, i):
            s.siblings[chain_cell(i, j)] = part_score(
                x, model, s.ids, SIBLING, -1, h, -1, g.mod[out[j]] if j >= 0 else none,
                g.mod[out[i]],
            )
        for j in range(i):
            for far in range(-1, j):
                triples[triple_cell(i, j, far)] = part_score(
                    x, model, s.ids, TRI_SIBLING, -1, h, g.mod[out[far]] if far >= 0 else none,
                    g.mod[out[j]], g.mod[out[i]],
                )


cdef void score_chains(
    PartScores *s, const Arcs *g, const Words *x, const Model *model, int a, int d
) noexcept nogil:
    """The chains below an arc on one side of its modifier, whose pairs are scored."""
    cdef int h = g.mod[a], none = g.n + 1, i, j
    cdef const int32_t *out = g.out + g.side[2 * h + d]
    cdef float *chains = s.parts.chains + g.chain[2 * a + d]
    cdef float grandparent
    for i in range(g.many[2 * a + d]):
        grandparent = part_score(
            x, model, s.ids, GRANDPARENT, g.head[a], h, -1, -1, g.mod[out[i]]
        )
        for j in range(-1, i):
            chains[chain_cell(i, j)] = together(
                s.arcs[out[i]], s.siblings[chain_cell(i, j)], grandparent,
                part_score(
                    x, model, s.ids, GRAND_SIBLING, g.head[a], h, -1,
                    g.mod[out[j]] if j >= 0 else none, g.mod[out[i]],
                ),
            )


cdef double score_of_tree(
    const Words *x, const Model *model, uint32_t *ids, const int32_t *heads, const int32_t *nearer
) noexcept nogil:
    """The score of any tree: heads and `nearer_siblings`, int32[n + 1], from word 1 on."""
    cdef double whole = 0.0
    cdef float arc, sibling
    cdef int m, h, s, g
    for m in range(1, x.n + 1):
        h, s = heads[m], nearer[m]
        arc = arc_score(x, model, ids, h, m)
        sibling = part_score(x, model, ids, SIBLING, -1, h, -1, s, m)
        if h == 0:
            whole += together(arc, sibling, 0, 0)
        else:
            g = heads[h]
            whole += together(
                arc, sibling, part_score(x, model, ids, GRANDPARENT, g, h, -1, -1, m),
                part_score(x, model, ids, GRAND_SIBLING, g, h, -1, s, m),
            )
        if s <= x.n:
            whole += part_score(x, model, ids, TRI_SIBLING, -1, h, nearer[s], s, m)
    return whole


cdef double score_in_list(
    const Arcs *g, const Parts *parts, const int32_t *heads, const int32_t *nearer
) noexcept nogil:
    """The same of a tree of the chart, from the scores of its parts, summed in the same order."""
    cdef double whole = 0.0
    cdef int m, h, s, t, d, a, i, j, n = g.n
    for m in range(1, n + 1):
        h, s = heads[m], nearer[m]
        a = g.at[h * (n + 1) + m]
        if h == 0:
            whole += parts.root[a]
            continue
        d = m > h
        i = g.rank[a]
        j = g.rank[g.at[h * (n + 1) + s]] if s <= n else -1
        a = g.at[heads[h] * (n + 1) + h]
        whole += parts.chains[g.chain[2 * a + d] + chain_cell(i, j)]
        if s <= n:
            t = nearer[s]
            whole += parts.triples[
                g.triple[2 * h + d]
                + triple_cell(i, j, g.rank[g.at[h * (n + 1) + t]] if t <= n else -1)
            ]
    return whole


cdef void release_scores(PartScores *s) noexcept nogil:
    free(s.part_memory.data)
    free(s.id_memory.data)
    memset(s, 0, sizeof(PartScores))
