"""The search by scores of parts that are given, and marginals: for tests and for a look inside."""

from libc.stdint cimport int32_t
from libc.string cimport memset

import numpy as np

from tk_spacy.parsers.projective.arcs cimport (
    Arcs, arrange, chain_cell, n_chains, n_triples, release_arcs, triple_cell,
)
from tk_spacy.parsers.projective.chart cimport fill
from tk_spacy.parsers.projective.decoder cimport Workspace, free_spaces, new_spaces, write_list
from tk_spacy.parsers.projective.pruning cimport (
    Pruning, marginals_of, release_pruning, room_for_pruning,
)

from tk_spacy.parsers.projective.checks import check_arcs, check_k
from tk_spacy.utils.array_checks import checked


def parts_of(first, heads):
    """The parts over given arcs, in the order in which `best_of_parts` takes their scores.

    first: int32[n + 2], heads: int32[arcs]: those of word m are heads[first[m]:first[m + 1]],
    ascending; first[1] is 0.
    Returns (arcs, chains, triples): int32[_, 2] (h, m); int32[_, 4] (g, h, s, m) for h > 0, and
    int32[_, 4] (h, t, s, m); n + 1 for a sibling that is not there.
    Raises TypeError or ValueError for arcs that no sentence has.
    """
    at, kept, words = check_arcs(first, heads)
    cdef const int32_t[::1] of_words = kept
    cdef const int32_t[::1] starts = at
    cdef Arcs g
    memset(&g, 0, sizeof(g))
    cdef int n = words, a, h, d, i, j, far, none = n + 1
    cdef const int32_t *out
    if arrange(&g, n, &starts[0], &of_words[0]) < 0:
        raise MemoryError("no memory for arcs")
    arcs = np.array([(g.head[a], g.mod[a]) for a in range(g.n_arcs)], dtype=np.int32)
    chains = np.full((n_chains(&g), 4), -1, dtype=np.int32)
    triples = np.full((n_triples(&g), 4), -1, dtype=np.int32)
    for h in range(1, n + 1):
        for d in range(2):
            out = g.out + g.side[2 * h + d]
            for i in range(g.side[2 * h + d + 1] - g.side[2 * h + d]):
                for j in range(i):
                    for far in range(-1, j):
                        triples[g.triple[2 * h + d] + triple_cell(i, j, far)] = (
                            h, g.mod[out[far]] if far >= 0 else none, g.mod[out[j]], g.mod[out[i]]
                        )
                for a in range(g.first[h], g.first[h + 1]):
                    if i >= g.many[2 * a + d]:
                        continue
                    for j in range(-1, i):
                        chains[g.chain[2 * a + d] + chain_cell(i, j)] = (
                            g.head[a], h, g.mod[out[j]] if j >= 0 else none, g.mod[out[i]]
                        )
    release_arcs(&g)
    return arcs, chains, triples


def best_of_parts(first, heads, root, chains, triples, *, int k):
    """The k best trees by scores of parts that are given: int32[m, n] heads, float64[m] scores.

    first, heads, and the order of parts: see `parts_of`.  root: float32[arcs], the score of those
    whose head is 0.  chains, triples: float32, of these parts.
    """
    check_k(k)
    at, kept, words = check_arcs(first, heads)
    of_root = checked("root", root, np.float32, len(kept))
    of_chains = checked("chains", np.append(chains, 0).astype(np.float32), np.float32, None)
    of_triples = checked("triples", np.append(triples, 0).astype(np.float32), np.float32, None)
    cdef const int32_t[::1] of_words = kept
    cdef const int32_t[::1] starts = at
    cdef float[::1] r = of_root
    cdef float[::1] c = of_chains
    cdef float[::1] t = of_triples
    cdef int n = words, state
    cdef int32_t count = 0
    trees = np.zeros((n + 2, k), dtype=np.int32)
    totals = np.zeros(k)
    cdef int32_t[:, ::1] tree_cells = trees
    cdef double[::1] total_cells = totals
    cdef Workspace *space = new_spaces(1)
    state = arrange(&space.arcs, n, &starts[0], &of_words[0])
    if state == 0:
        if n_chains(&space.arcs) + 1 != len(of_chains) or (
            n_triples(&space.arcs) + 1 != len(of_triples)
        ):
            free_spaces(space, 1)
            raise ValueError("chains and triples are not as many as `parts_of` gives")
        space.scores.parts.root, space.scores.parts.chains = &r[0], &c[0]
        space.scores.parts.triples = &t[0]
        state = fill(&space.chart, &space.arcs, &space.scores.parts)
        if state == 0:
            state = write_list(space, k, &tree_cells[0, 0], &total_cells[0], &count)
    free_spaces(space, 1)
    if state < 0:
        raise MemoryError("no memory for parsing")
    return trees[1 : n + 1, :count].T.copy(), totals[:count]


def arc_marginals(scores):
    """How likely each arc is by scores of arcs, among the projective trees with one root.

    scores: float64[n + 1, n + 1], of the arc from h to m at [h, m].  Returns as many.
    """
    given = checked("scores", scores, np.float64, None, len(scores))
    cdef const double[:, ::1] cells = given
    cdef Pruning p
    memset(&p, 0, sizeof(p))
    cdef int n = <int>cells.shape[0] - 1, h, m
    out = np.zeros_like(given)
    cdef double[:, ::1] shares = out
    if room_for_pruning(&p, n, 1) < 0:
        raise MemoryError("no memory for pruning")
    for h in range(n + 1):
        for m in range(n + 1):
            p.scores[h * (n + 1) + m] = cells[h, m]
    marginals_of(&p, n)
    for h in range(n + 1):
        for m in range(n + 1):
            shares[h, m] = p.marginals[h * (n + 1) + m]
    release_pruning(&p)
    return out
