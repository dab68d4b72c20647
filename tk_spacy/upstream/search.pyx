"""Discrepancy search in a greedily trained transition-based parser.

The greedy run takes the best action at every step.  A *discrepancy* is one step where another move
type is taken instead (Harvey and Ginsberg 1995, "Limited discrepancy search"); after it the run is
greedy again.  Runs are explored best first, by the log-probability they would have if the changed
step cost its margin and nothing else changed, so that two or three small discrepancies come before
one large one.

Two things make this cheap.  The model sees a state only through the words at 8 (or 13) positions,
so scores are kept by those words: after a discrepancy most of a sentence is as before.  And a label
changes no later score, so a run notes the second-best label of every arc instead of running again.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from tk_spacy.upstream.arc_eager cimport (
    LEFT,
    N_MOVE_TYPES,
    REDUCE,
    RIGHT,
    SHIFT,
    State,
    apply_move,
    buffer_length,
    buffer_word,
    context_words,
    is_final,
    reset,
    stack_word,
    valid_moves,
)

DEF MAX_FEATURES = 13


cdef struct Scores:
    # What the model says about one context: of each move type the two best actions.
    int32_t words[MAX_FEATURES]
    int32_t best[4]
    int32_t second[4]
    float best_score[4]
    float second_score[4]
    double log_sum[4]


cdef struct Step:
    int32_t action
    int32_t scores   # row of the context's Scores
    double logp      # of all actions up to and with this one


cdef struct Discrepancy:
    double logp      # what the whole run is expected to have
    int32_t run
    int32_t step
    int32_t action


cdef class ArcEagerSearch:
    """Searcher for one trained model; the weights are copied, so retrain means rebuild.

    move_types: int32[n_actions], 0 SHIFT, 1 REDUCE, 2 LEFT, 3 RIGHT, -1 for an action never taken.
    lower_b:    float32[n_hidden, n_pieces], bias of the state vector.
    upper_w:    float32[n_actions, n_hidden], upper_b: float32[n_actions]; both None where the state
                vector itself holds the scores.
    n_features: 8 or 13 positions a state is read from.
    """

    cdef int n_actions, n_hidden, n_pieces, n_features
    cdef int32_t[::1] move_types
    cdef float[::1] lower_b
    cdef float[:, ::1] upper_w_t
    cdef float[::1] upper_b
    cdef bint has_upper
    # Work space, grown to the longest sentence and the largest search so far.
    cdef State state
    cdef int32_t* state_memory
    cdef int32_t max_words
    cdef float* sums
    cdef float* hidden
    cdef Scores* contexts
    cdef float* action_scores  # [max_contexts, n_actions]
    cdef int32_t n_contexts, max_contexts
    cdef int32_t* table
    cdef int32_t table_size
    cdef Step* steps
    cdef int64_t max_steps_total
    cdef int32_t max_steps
    cdef Discrepancy* heap
    cdef int64_t heap_size, heap_capacity
    # The sentence being searched.
    cdef const float* cached
    cdef int64_t row_size
    cdef bint failed

    def __cinit__(self):
        self.max_contexts = 1024
        self.table_size = 4096
        self.heap_capacity = 1024
        self.contexts = <Scores*>malloc(self.max_contexts * sizeof(Scores))
        self.table = <int32_t*>malloc(self.table_size * sizeof(int32_t))
        self.heap = <Discrepancy*>malloc(self.heap_capacity * sizeof(Discrepancy))
        if not (self.contexts and self.table and self.heap):
            raise MemoryError

    def __dealloc__(self):
        free(self.contexts)
        free(self.table)
        free(self.heap)
        free(self.steps)
        free(self.state_memory)
        free(self.sums)
        free(self.hidden)
        free(self.action_scores)

    def __init__(self, *, move_types, lower_b, upper_w=None, upper_b=None, int n_features=8):
        if n_features not in (8, 13):
            raise ValueError(f"n_features must be 8 or 13, got {n_features}")
        self.move_types = np.array(move_types, dtype=np.int32)
        lower_b = np.asarray(lower_b, dtype=np.float32)
        if lower_b.ndim != 2:
            raise ValueError(f"lower_b must be [n_hidden, n_pieces], got shape {lower_b.shape}")
        self.n_features = n_features
        self.n_actions = self.move_types.shape[0]
        self.n_hidden, self.n_pieces = lower_b.shape
        self.row_size = self.n_features * self.n_hidden * self.n_pieces
        self.lower_b = lower_b.ravel().copy()
        self.has_upper = upper_w is not None
        if self.has_upper:
            if np.shape(upper_w) != (self.n_actions, self.n_hidden):
                raise ValueError(
                    f"upper_w must be {(self.n_actions, self.n_hidden)}, got {np.shape(upper_w)}"
                )
            self.upper_w_t = np.ascontiguousarray(np.asarray(upper_w, dtype=np.float32).T)
            self.upper_b = np.array(upper_b, dtype=np.float32)
        elif self.n_hidden != self.n_actions:
            raise ValueError(f"{self.n_hidden} scores for {self.n_actions} actions")
        self.sums = <float*>malloc(self.n_hidden * self.n_pieces * sizeof(float))
        self.hidden = <float*>malloc(self.n_hidden * sizeof(float))
        self.action_scores = <float*>malloc(self.max_contexts * self.n_actions * sizeof(float))
        if not (self.sums and self.hidden and self.action_scores):
            raise MemoryError

    def search(self, const float[:, ::1] cached, *, int first, int n_words, int max_runs,
               int max_trees, double max_margin):
        """Trees of one sentence in the order of their discovery, the greedy one first.

        cached:   float32[1 + n_tokens, n_features * n_hidden * n_pieces], the precomputed part of
                  the model for a batch of sentences; row 0 is the padding.
        first:    where the sentence starts in the batch; n_words, its length.
        max_runs, max_trees: stop after so many runs or distinct trees.
        max_margin: the largest log-odds that a discrepancy may cost.

        Returns heads int32[m, n] (0-based, -1 for the root), labels int32[m, n] (actions, -1 for
        the root), second labels and margins (int32 and float64[m, n]; -1 and infinity where there
        is none), log-probabilities float64[m] and the number of runs.
        """
        if cached.shape[1] != self.row_size:
            raise ValueError(f"cached must have {self.row_size} columns, got {cached.shape[1]}")
        if n_words < 1 or first < 0 or first + n_words + 1 > cached.shape[0]:
            raise ValueError(
                f"words {first} to {first + n_words} are not in a batch of {cached.shape[0] - 1}"
            )
        if max_runs < 1 or max_trees < 1:
            raise ValueError(f"max_runs and max_trees must be positive: {max_runs}, {max_trees}")
        self._prepare(n_words, max_runs)
        heads = np.empty((max_trees, n_words), dtype=np.int32)
        labels = np.empty((max_trees, n_words), dtype=np.int32)
        seconds = np.full((max_trees, n_words), -1, dtype=np.int32)
        margins = np.full((max_trees, n_words), np.inf)
        logps = np.empty(max_trees)
        cdef int32_t[:, ::1] heads_view = heads
        cdef int32_t[:, ::1] labels_view = labels
        cdef int32_t[:, ::1] seconds_view = seconds
        cdef double[:, ::1] margins_view = margins
        cdef double[::1] logps_view = logps
        cdef uint64_t[::1] hashes = np.empty(max_trees, dtype=np.uint64)
        cdef int runs = 0
        cdef int found
        self.cached = &cached[0, 0]
        with nogil:
            found = self._search(first, max_runs, max_trees, max_margin, heads_view, labels_view,
                                 seconds_view, margins_view, logps_view, hashes, &runs)
        self.cached = NULL
        if self.failed:
            raise MemoryError(f"discrepancy search of a sentence of {n_words} words")
        return heads[:found], labels[:found], seconds[:found], margins[:found], logps[:found], runs

    def score_trees(self, const float[:, ::1] cached, *, int first, const int32_t[:, ::1] heads,
                    const int32_t[:, ::1] actions, bint total=True):
        """Log-probabilities float64[m] that the model gives to projective trees.

        cached, first: as in `search`.  heads: int32[m, n], 0-based, -1 for the root; actions:
        int32[m, n], the LEFT or RIGHT action that makes each word's arc, ignored for the root.
        The derivation is that of the static oracle; where it may either reduce or shift, the
        likelier is taken.  -infinity where a tree is not projective or has another action's type.
        """
        cdef int n_words = heads.shape[1]
        cdef int row
        if cached.shape[1] != self.row_size:
            raise ValueError(f"cached must have {self.row_size} columns, got {cached.shape[1]}")
        if n_words < 1 or first < 0 or first + n_words + 1 > cached.shape[0]:
            raise ValueError(
                f"words {first} to {first + n_words} are not in a batch of {cached.shape[0] - 1}"
            )
        if actions.shape[0] != heads.shape[0] or actions.shape[1] != n_words:
            raise ValueError("heads and actions must have one shape")
        low, high = np.min(actions, initial=0), np.max(actions, initial=0)
        if low < -1 or high >= self.n_actions:
            raise ValueError(f"actions must be -1 to {self.n_actions - 1}, got {low} to {high}")
        logps = np.empty(heads.shape[0])
        cdef double[::1] logps_view = logps
        self._prepare(n_words, 0)
        self.cached = &cached[0, 0]
        with nogil:
            for row in range(heads.shape[0]):
                logps_view[row] = self._score_tree(
                    first, &heads[row, 0], &actions[row, 0], total
                )
        self.cached = NULL
        if self.failed:
            raise MemoryError(f"scores of a sentence of {n_words} words")
        return logps

    cdef int _prepare(self, int n_words, int max_runs) except -1:
        cdef int32_t* memory
        cdef Step* steps
        if n_words > self.max_words:
            memory = <int32_t*>realloc(self.state_memory, 8 * n_words * sizeof(int32_t))
            if not memory:
                raise MemoryError
            self.state_memory = memory
            self.max_words = n_words
        memory = self.state_memory
        self.state.n = n_words
        self.state.stack = memory
        self.state.back = memory + n_words
        self.state.heads = memory + 2 * n_words
        self.state.labels = memory + 3 * n_words
        self.state.last_left = memory + 4 * n_words
        self.state.last_right = memory + 5 * n_words
        self.state.older = memory + 6 * n_words
        self.state.unshiftable = <uint8_t*>(memory + 7 * n_words)
        # A word is put back once, and once more after each LEFT: at most 3n pushes, as many pops.
        self.max_steps = 7 * n_words + 8
        if <int64_t>max_runs * self.max_steps > self.max_steps_total:
            self.max_steps_total = <int64_t>max_runs * self.max_steps
            steps = <Step*>realloc(self.steps, self.max_steps_total * sizeof(Step))
            if not steps:
                raise MemoryError
            self.steps = steps
        self.n_contexts = 0
        self.heap_size = 0
        self.failed = False
        memset(self.table, -1, self.table_size * sizeof(int32_t))
        return 0

    cdef int _search(self, int first, int max_runs, int max_trees, double max_margin,
                     int32_t[:, ::1] heads, int32_t[:, ::1] labels, int32_t[:, ::1] seconds,
                     double[:, ::1] margins, double[::1] logps, uint64_t[::1] hashes,
                     int* runs) noexcept nogil:
        cdef Discrepancy change
        cdef int found = 0
        cdef int n_steps, same
        cdef double logp
        change.run = -1
        change.step = -1
        change.action = -1
        while True:
            n_steps = self._run(first, runs[0], change, &seconds[found, 0], &margins[found, 0])
            if self.failed:
                return found
            logp = self.steps[runs[0] * self.max_steps + n_steps - 1].logp
            same = self._find(heads, labels, hashes, found)
            if same < 0:
                memcpy(&heads[found, 0], self.state.heads, self.state.n * sizeof(int32_t))
                memcpy(&labels[found, 0], self.state.labels, self.state.n * sizeof(int32_t))
                logps[found] = logp
                found += 1
                self._note_discrepancies(runs[0], change.step, n_steps, logp, max_margin)
            elif logp > logps[same]:
                # Another order of actions to a known tree: what can be changed in it is known too.
                logps[same] = logp
            runs[0] += 1
            if runs[0] == max_runs or found == max_trees or self.heap_size == 0:
                return found
            change = self._pop()

    cdef int _run(self, int first, int run, Discrepancy change, int32_t* seconds,
                  double* margins) noexcept nogil:
        # Replays a run up to the change, makes it, and goes on greedily; returns the steps taken.
        cdef State* state = &self.state
        cdef Step* steps = self.steps + <int64_t>run * self.max_steps
        cdef const Step* parent = self.steps + <int64_t>change.run * self.max_steps
        cdef int step, move, action, valid, other, word
        cdef int32_t row
        cdef double logp = 0.0
        cdef Scores* scores
        cdef float best = 0.0
        reset(state)
        for word in range(state.n):
            seconds[word] = -1
            margins[word] = INFINITY
        for step in range(self.max_steps):
            valid = valid_moves(state)
            if step < change.step:
                row = parent[step].scores
                action = parent[step].action
            else:
                row = self._context(first)
                if row < 0:
                    self.failed = True
                    return step
                action = change.action if step == change.step else -1
            scores = self.contexts + row
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
            move = self.move_types[action]
            if step < change.step:
                logp = parent[step].logp
            else:
                logp += scores.best_score[move] - log_sum(scores, valid)
            if move == LEFT or move == RIGHT:
                word = buffer_word(state, 0) if move == RIGHT else stack_word(state, 0)
                seconds[word] = scores.second[move]
                margins[word] = scores.best_score[move] - scores.second_score[move]
            steps[step].action = action
            steps[step].scores = row
            steps[step].logp = logp
            apply_move(state, move, action)
            if is_final(state):
                return step + 1
        self.failed = True
        return self.max_steps

    cdef double _score_tree(self, int first, const int32_t* heads, const int32_t* actions,
                            bint total) noexcept nogil:
        # Follows the likeliest of the actions that keep the tree reachable at the least cost.
        cdef State* state = &self.state
        cdef const Scores* scores
        cdef const float* row_scores
        cdef double logp = 0.0
        cdef double mass, own
        cdef int32_t row, action, b0, s0, following
        cdef int _step, valid, move, least, followed
        cdef int cost[4]
        reset(state)
        for _step in range(self.max_steps):
            if is_final(state):
                for row in range(state.n):
                    if state.heads[row] != heads[row] or (
                        heads[row] >= 0 and state.labels[row] != actions[row]
                    ):
                        return -INFINITY
                return logp
            row = self._context(first)
            if row < 0:
                self.failed = True
                return -INFINITY
            scores = self.contexts + row
            row_scores = self.action_scores + <int64_t>row * self.n_actions
            valid = valid_moves(state)
            move_costs(state, heads, cost)
            least = 1000000
            for move in range(N_MOVE_TYPES):
                if valid >> move & 1 and scores.best[move] >= 0 and cost[move] < least:
                    least = cost[move]
            s0 = stack_word(state, 0)
            b0 = buffer_word(state, 0)
            mass = -INFINITY
            following = -1
            followed = -1
            for move in range(N_MOVE_TYPES):
                if not valid >> move & 1 or scores.best[move] < 0 or cost[move] != least:
                    continue
                action = scores.best[move]
                own = scores.log_sum[move]
                if move == LEFT and heads[s0] == b0:
                    action = actions[s0]
                    own = row_scores[action]
                elif move == RIGHT and heads[b0] == s0:
                    action = actions[b0]
                    own = row_scores[action]
                if self.move_types[action] != move:
                    return -INFINITY
                mass = log_add(mass, own)
                if following < 0 or row_scores[action] > row_scores[following]:
                    following = action
                    followed = move
            if following < 0:
                return -INFINITY
            logp += (mass if total else row_scores[following]) - log_sum(scores, valid)
            apply_move(state, followed, following)
        return -INFINITY

    cdef void _note_discrepancies(self, int run, int after, int n_steps, double logp,
                                  double max_margin) noexcept nogil:
        # Needs the validity of each step again, which is cheaper to replay than to store.
        cdef State* state = &self.state
        cdef const Step* steps = self.steps + <int64_t>run * self.max_steps
        cdef const Scores* scores
        cdef Discrepancy change
        cdef int step, move, other, valid
        cdef double margin
        reset(state)
        change.run = run
        for step in range(n_steps):
            move = self.move_types[steps[step].action]
            if step > after:
                scores = self.contexts + steps[step].scores
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
        cdef uint64_t key = 1469598103934665603ULL
        cdef int word, row
        cdef size_t size = self.state.n * sizeof(int32_t)
        for word in range(self.state.n):
            key = (key ^ <uint64_t>(self.state.heads[word] + 1)) * 1099511628211ULL
            key = (key ^ <uint64_t>(self.state.labels[word] + 1)) * 1099511628211ULL
        for row in range(found):
            if (hashes[row] == key and memcmp(&heads[row, 0], self.state.heads, size) == 0
                    and memcmp(&labels[row, 0], self.state.labels, size) == 0):
                return row
        hashes[found] = key
        return -1

    cdef int32_t _context(self, int first) noexcept nogil:
        # Row of the scores for the state's context, computed where it is new; -1 without memory.
        cdef int32_t words[MAX_FEATURES]
        cdef uint64_t key = 1469598103934665603ULL
        cdef int feature
        cdef int32_t slot, row
        cdef Scores* grown
        cdef float* grown_scores
        memset(words, -1, sizeof(words))
        context_words(&self.state, words, self.n_features)
        for feature in range(self.n_features):
            key = (key ^ <uint64_t>(words[feature] + 1)) * 1099511628211ULL
        slot = <int32_t>((key ^ (key >> 32)) & <uint64_t>(self.table_size - 1))
        while self.table[slot] >= 0:
            row = self.table[slot]
            if memcmp(self.contexts[row].words, words, sizeof(words)) == 0:
                return row
            slot = (slot + 1) & (self.table_size - 1)
        row = self.n_contexts
        if row == self.max_contexts:
            grown = <Scores*>realloc(self.contexts, 2 * self.max_contexts * sizeof(Scores))
            if not grown:
                return -1
            self.contexts = grown
            grown_scores = <float*>realloc(
                self.action_scores, 2 * self.max_contexts * self.n_actions * sizeof(float)
            )
            if not grown_scores:
                return -1
            self.action_scores = grown_scores
            self.max_contexts *= 2
        memcpy(self.contexts[row].words, words, sizeof(words))
        self._score(first, self.contexts + row, self.action_scores + <int64_t>row * self.n_actions)
        self.table[slot] = row
        self.n_contexts += 1
        if 2 * self.n_contexts > self.table_size and not self._grow_table():
            return -1
        return row

    cdef bint _grow_table(self) noexcept nogil:
        cdef int32_t* table = <int32_t*>malloc(2 * self.table_size * sizeof(int32_t))
        cdef uint64_t key
        cdef int32_t row, slot
        cdef int feature
        if not table:
            return False
        free(self.table)
        self.table = table
        self.table_size *= 2
        memset(table, -1, self.table_size * sizeof(int32_t))
        for row in range(self.n_contexts):
            key = 1469598103934665603ULL
            for feature in range(self.n_features):
                key = (key ^ <uint64_t>(self.contexts[row].words[feature] + 1)) * 1099511628211ULL
            slot = <int32_t>((key ^ (key >> 32)) & <uint64_t>(self.table_size - 1))
            while table[slot] >= 0:
                slot = (slot + 1) & (self.table_size - 1)
            table[slot] = row
        return True

    cdef void _score(self, int first, Scores* out, float* scores) noexcept nogil:
        # The model's upper part for one context, in spaCy's order of additions.
        cdef int size = self.n_hidden * self.n_pieces
        cdef int feature, i, j, move
        cdef const float* row
        cdef float* sums = self.sums
        cdef float* hidden = self.hidden
        cdef const float* weights
        cdef float value
        memset(sums, 0, size * sizeof(float))
        for feature in range(self.n_features):
            row = self.cached + feature * size
            if out.words[feature] >= 0:
                row += <int64_t>(1 + first + out.words[feature]) * self.row_size
            for i in range(size):
                sums[i] += row[i]
        for i in range(size):
            sums[i] += self.lower_b[i]
        for i in range(self.n_hidden):
            value = sums[i * self.n_pieces]
            for j in range(1, self.n_pieces):
                if sums[i * self.n_pieces + j] > value:
                    value = sums[i * self.n_pieces + j]
            hidden[i] = value
        if self.has_upper:
            memset(scores, 0, self.n_actions * sizeof(float))
            for i in range(self.n_hidden):
                value = hidden[i]
                weights = &self.upper_w_t[i, 0]
                for j in range(self.n_actions):
                    scores[j] += value * weights[j]
            for j in range(self.n_actions):
                scores[j] += self.upper_b[j]
        else:
            memcpy(scores, hidden, self.n_actions * sizeof(float))
        for move in range(N_MOVE_TYPES):
            out.best[move] = -1
            out.second[move] = -1
            out.log_sum[move] = 0.0
        for j in range(self.n_actions):
            move = self.move_types[j]
            if move < 0:
                continue
            if out.best[move] < 0 or scores[j] > out.best_score[move]:
                out.second[move] = out.best[move]
                out.second_score[move] = out.best_score[move]
                out.best[move] = j
                out.best_score[move] = scores[j]
            elif out.second[move] < 0 or scores[j] > out.second_score[move]:
                out.second[move] = j
                out.second_score[move] = scores[j]
        for j in range(self.n_actions):
            move = self.move_types[j]
            if move >= 0:
                out.log_sum[move] += exp(scores[j] - out.best_score[move])
        for move in range(N_MOVE_TYPES):
            if out.best[move] >= 0:
                out.log_sum[move] = log(out.log_sum[move]) + out.best_score[move]

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


cdef inline void move_costs(const State* s, const int32_t* heads, int* cost) noexcept nogil:
    # Arcs of the tree that each move type loses: spaCy's dynamic oracle (Goldberg and Nivre 2012,
    # for spaCy's own transition system), for an arc move with the right label.
    cdef int32_t s0 = stack_word(s, 0)
    cdef int32_t s1 = stack_word(s, 1)
    cdef int32_t b0 = buffer_word(s, 0)
    cdef int32_t i, word
    cdef int push_cost = 0
    cdef int pop_cost = 0
    cdef int in_stack = 0       # arcs between s0 and the stack
    cdef bint waits = False     # the first word of the buffer has its head further right
    for i in range(s.depth):
        word = s.stack[i]
        if b0 >= 0:
            push_cost += (heads[b0] == word) + (heads[word] == b0)
        in_stack += (heads[s0] == word) + (heads[word] == s0)
    for i in range(buffer_length(s)):
        word = buffer_word(s, i)
        if s0 >= 0:
            pop_cost += (heads[s0] == word) + (heads[word] == s0)
        waits = waits or heads[b0] == word
    cost[SHIFT] = push_cost
    cost[REDUCE] = pop_cost
    cost[LEFT] = pop_cost
    cost[RIGHT] = push_cost
    if s0 < 0:
        return
    if s.heads[s0] >= 0:
        cost[LEFT] += heads[s0] == s1
    else:
        cost[LEFT] += in_stack
        cost[REDUCE] -= in_stack
    if b0 < 0:
        return
    if heads[s0] == b0:
        cost[LEFT] -= 1
    if heads[b0] == s0:
        cost[RIGHT] -= 1
    elif waits and not s.unshiftable[b0]:
        cost[RIGHT] += 1


cdef inline double log_add(double a, double b) noexcept nogil:
    if a < b:
        a, b = b, a
    return a + log(1.0 + exp(b - a)) if b > -INFINITY else a


cdef inline bint before(const Discrepancy* a, const Discrepancy* b) noexcept nogil:
    # A total order, so that equal margins are explored in the same order everywhere.
    if a.logp != b.logp:
        return a.logp > b.logp
    if a.run != b.run:
        return a.run < b.run
    if a.step != b.step:
        return a.step < b.step
    return a.action < b.action


cdef inline double log_sum(const Scores* scores, int valid) noexcept nogil:
    # Log of the summed exponentials of all allowed actions' scores.
    cdef double highest = -1e300
    cdef double total = 0.0
    cdef int move
    for move in range(N_MOVE_TYPES):
        if valid >> move & 1 and scores.best[move] >= 0 and scores.log_sum[move] > highest:
            highest = scores.log_sum[move]
    for move in range(N_MOVE_TYPES):
        if valid >> move & 1 and scores.best[move] >= 0:
            total += exp(scores.log_sum[move] - highest)
    return highest + log(total)
