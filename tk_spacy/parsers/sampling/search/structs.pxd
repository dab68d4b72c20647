# What the search of a sentence works on: its model, its arcs and their scores (lattice.pyx), its
# state (search.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parallel.stopping cimport Watch
from tk_spacy.trees.spanning cimport SpanningScratch

cdef enum:
    NONE = -1            # no arc
    STOPPED = -2         # state of a search that was asked to end
    UNDER_ROOT = 1       # bits of Model.places
    ELSEWHERE = 2
    # Scores of crossing arcs are whole numbers of units of 1 / CROSSING_UNIT, so that sums of them
    # are exact, in any order, and quick.
    CROSSING_UNIT = 4096


cdef struct Buffer:
    # Memory that grows and is kept from sentence to sentence.
    void *data
    size_t size


cdef struct Model:
    # What a sentence is scored with; nothing here is written to.
    const float *weights     # [2 ** bits + n_cells]
    uint64_t mask            # 2 ** bits - 1
    int n_cells              # of an arc feature's row: one without a label, then one a label id
    int order                # of the largest parts, 1 to 3
    bint crossing            # whether crossing arcs score, from order 2 on
    const float *pruner      # [2 ** pruner_bits]
    uint64_t pruner_mask
    const uint8_t *places    # [n_cells], where a label may stand: UNDER_ROOT, ELSEWHERE
    int max_heads            # heads a word keeps at most
    double prune_margin      # how far below the best head's score a head is still kept
    int max_labels           # labels an arc keeps at most
    double label_margin
    double arc_margin        # how far below the best arc into a word an arc is still kept
    bint single_root
    int morph_end


cdef struct Lattice:
    Words words
    int n                    # words
    int n_arcs
    int32_t *first           # [n + 2]; the arcs into word m are first[m] .. first[m + 1] - 1
    int32_t *head            # [n_arcs]
    int32_t *mod             # [n_arcs]
    int32_t *label           # [n_arcs]
    double *score            # [n_arcs], the loss of training included
    int32_t *rank            # [n_arcs], place among the arcs of the same head and side, near first
    int32_t *nearer          # [n_arcs], how many of these have a nearer modifier
    int32_t *crossing        # [n_arcs], score for each arc that it crosses, in CROSSING_UNITs
    int64_t *pair_at         # [n_arcs], its place in `pairs`: grandparents, then siblings
    float *pairs             # second-order scores, NaN where not known yet
    int64_t n_pairs
    float *own_pairs         # without a kernel's share; NULL without a kernel of pairs
    float *kernel_pairs      # that share, NaN where it is not known (see pair_kernel.pyx)
    float unscored[4]        # what stands for it there, by pair_kernel.PairClass
    uint64_t *keys           # third-order scores by key, open addressing
    float *values
    uint64_t n_slots         # a power of two
    uint64_t n_keys
    bint failed              # out of memory
    Watch *watch             # whether to stop, NULL where nobody asks
    uint32_t *ids            # features of the part at hand
    float *cells             # [n_cells]
    double *first_order      # [(n + 1) * (n + 1)]
    int32_t *kept            # heads kept, word by word
    int32_t *kept_first      # [n + 2]
    Buffer arc_memory, pair_memory, key_memory, value_memory, id_memory, cell_memory
    Buffer matrix_memory, kept_memory, count_memory, own_memory, kernel_memory


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
