"""Discrepancy search in a greedily trained transition-based parser.

The greedy run takes the best action at every step.  A *discrepancy* is one step where another move
type is taken instead (Harvey and Ginsberg 1995, "Limited discrepancy search"); after it the run is
greedy again.  Runs are explored best first, by the log-probability they would have if the changed
step cost its margin and nothing else changed, so that two or three small discrepancies come before
one large one.  A label changes no later score, so a run notes the second-best label of every arc
instead of running again.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, is_stopped
from tk_spacy.parsers.spacy_transition.arc_eager cimport (
    LEFT, N_MOVE_TYPES, RIGHT, State, apply_move, buffer_word, is_final, max_steps, reset,
    stack_word, valid_moves,
)
from tk_spacy.parsers.spacy_transition.context_scores cimport ContextScores, Scores, log_of_allowed


cdef struct Step:
    int32_t action
    int32_t scores   # row of the context's Scores
    double logp      # of all actions up to and with this one


cdef struct Discrepancy:
    double logp      # what the whole run is expected to have
    int32_t run
    int32_t step
    int32_t action


cdef class DiscrepancySearch:
    """Searches the sentence that its ContextScores has in hand."""

    cdef ContextScores model
    cdef Step* steps          # [max_runs, n_steps]
    cdef int64_t steps_capacity
    cdef int32_t n_steps
    cdef Discrepancy* heap
    cdef int64_t heap_size, heap_capacity
    cdef bint failed

    def __cinit__(self):
        self.heap_capacity = 1024
        self.heap = <Discrepancy*>malloc(self.heap_capacity * sizeof(Discrepancy))
        if not self.heap:
            raise MemoryError

    def __dealloc__(self):
        free(self.heap)
        free(self.steps)

    def __init__(self, ContextScores model not None):
        self.model = model

    def search(self, *, int max_runs, int max_trees, double max_margin):
        """Trees of the sentence in the order of their discovery, the greedy one first.

        max_runs, max_trees: stop after so many runs or distinct trees.
        max_margin: the largest log-odds that a discrepancy may cost.

        Returns heads int32[m, n] (0-based, -1 for the root), actions int32[m, n] that made the arcs
        (-1 for the root), second-best actions and their margins (int32 and float64[m, n]; -1 and
        infinity where there is none), log-probabilities float64[m], and the number of runs.
        """
        cdef int n_words = self.model.n_words
        cdef Step* steps
        if n_words == 0:
            raise ValueError("the model has no sentence yet: call its begin")
        if max_runs < 1 or max_trees < 1:
            raise ValueError(f"max_runs and max_trees must be positive: {max_runs}, {max_trees}")
        self.n_steps = max_steps(n_words)
        self.heap_size = 0
        self.failed = False
        if <int64_t>max_runs * self.n_steps > self.steps_capacity:
            steps = <Step*>realloc(self.steps, <int64_t>max_runs * self.n_steps * sizeof(Step))
            if not steps:
                raise MemoryError
            self.steps = steps
            self.steps_capacity = <int64_t>max_runs * self.n_steps
        heads = np.empty((max_trees, n_words), dtype=np.int32)
        actions = np.empty((max_trees, n_words), dtype=np.int32)
        seconds = np.empty((max_trees, n_words), dtype=np.int32)
        margins = np.empty((max_trees, n_words))
        logps = np.empty(max_trees)
        cdef int32_t[:, ::1] heads_view = heads
        cdef int32_t[:, ::1] actions_view = actions
        cdef int32_t[:, ::1] seconds_view = seconds
        cdef double[:, ::1] margins_view = margins
        cdef double[::1] logps_view = logps
        cdef uint64_t[::1] hashes = np.empty(max_trees, dtype=np.uint64)
        cdef int runs = 0
        cdef int found
        cdef Listener listener = Listener()
        self.model.watch = &listener.watch
        with nogil:
            found = self._search(max_runs, max_trees, max_margin, heads_view, actions_view,
                                 seconds_view, margins_view, logps_view, hashes, &runs)
        self.model.watch = NULL
        listener.check()
        if self.failed:
            raise MemoryError(f"discrepancy search of a sentence of {n_words} words")
        return heads[:found], actions[:found], seconds[:found], margins[:found], logps[:found], runs

    cdef int _search(self, int max_runs, int max_trees, double max_margin,
                     int32_t[:, ::1] heads, int32_t[:, ::1] labels, int32_t[:, ::1] seconds,
                     double[:, ::1] margins, double[::1] logps, uint64_t[::1] hashes,
                     int* runs) noexcept nogil:
        cdef const State* state = &self.model.state
        cdef Discrepancy change
        cdef int found = 0
        cdef int taken, same
        cdef double logp
        change.run = -1
        change.step = -1
        change.action = -1
        while True:
            taken = self._run(runs[0], change, &seconds[found, 0], &margins[found, 0])
            if self.failed:
                return found
            logp = self.steps[<int64_t>runs[0] * self.n_steps + taken - 1].logp
            same = self._find(heads, labels, hashes, found)
            if same < 0:
                memcpy(&heads[found, 0], state.heads, state.n * sizeof(int32_t))
                memcpy(&labels[found, 0], state.labels, state.n * sizeof(int32_t))
                logps[found] = logp
                found += 1
                self._note_discrepancies(runs[0], change.step, taken, logp, max_margin)
            elif logp > logps[same]:
                # Another order of actions to a known tree: what can be changed in it is known too.
                logps[same] = logp
            runs[0] += 1
            if runs[0] == max_runs or found == max_trees or self.heap_size == 0:
                return found
            change = self._pop()

    cdef int _run(self, int run, Discrepancy change, int32_t* seconds,
                  double* margins) noexcept nogil:
        # Replays a run up to the change, makes it, and goes on greedily; returns the steps taken.
        cdef State* state = &self.model.state
        cdef Step* steps = self.steps + <int64_t>run * self.n_steps
        cdef const Step* parent = self.steps + <int64_t>max(0, change.run) * self.n_steps
        cdef int step, move, action, valid, other, word
        cdef int32_t row
        cdef double logp = 0.0
        cdef Scores* scores
        cdef float best = 0.0
        reset(state)
        for word in range(state.n):
            seconds[word] = -1
            margins[word] = INFINITY
        for step in range(self.n_steps):
            if is_stopped(self.model.watch):
                break
            valid = valid_moves(state)
            if step < change.step:
                row = parent[step].scores
                action = parent[step].action
            else:
                row = self.model.look_up()
                if row < 0:
                    self.failed = True
                    return step
                action = change.action if step == change.step else -1
            scores = self.model.contexts + row
            if action < 0:
                for other in range(N_MOVE_TYPES):
                    if valid >> other & 1 and scores.best[other] >= 0 and (
                        action < 0 or scores.best_score[other] > best
                        or (scores.best_score[other] == best and scores.best[other] < action)
                    ):
                        action = scores.best[other]
                        best = scores.best_score[other]
                if action < 0:  # no action is trained for what is allowed here
                    self.failed = True
                    return step
            move = self.model.move_types[action]
            if step < change.step:
                logp = parent[step].logp
            else:
                logp += scores.best_score[move] - log_of_allowed(scores, valid)
            if move == LEFT or move == RIGHT:
                word = buffer_word(state, 0) if move == RIGHT else stack_word(state, 0)
                seconds[word] = scores.second[move]
                margins[word] = INFINITY  # where the move has one label only, or an older arc had
                if seconds[word] >= 0:
                    margins[word] = scores.best_score[move] - scores.second_score[move]
            steps[step].action = action
            steps[step].scores = row
            steps[step].logp = logp
            apply_move(state, move, action)
            if is_final(state):
                return step + 1
        self.failed = True
        return self.n_steps

    cdef void _note_discrepancies(self, int run, int after, int taken, double logp,
                                  double max_margin) noexcept nogil:
        # Needs the validity of each step again, which is cheaper to replay than to store.
        cdef State* state = &self.model.state
        cdef const Step* steps = self.steps + <int64_t>run * self.n_steps
        cdef const Scores* scores
        cdef Discrepancy change
        cdef int step, move, other, valid
        cdef double margin
        reset(state)
        change.run = run
        for step in range(taken):
            move = self.model.move_types[steps[step].action]
            if step > after:
                scores = self.model.contexts + steps[step].scores
                valid = valid_moves(state)
                for other in range(N_MOVE_TYPES):
                    if other == move or not valid >> other & 1 or scores.best[other] < 0:
                        continue
                    margin = scores.best_score[move] - scores.best_score[other]
                    if margin <= max_margin:
                        change.logp = logp - margin
                        change.step = step
                        change.action = scores.best[other]
                        self._push(change)
            apply_move(state, move, steps[step].action)

    cdef int _find(self, const int32_t[:, ::1] heads, const int32_t[:, ::1] labels,
                   uint64_t[::1] hashes, int found) noexcept nogil:
        # Row of the tree that the state holds, -1 (and its hash noted) where it is new.
        cdef const State* state = &self.model.state
        cdef uint64_t key = 1469598103934665603ULL
        cdef int word, row
        cdef size_t size = state.n * sizeof(int32_t)
        for word in range(state.n):
            key = (key ^ <uint64_t>(state.heads[word] + 1)) * 1099511628211ULL
            key = (key ^ <uint64_t>(state.labels[word] + 1)) * 1099511628211ULL
        for row in range(found):
            if (hashes[row] == key and memcmp(&heads[row, 0], state.heads, size) == 0
                    and memcmp(&labels[row, 0], state.labels, size) == 0):
                return row
        hashes[found] = key
        return -1

    cdef void _push(self, Discrepancy item) noexcept nogil:
        cdef int64_t hole, parent
        cdef Discrepancy* grown
        if self.heap_size == self.heap_capacity:
            grown = <Discrepancy*>realloc(
                self.heap, 2 * self.heap_capacity * sizeof(Discrepancy)
            )
            if not grown:
                self.failed = True
                return
            self.heap = grown
            self.heap_capacity *= 2
        hole = self.heap_size
        self.heap_size += 1
        while hole > 0:
            parent = (hole - 1) // 2
            if not before(&item, self.heap + parent):
                break
            self.heap[hole] = self.heap[parent]
            hole = parent
        self.heap[hole] = item

    cdef Discrepancy _pop(self) noexcept nogil:
        cdef Discrepancy top = self.heap[0]
        cdef Discrepancy last
        cdef int64_t hole = 0
        cdef int64_t below
        self.heap_size -= 1
        last = self.heap[self.heap_size]
        while True:
            below = 2 * hole + 1
            if below >= self.heap_size:
                break
            if below + 1 < self.heap_size and before(self.heap + below + 1, self.heap + below):
                below += 1
            if not before(self.heap + below, &last):
                break
            self.heap[hole] = self.heap[below]
            hole = below
        self.heap[hole] = last
        return top


cdef inline bint before(const Discrepancy* a, const Discrepancy* b) noexcept nogil:
    # A total order, so that equal margins are explored in the same order everywhere.
    if a.logp != b.logp:
        return a.logp > b.logp
    if a.run != b.run:
        return a.run < b.run
    if a.step != b.step:
        return a.step < b.step
    return a.action < b.action
