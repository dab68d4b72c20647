"""Learning: the search's moves against the gold ones, and the weights that change.

Where the gold state fell out of the beam, or is not the best one in the end, the moves up to the
number at which the best state is furthest ahead of the gold one are learnt from (max-violation).
Sources: Collins and Roark (ACL 2004); Huang, Fayong and Guo (NAACL 2012).
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t
from libc.stdlib cimport free, realloc

import numpy as np

from tk_spacy.parsers.transition.oracle cimport OracleScratch, derive, release_oracle
from tk_spacy.parsers.transition.scores cimport (
    Model, Scores, begin_scores, label_ids, move_ids, release_scores, score_labels, score_moves,
)
from tk_spacy.parsers.transition.search cimport (
    Search, added, advance, begin_search, path_to, release_search,
)
from tk_spacy.parsers.transition.states cimport (
    DONE, LEFT, MOVES, State, SWAP, begin_state, make_move, place_state, state_size,
)
from tk_spacy.parsers.transition.templates cimport MOST_MOVE_IDS, Words


cdef class Learner:
    """Weights that learn from one sentence after the other.

    bits: 2 ** bits weights of moves and as many of labels.
    places: uint8[n_labels], where each label may stand, see `decoder.Scorer`.
    """

    cdef readonly object move_weights, label_weights
    cdef object _move_sums, _label_sums, _places
    cdef readonly int64_t steps
    cdef Model model
    cdef Scores scores
    cdef Search search
    cdef OracleScratch oracle
    cdef float *w_moves
    cdef float *w_labels
    cdef float *u_moves
    cdef float *u_labels
    cdef int32_t *moves
    cdef int room
    cdef void *state_memory

    def __cinit__(self, int bits, places):
        n_labels = len(places)
        self.move_weights = np.zeros(1 << bits, dtype=np.float32)
        self.label_weights = np.zeros((1 << bits) + n_labels, dtype=np.float32)
        self._move_sums = np.zeros_like(self.move_weights)
        self._label_sums = np.zeros_like(self.label_weights)
        self._places = np.ascontiguousarray(places, dtype=np.uint8)
        cdef float[::1] a = self.move_weights
        cdef float[::1] b = self.label_weights
        cdef float[::1] c = self._move_sums
        cdef float[::1] d = self._label_sums
        cdef const uint8_t[::1] p = self._places
        self.w_moves, self.w_labels, self.u_moves, self.u_labels = &a[0], &b[0], &c[0], &d[0]
        self.model.moves, self.model.labels, self.model.places = &a[0], &b[0], &p[0]
        self.model.move_mask = (1 << (bits - 2)) - 1
        self.model.label_mask = (1 << bits) - 1
        self.model.n_labels = n_labels
        self.steps = 0

    def __dealloc__(self):
        release_scores(&self.scores)
        release_search(&self.search)
        release_oracle(&self.oracle)
        free(self.moves)
        free(self.state_memory)

    def averaged(self):
        """The averages of both weights since the beginning: float32 arrays of their sizes."""
        steps = max(self.steps, 1)
        return tuple(
            (w.astype(np.float64) - u.astype(np.float64) / steps).astype(np.float32)
            for w, u in (
                (self.move_weights, self._move_sums), (self.label_weights, self._label_sums)
            )
        )

    def learn(
        self, const int32_t[:, ::1] fields, const int32_t[::1] heads, const int32_t[::1] labels,
        int width,
    ):
        """Search a sentence, and learn where the gold tree is not found; whether it was found.

        fields: int32[n + 2, F].  heads, labels: int32[n + 2], the gold tree, from 1 on.
        """
        cdef int n = <int>fields.shape[0] - 2, state
        cdef Words x
        x.fields, x.n, x.n_fields = &fields[0, 0], n, <int>fields.shape[1]
        self.steps += 1
        with nogil:
            state = self.learn_sentence(&x, &heads[0], &labels[0], width)
        if state == -1:
            raise MemoryError("no memory for learning from a sentence")
        if state < 0:
            raise ValueError(f"heads are {np.asarray(heads).tolist()}, expected a single-root tree")
        return state == 1

    cdef int learn_sentence(
        self, const Words *x, const int32_t *heads, const int32_t *labels, int width,
    ) noexcept nogil:
        cdef int n = x.n, room = 2 * n + n * n, n_gold, i, t = 0, row, of_labels, swaps = 0
        cdef int move = DONE, label = -1, top, at = -1, at_node = -1, moved
        cdef double gold_score = 0, most = -1, violation
        cdef bint found, fallen = False
        cdef State gold
        cdef void *memory
        if self.room < room:
            memory = realloc(self.moves, 4 * <size_t>room * sizeof(int32_t))
            if memory == NULL:
                return -1
            self.moves, self.room = <int32_t *>memory, room
            memory = realloc(self.state_memory, state_size(n))
            if memory == NULL:
                return -1
            self.state_memory = memory
        place_state(&gold, <char *>self.state_memory, n)
        begin_state(&gold, n)
        n_gold = derive(&self.oracle, heads, n, self.moves, room)
        if n_gold < 0:
            return n_gold
        for i in range(n_gold):
            swaps += self.moves[i] == SWAP
        if begin_scores(&self.scores, self.model.n_labels) < 0:
            return -1
        if begin_search(&self.search, n, width, 1, max(2 * n, swaps)) < 0:
            return -1
        while True:
            label = -1
            if t < n_gold:
                move = self.moves[t]
                if move >= LEFT:
                    top = gold.n_stack - 1
                    label = labels[gold.stack[top - (move == LEFT)]]
            else:
                move = DONE
            moved = advance(&self.search, &self.scores, &self.model, x, move, label)
            if moved < 0:
                return -1
            if moved == 0 and move == DONE:
                break
            if move != DONE:
                row = score_moves(&self.scores, &self.model, x, &gold)
                if row < 0:
                    return -1
                of_labels = 0
                if move >= LEFT:
                    of_labels = score_labels(&self.scores, &self.model, x, &gold, move)
                    if of_labels < 0:
                        return -1
                gold_score = added(
                    gold_score, self.scores.moves.rows[row * MOVES + move],
                    self.scores.labels.rows[of_labels * self.model.n_labels + label]
                    if move >= LEFT else 0,
                )
                make_move(&gold, move, label)
                t += 1
            found = False
            for i in range(self.search.size):
                if self.search.nodes[self.search.beam[i].node].is_gold:
                    found = True
                    break
            violation = self.search.beam[0].score - gold_score
            if not (found and i == 0) and violation > most:
                most, at, at_node = violation, t, self.search.beam[0].node
            if not found:
                fallen = True
        if not fallen and self.search.nodes[self.search.beam[0].node].is_gold:
            return 1
        self.update(x, labels, at, at_node)
        return 0

    cdef void update(
        self, const Words *x, const int32_t *labels, int n_gold, int node
    ) noexcept nogil:
        """Towards the first gold moves, away from those up to a node of the search."""
        cdef int32_t *found = self.moves + self.room
        cdef int32_t *found_labels = found + self.room
        cdef int n_found = path_to(&self.search, node, found, found_labels)
        cdef int i, move, label, same = 0
        cdef int turn, count
        cdef State state
        place_state(&state, <char *>self.state_memory, x.n)
        begin_state(&state, x.n)
        while same < n_gold and same < n_found:
            move, label = self.moves[same], -1
            if move >= LEFT:
                label = labels[state.stack[state.n_stack - 1 - (move == LEFT)]]
            if move != found[same] or label != found_labels[same]:
                break
            make_move(&state, move, label)
            same += 1
        for turn in range(2):
            begin_state(&state, x.n)
            count = n_found if turn else n_gold
            for i in range(count):
                move, label = (found[i] if turn else self.moves[i]), -1
                if move >= LEFT:
                    label = found_labels[i] if turn else labels[
                        state.stack[state.n_stack - 1 - (move == LEFT)]
                    ]
                if i >= same:
                    self.change(x, &state, move, label, -1.0 if turn else 1.0)
                make_move(&state, move, label)

    cdef void change(
        self, const Words *x, const State *state, int move, int label, float step
    ) noexcept nogil:
        """Add a step to the weights of a move's features, and to those of its label's."""
        cdef uint32_t ids[MOST_MOVE_IDS]
        cdef int n = move_ids(&self.model, x, state, ids), i
        cdef float when = step * <float>(self.steps - 1)
        for i in range(n):
            self.w_moves[<size_t>ids[i] * MOVES + move] += step
            self.u_moves[<size_t>ids[i] * MOVES + move] += when
        if move < LEFT:
            return
        n = label_ids(&self.model, x, state, move, ids)
        for i in range(n):
            self.w_labels[<size_t>ids[i] + label] += step
            self.u_labels[<size_t>ids[i] + label] += when
