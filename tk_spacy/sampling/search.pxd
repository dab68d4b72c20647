# The search for a sentence's best trees: its state and its memory (see search.pyx).

from libc.stdint cimport int32_t, uint64_t

from tk_spacy.sampling.lattice cimport Buffer, Lattice, Model
from tk_spacy.sampling.spanning cimport SpanningScratch

cdef struct Pool:
    # The best distinct trees met so far, in no order.
    int room                # trees kept at most; 0 keeps none
    int size
    double least            # lowest score kept, -inf while there is room
    double *scores          # [room]
    uint64_t *hashes        # [room]
    int32_t *arcs           # [room * (n + 1)]


cdef struct Search:
    int n
    int32_t *arc            # [n + 1], the arc into each word
    int32_t *prev           # [n + 1], the nearer sibling on the same side, 0 for none
    int32_t *next           # [n + 1], the farther one
    int32_t *nearest        # [2 * (n + 1)], nearest modifier left and right of each head
    int32_t *low            # [n + 1], the ends of the arc into each word; 0 and 0 for none
    int32_t *high           # [n + 1]
    int32_t *crossing       # [n + 1], what it scores for each arc that it crosses
    int32_t *below          # [n + 1], stamps: words below the one at hand
    int32_t *stack          # [n + 1]
    int32_t *best           # [n + 1], arcs of the best tree of all starts
    int32_t *heads          # [exact * (n + 1)], the best first-order trees
    double *totals          # [exact], their scores
    int32_t *start          # [n + 1]
    double *chance          # [n_arcs], cumulative, word by word
    int32_t *choice         # [(n + 1) ** 2], the best arc h -> m
    int stamp
    double score
    uint64_t hash
    uint64_t *summits       # [starts], hashes of the trees that climbs ended in
    int n_summits
    uint64_t random
    Pool pool
    SpanningScratch spanning
    Buffer word_memory, chance_memory, choice_memory, pool_memory, exact_memory
    Buffer summit_memory


cdef void release_search(Search *s) noexcept nogil
cdef int search(
    Lattice *g, const Model *model, Search *s, int room, int exact, int starts, int patience,
    double temperature, uint64_t seed,
) noexcept nogil
cdef int search_again(Lattice *g, const Model *model, Search *s) noexcept nogil
cdef void rescore(Lattice *g, const Model *model, Search *s) noexcept nogil
cdef int has_tree(Lattice *g, const Model *model, Search *s) noexcept nogil
