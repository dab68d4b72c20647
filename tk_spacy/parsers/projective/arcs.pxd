# The arcs that a sentence may have, and where each of their parts stands (see arcs.pyx).

from libc.stdint cimport int32_t, int64_t

from tk_spacy.parsers.sampling.search.structs cimport Buffer

cdef enum:
    LEFT = 0             # sides of a head
    RIGHT = 1


cdef struct Arcs:
    int n                # words
    int n_arcs
    int32_t *first       # [n + 2]; the arcs into word m are first[m] .. first[m + 1] - 1
    int32_t *head        # [n_arcs], ascending for each word
    int32_t *mod         # [n_arcs]
    int32_t *rank        # [n_arcs], place among the arcs of the same head and side, nearest first
    int32_t *at          # [(n + 1) ** 2], the arc from h to m at h * (n + 1) + m, -1 for none
    int32_t *side        # [2 * n + 3]; the arcs from h on side d are out[side[2 * h + d]] ..
    int32_t *out         # [n_arcs]
    int32_t *many        # [2 * n_arcs], how many of them on each side may stand below an arc into h
    int64_t *chain       # [2 * n_arcs + 1], first cell of the chains below an arc, on a side
    int64_t *end         # [2 * n_arcs + 1], the same of their ends
    int64_t *pair        # [2 * n + 3], first cell of the pairs of modifiers of h on side d
    int64_t *triple      # [2 * n + 3], first cell of the triples
    Buffer small_memory, large_memory, table_memory


# Cells of a chain, pair or triple, behind the first one: i > j > far are ranks, where j
# and far are -1 for no modifier.

cdef inline int64_t chain_cell(int64_t i, int64_t j) noexcept nogil:
    return i * (i + 1) // 2 + j + 1


cdef inline int64_t pair_cell(int64_t i, int64_t j) noexcept nogil:
    return i * (i - 1) // 2 + j


cdef inline int64_t triple_cell(int64_t i, int64_t j, int64_t far) noexcept nogil:
    return (i - 1) * i * (i + 1) // 6 + j * (j + 1) // 2 + far + 1


cdef inline int64_t n_chains(const Arcs *g) noexcept nogil:
    return g.chain[2 * g.n_arcs]


cdef inline int64_t n_ends(const Arcs *g) noexcept nogil:
    return g.end[2 * g.n_arcs]


cdef inline int64_t n_pairs(const Arcs *g) noexcept nogil:
    return g.pair[2 * g.n + 2]


cdef inline int64_t n_triples(const Arcs *g) noexcept nogil:
    return g.triple[2 * g.n + 2]


cdef int arrange(Arcs *g, int n, const int32_t *first, const int32_t *heads) noexcept nogil
cdef void release_arcs(Arcs *g) noexcept nogil
cdef void nearer_siblings(int n, const int32_t *heads, int32_t *last, int32_t *out) noexcept nogil
