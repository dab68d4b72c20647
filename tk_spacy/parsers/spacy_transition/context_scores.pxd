from libc.stdint cimport int32_t, int64_t

from tk_spacy.parallel.stopping cimport Watch
from tk_spacy.parsers.spacy_transition.arc_eager cimport State

cdef enum:
    MAX_FEATURES = 13
    MAX_MOVE_TYPES = 4


cdef struct Scores:
    # What the model says about one context: of each move type the two best actions.
    int32_t words[MAX_FEATURES]
    int32_t best[MAX_MOVE_TYPES]
    int32_t second[MAX_MOVE_TYPES]
    float best_score[MAX_MOVE_TYPES]
    float second_score[MAX_MOVE_TYPES]
    double log_sum[MAX_MOVE_TYPES]


cdef class ContextScores:
    cdef readonly int n_actions
    cdef int n_hidden, n_pieces, n_features
    cdef int32_t[::1] move_types
    cdef float[::1] lower_b
    cdef float[:, ::1] upper_w_t
    cdef float[::1] upper_b
    cdef bint has_upper
    # The sentence in hand.
    cdef readonly int n_words
    cdef int first
    cdef int64_t row_size
    cdef object batch
    cdef const float* cached
    cdef State state
    cdef Watch *watch          # whether to stop, NULL where nobody asks
    # Scores by context, found through an open hash table.
    cdef Scores* contexts
    cdef float* action_scores  # [max_contexts, n_actions]
    cdef int32_t n_contexts, max_contexts
    cdef int32_t* table
    cdef int32_t table_size
    # Work space.
    cdef int32_t* state_memory
    cdef int32_t max_words
    cdef float* sums
    cdef float* hidden

    cdef int32_t look_up(self) noexcept nogil
    cdef int32_t add_context(self, const int32_t* words, int32_t slot) noexcept nogil
    cdef bint grow_contexts(self) noexcept nogil
    cdef bint grow_table(self) noexcept nogil
    cdef int32_t find_slot(self, const int32_t* words) noexcept nogil
    cdef void compute(self, Scores* out, float* scores) noexcept nogil
    cdef void rank_actions(self, Scores* out, const float* scores) noexcept nogil


cdef double log_of_allowed(const Scores* scores, int valid) noexcept nogil
