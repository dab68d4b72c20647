"""Beam search: the best states after each number of moves.

States that are final early, as they needed fewer SWAPs, stay in the beam with the score they have.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc, realloc

from tk_spacy.parsers.transition.scores cimport Best, Model, Scores, score_labels, score_moves
from tk_spacy.parsers.transition.states cimport (
    DONE, LEFT, MOVES, RIGHT, State, begin_state, copy_state, is_final, is_legal, make_move,
    place_state, state_size,
)
from tk_spacy.parsers.transition.templates cimport Words


cdef int begin_search(
    Search *s, int n, int width, int n_labels_tried, int most_swaps
) noexcept nogil:
    """The beam with the first state alone.  Returns -1 without memory.

    n: words.  most_swaps: of one state.
    """
    cdef size_t of_state = state_size(n), size
    cdef char *memory
    cdef int i
    size = 2 * width * (sizeof(State) + of_state) + (width + 1) * sizeof(Candidate)
    if s.memory_size < size:
        free(s.memory)
        s.memory_size = 0
        s.memory = malloc(size + size // 2)
        if s.memory == NULL:
            return -1
        s.memory_size = size + size // 2
    s.beam = <State *>s.memory
    s.other = s.beam + width
    s.candidates = <Candidate *>(s.other + width)
    memory = <char *>(s.candidates + width + 1)
    for i in range(width):
        place_state(&s.beam[i], memory + 2 * i * of_state, n)
        place_state(&s.other[i], memory + (2 * i + 1) * of_state, n)
    s.n, s.width, s.n_labels_tried, s.most_swaps = n, width, n_labels_tried, most_swaps
    s.n_nodes = 0
    s.size = 1
    begin_state(&s.beam[0], n)
    return 0


cdef void release_search(Search *s) noexcept nogil:
    free(s.memory)
    free(s.nodes)
    s.memory, s.nodes = NULL, NULL
    s.memory_size, s.room = 0, 0


cdef inline void offer(Search *s, int *n, Candidate *candidate) noexcept nogil:
    """Take up a candidate where it is among the best; of equal ones the first stay."""
    cdef int i = n[0]
    if i == s.width:
        if not candidate.score > s.candidates[i - 1].score:
            return
        i -= 1
    else:
        n[0] += 1
    while i > 0 and candidate.score > s.candidates[i - 1].score:
        s.candidates[i] = s.candidates[i - 1]
        i -= 1
    s.candidates[i] = candidate[0]


cdef int advance(
    Search *s, Scores *scores, const Model *model, const Words *x, int gold_move, int gold_label
) noexcept nogil:
    """One more move of every state.  Returns 1, 0 where all are final, -1 without memory.

    gold_move, gold_label: the next gold ones, DONE where the gold state is final, NO_GOLD where
    there is none.
    """
    cdef int i, j, move, row, of_labels, n = 0, moving = 0
    cdef Candidate candidate
    cdef State *state
    cdef Node *node
    cdef Best *best
    cdef bint was_gold
    cdef void *memory
    for i in range(s.size):
        state = &s.beam[i]
        candidate.state = i
        if is_final(state, s.n):
            candidate.score, candidate.move = state.score, DONE
            candidate.label = candidate.second = -1
            candidate.margin = 0
            offer(s, &n, &candidate)
            continue
        moving += 1
        row = score_moves(scores, model, x, state)
        if row < 0:
            return -1
        for move in range(MOVES):
            if not is_legal(state, s.n, move, s.most_swaps):
                continue
            candidate.move = move
            candidate.label = candidate.second = -1
            candidate.margin = 0
            if move < LEFT:
                candidate.score = added(state.score, scores.moves.rows[row * MOVES + move], 0)
                offer(s, &n, &candidate)
                continue
            of_labels = score_labels(scores, model, x, state, move)
            if of_labels < 0:
                return -1
            best = &scores.labels.best[of_labels]
            candidate.label = best.first
            candidate.second = best.second
            candidate.margin = best.first_score - best.second_score
            candidate.score = added(
                state.score, scores.moves.rows[row * MOVES + move], best.first_score
            )
            offer(s, &n, &candidate)
            if s.n_labels_tried > 1 and best.second >= 0:
                candidate.label, candidate.second = best.second, -1
                candidate.score = added(
                    state.score, scores.moves.rows[row * MOVES + move], best.second_score
                )
                offer(s, &n, &candidate)
    if not moving:
        return 0
    if s.n_nodes + n > s.room:
        memory = realloc(s.nodes, <size_t>(2 * s.room + n + 256) * sizeof(Node))
        if memory == NULL:
            return -1
        s.nodes = <Node *>memory
        s.room = 2 * s.room + n + 256
    for j in range(n):
        candidate = s.candidates[j]
        state = &s.beam[candidate.state]
        copy_state(&s.other[j], state, s.n)
        was_gold = state.node < 0 or s.nodes[state.node].is_gold
        state = &s.other[j]
        if candidate.move == DONE:
            continue
        state.score = candidate.score
        node = &s.nodes[s.n_nodes]
        node.before, node.move, node.label = state.node, candidate.move, candidate.label
        node.second, node.margin = candidate.second, candidate.margin
        node.mod = state.stack[state.n_stack - (1 if candidate.move == RIGHT else 2)] \
            if candidate.move >= LEFT else 0
        node.is_gold = (
            was_gold and candidate.move == gold_move and candidate.label == gold_label
        )
        make_move(state, candidate.move, candidate.label)
        state.node = s.n_nodes
        s.n_nodes += 1
    s.beam, s.other = s.other, s.beam
    s.size = n
    return 1


cdef int path_to(const Search *s, int node, int32_t *moves, int32_t *labels) noexcept nogil:
    """The moves up to a node and the labels of their arcs, -1 for none; their number."""
    cdef int at = node, count = 0
    while at >= 0:
        count += 1
        at = s.nodes[at].before
    at = node
    cdef int i = count
    while at >= 0:
        i -= 1
        moves[i], labels[i] = s.nodes[at].move, s.nodes[at].label
        at = s.nodes[at].before
    return count
