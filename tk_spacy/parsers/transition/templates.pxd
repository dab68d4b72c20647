from libc.stdint cimport int32_t, uint32_t, uint64_t

from tk_spacy.parsers.transition.states cimport State, Token

cdef enum:
    # Columns of words; FEATS attributes follow from FIRST_FEAT on.
    FORM = 0
    LEMMA = 1
    POS = 2
    CPOS = 3
    TAG = 4
    SUFFIX = 5
    FIRST_FEAT = 6
    MOST_FEATS = 16
    # Features of one state, and of one arc, at most.
    MOST_MOVE_IDS = 128 + 3 * 16
    MOST_LABEL_IDS = 64 + 2 * 16


cdef struct Words:
    # A sentence: rows 0 the root, 1..n the words, n + 1 no word.
    const int32_t *fields
    int n
    int n_fields


cdef struct Sink:
    # Where ids of features go; rows of weights are fetched meanwhile.
    uint32_t *ids
    int n
    uint64_t mask
    const float *weights
    int step             # weights between two ids


cdef void move_templates(Sink *sink, const Words *x, const State *state) noexcept nogil
cdef void label_templates(
    Sink *sink, const Words *x, const State *state, int head, int mod, bint to_left
) noexcept nogil
