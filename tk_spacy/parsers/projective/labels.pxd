# Labels of the arcs of a tree (see labels.pyx).

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.sampling.search.structs cimport Buffer

cdef enum:
    MOST_CONTEXT = 64        # features of an arc's surroundings, at most
    UNDER_ROOT = 1           # bits of Labels.places
    ELSEWHERE = 2
    NO_TREE = -2             # heads of no tree


cdef struct Labels:
    # What arcs are labelled with; nothing here is written to.
    const float *weights     # [mask + 1 + n_labels]
    const uint8_t *places    # [n_labels], where a label may stand
    uint64_t mask
    int n_labels
    int morph_end


cdef struct Surroundings:
    # What stands around each word of a tree: int32[n + 1] each, n + 1 for none.
    const int32_t *heads
    int32_t *nearer          # sibling towards the head
    int32_t *farther         # sibling away from it
    int32_t *first_child     # leftmost and rightmost modifiers
    int32_t *last_child
    int32_t *n_left          # numbers of modifiers
    int32_t *n_right
    int32_t *order           # [n], words from the root down, siblings from the head outwards
    Buffer memory


cdef int look_around(Surroundings *at, int n, const int32_t *heads) noexcept nogil
cdef int label_ids(
    const Words *x, const Labels *model, const Surroundings *at, const int32_t *labels, int m,
    uint32_t *ids
) noexcept nogil
cdef void score_labels(
    const Labels *model, const uint32_t *ids, int count, float *cells
) noexcept nogil
cdef int best_label(const Labels *model, const float *cells, int head) noexcept nogil
