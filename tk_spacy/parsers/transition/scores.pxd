# Scores of moves and labels, each computed once a sentence.

from libc.stdint cimport int32_t, uint32_t, uint64_t, uint8_t

from tk_spacy.parsers.transition.states cimport State
from tk_spacy.parsers.transition.templates cimport (
    MOST_LABEL_IDS, MOST_MOVE_IDS, Sink, Words,
)

cdef enum:
    UNDER_ROOT = 1       # bits of Model.places
    ELSEWHERE = 2


cdef struct Model:
    # What a sentence is scored with; nothing here is written to.
    const float *moves       # [4 * (move_mask + 1)]
    const float *labels      # [label_mask + 1 + n_labels]
    const uint8_t *places    # [n_labels], where a label may stand
    uint64_t move_mask
    uint64_t label_mask
    int n_labels


cdef struct Slot:
    uint64_t key
    uint32_t stamp       # of the sentence; any other means that the slot is free
    int32_t row


cdef struct Best:
    # The best label of an arc and the second best, -1 for none.
    int32_t first
    int32_t second
    float first_score
    float second_score


cdef struct Cache:
    Slot *slots
    uint64_t n_slots     # a power of two
    int32_t n_rows
    int32_t room
    uint32_t stamp
    int width            # floats of a row
    float *rows          # [room * width]
    Best *best           # [room]; NULL where rows are of moves


cdef struct Scores:
    Cache moves
    Cache labels
    uint32_t ids[MOST_MOVE_IDS]


cdef int begin_scores(Scores *scores, int n_labels) noexcept nogil
cdef void release_scores(Scores *scores) noexcept nogil
cdef int score_moves(
    Scores *scores, const Model *model, const Words *x, const State *state
) noexcept nogil
cdef int score_labels(
    Scores *scores, const Model *model, const Words *x, const State *state, int move
) noexcept nogil
cdef int move_ids(
    const Model *model, const Words *x, const State *state, uint32_t *ids
) noexcept nogil
cdef int label_ids(
    const Model *model, const Words *x, const State *state, int move, uint32_t *ids
) noexcept nogil
