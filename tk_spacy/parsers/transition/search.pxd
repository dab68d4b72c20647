# Beam search: the best states after each number of moves.

from libc.stdint cimport int32_t

from tk_spacy.parsers.transition.scores cimport Model, Scores
from tk_spacy.parsers.transition.states cimport State
from tk_spacy.parsers.transition.templates cimport Words

cdef enum:
    NO_GOLD = -2         # instead of a gold move


cdef struct Node:
    # A move of some state of the beam, and the one before it, -1 for none.
    int32_t before
    int32_t move
    int32_t label        # of an arc, else -1
    int32_t mod          # its modifier
    int32_t second       # the second best label, -1 for none
    float margin         # by how much it is worse
    bint is_gold         # whether all moves up to here are the gold ones


cdef struct Candidate:
    double score
    int32_t state
    int32_t move
    int32_t label
    int32_t second
    float margin


cdef struct Search:
    int n
    int width            # states of the beam, at most
    int n_labels_tried   # of an arc: 1 or 2
    int most_swaps
    int size             # states of the beam
    State *beam          # [width], best first
    State *other         # [width]
    Candidate *candidates  # [width + 1]
    Node *nodes
    int n_nodes
    int room
    void *memory
    size_t memory_size


cdef int begin_search(
    Search *s, int n, int width, int n_labels_tried, int most_swaps
) noexcept nogil
cdef int advance(
    Search *s, Scores *scores, const Model *model, const Words *x, int gold_move, int gold_label
) noexcept nogil
cdef void release_search(Search *s) noexcept nogil
cdef int path_to(const Search *s, int node, int32_t *moves, int32_t *labels) noexcept nogil
cdef inline double added(double score, float move, float label) noexcept nogil:
    """A state's score after a move; one rule, so that the same moves have the same score."""
    return score + (<double>move + <double>label)
