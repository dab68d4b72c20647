"""The scores that a spaCy parser's model gives to actions, kept by context.

The model sees a state only through the words at 8 (or 13) positions, its context.  Runs of a search
differ in a few steps, so most contexts come again and again: each is scored once a sentence.

Source: spaCy 3.8, ml/parser_model.pyx (`predict_states`), re-stated: no cimport, since spaCy's ABI
changes.  Sums are made in spaCy's order, so that the best action is spaCy's.
"""

from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from tk_spacy.utils.array_checks import checked_range

from tk_spacy.parsers.spacy_transition.arc_eager cimport N_MOVE_TYPES, context_words


cdef class ContextScores:
    """The upper part of one trained model, and one sentence at a time to score states of.

    move_types: int32[n_actions], 0 SHIFT, 1 REDUCE, 2 LEFT, 3 RIGHT, -1 for an action never taken.
    lower_b:    float32[n_hidden, n_pieces], bias of the state vector.
    upper_w:    float32[n_actions, n_hidden], upper_b: float32[n_actions]; both None where the state
                vector itself holds the scores.
    n_features: 8 or 13 positions a state is read from.
    The weights are copied: make a new object after more training.
    """

    def __cinit__(self):
        self.max_contexts = 1024
        self.table_size = 4096
        self.contexts = <Scores*>malloc(self.max_contexts * sizeof(Scores))
        self.table = <int32_t*>malloc(self.table_size * sizeof(int32_t))
        if not (self.contexts and self.table):
            raise MemoryError

    def __dealloc__(self):
        free(self.contexts)
        free(self.action_scores)
        free(self.table)
        free(self.state_memory)
        free(self.sums)
        free(self.hidden)

    def __init__(self, *, move_types, lower_b, upper_w=None, upper_b=None, int n_features=8):
        if self.action_scores:
            raise ValueError("the weights of a ContextScores cannot be replaced; make a new one")
        if n_features not in (8, 13):
            raise ValueError(f"n_features must be 8 or 13, got {n_features}")
        self.move_types = np.array(move_types, dtype=np.int32)
        lower_b = np.asarray(lower_b, dtype=np.float32)
        if lower_b.ndim != 2:
            raise ValueError(f"lower_b must be [n_hidden, n_pieces], got shape {lower_b.shape}")
        if not len(self.move_types) or not lower_b.size:
            raise ValueError(
                f"{len(self.move_types)} move types and lower_b {lower_b.shape}, expected some"
            )
        checked_range("move_types", np.asarray(self.move_types), -1, 3)
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
            if np.shape(upper_b) != (self.n_actions,):
                raise ValueError(f"upper_b must be {(self.n_actions,)}, got {np.shape(upper_b)}")
            self.upper_w_t = np.ascontiguousarray(np.asarray(upper_w, dtype=np.float32).T)
            self.upper_b = np.array(upper_b, dtype=np.float32)
        elif self.n_hidden != self.n_actions:
            raise ValueError(f"{self.n_hidden} scores for {self.n_actions} actions")
        self.sums = <float*>malloc(self.n_hidden * self.n_pieces * sizeof(float))
        self.hidden = <float*>malloc(self.n_hidden * sizeof(float))
        self.action_scores = <float*>malloc(self.max_contexts * self.n_actions * sizeof(float))
        if not (self.sums and self.hidden and self.action_scores):
            raise MemoryError

    def begin(self, const float[:, ::1] cached not None, *, int first, int n_words):
        """Take up a sentence; what is known of the last one is forgotten.

        cached: float32[1 + n_tokens, n_features * n_hidden * n_pieces], the precomputed part of the
                model for a batch of sentences; row 0 is the padding.
        first:  where the sentence starts in the batch; n_words: its length.
        """
        cdef int32_t* memory
        if cached.shape[1] != self.row_size:
            raise ValueError(f"cached must have {self.row_size} columns, got {cached.shape[1]}")
        if n_words < 1 or first < 0 or first + n_words + 1 > cached.shape[0]:
            raise ValueError(
                f"words {first} to {first + n_words} are not in a batch of {cached.shape[0] - 1}"
            )
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
        self.n_words = n_words
        self.first = first
        self.batch = cached  # keeps the memory alive
        self.cached = &cached[0, 0]
        self.n_contexts = 0
        memset(self.table, -1, self.table_size * sizeof(int32_t))

    cdef int32_t look_up(self) noexcept nogil:
        # Row of the scores for the state's context; -1 where memory ran out.
        cdef int32_t words[MAX_FEATURES]
        cdef int32_t slot
        memset(words, -1, sizeof(words))
        context_words(&self.state, words, self.n_features)
        slot = self.find_slot(words)
        if self.table[slot] >= 0:
            return self.table[slot]
        return self.add_context(words, slot)

    cdef int32_t add_context(self, const int32_t* words, int32_t slot) noexcept nogil:
        cdef int32_t row = self.n_contexts
        if row == self.max_contexts and not self.grow_contexts():
            return -1
        memcpy(self.contexts[row].words, words, MAX_FEATURES * sizeof(int32_t))
        self.compute(self.contexts + row, self.action_scores + <int64_t>row * self.n_actions)
        self.table[slot] = row
        self.n_contexts += 1
        if 2 * self.n_contexts > self.table_size and not self.grow_table():
            return -1
        return row

    cdef bint grow_contexts(self) noexcept nogil:
        cdef Scores* contexts
        cdef float* scores
        cdef int64_t size = 2 * <int64_t>self.max_contexts
        contexts = <Scores*>realloc(self.contexts, size * sizeof(Scores))
        if not contexts:
            return False
        self.contexts = contexts
        scores = <float*>realloc(self.action_scores, size * self.n_actions * sizeof(float))
        if not scores:
            return False
        self.action_scores = scores
        self.max_contexts = <int32_t>size
        return True

    cdef bint grow_table(self) noexcept nogil:
        cdef int32_t row
        cdef int32_t* table = <int32_t*>malloc(2 * self.table_size * sizeof(int32_t))
        if not table:
            return False
        free(self.table)
        self.table = table
        self.table_size *= 2
        memset(table, -1, self.table_size * sizeof(int32_t))
        for row in range(self.n_contexts):
            table[self.find_slot(self.contexts[row].words)] = row
        return True

    cdef int32_t find_slot(self, const int32_t* words) noexcept nogil:
        # The context's place in the table, or the free place where it belongs.  FNV-1a hash.
        cdef uint64_t key = 1469598103934665603ULL
        cdef int feature
        cdef int32_t slot
        for feature in range(self.n_features):
            key = (key ^ <uint64_t>(words[feature] + 1)) * 1099511628211ULL
        slot = <int32_t>((key ^ (key >> 32)) & <uint64_t>(self.table_size - 1))
        while self.table[slot] >= 0 and memcmp(
            self.contexts[self.table[slot]].words, words, MAX_FEATURES * sizeof(int32_t)
        ) != 0:
            slot = (slot + 1) & (self.table_size - 1)
        return slot

    cdef void compute(self, Scores* out, float* scores) noexcept nogil:
        cdef int size = self.n_hidden * self.n_pieces
        cdef int feature, i, j
        cdef const float* row
        cdef const float* weights
        cdef float value
        memset(self.sums, 0, size * sizeof(float))
        for feature in range(self.n_features):
            row = self.cached + feature * size
            if out.words[feature] >= 0:
                row += <int64_t>(1 + self.first + out.words[feature]) * self.row_size
            for i in range(size):
                self.sums[i] += row[i]
        for i in range(size):
            self.sums[i] += self.lower_b[i]
        for i in range(self.n_hidden):
            value = self.sums[i * self.n_pieces]
            for j in range(1, self.n_pieces):
                if self.sums[i * self.n_pieces + j] > value:
                    value = self.sums[i * self.n_pieces + j]
            self.hidden[i] = value
        if self.has_upper:
            memset(scores, 0, self.n_actions * sizeof(float))
            for i in range(self.n_hidden):
                value = self.hidden[i]
                weights = &self.upper_w_t[i, 0]
                for j in range(self.n_actions):
                    scores[j] += value * weights[j]
            for j in range(self.n_actions):
                scores[j] += self.upper_b[j]
        else:
            memcpy(scores, self.hidden, self.n_actions * sizeof(float))
        self.rank_actions(out, scores)

    cdef void rank_actions(self, Scores* out, const float* scores) noexcept nogil:
        cdef int action, move
        for move in range(N_MOVE_TYPES):
            out.best[move] = -1
            out.second[move] = -1
            out.log_sum[move] = 0.0
        for action in range(self.n_actions):
            move = self.move_types[action]
            if move < 0:
                continue
            if out.best[move] < 0 or scores[action] > out.best_score[move]:
                out.second[move] = out.best[move]
                out.second_score[move] = out.best_score[move]
                out.best[move] = action
                out.best_score[move] = scores[action]
            elif out.second[move] < 0 or scores[action] > out.second_score[move]:
                out.second[move] = action
                out.second_score[move] = scores[action]
        for action in range(self.n_actions):
            move = self.move_types[action]
            if move >= 0:
                out.log_sum[move] += exp(scores[action] - out.best_score[move])
        for move in range(N_MOVE_TYPES):
            if out.best[move] >= 0:
                out.log_sum[move] = log(out.log_sum[move]) + out.best_score[move]


cdef double log_of_allowed(const Scores* scores, int valid) noexcept nogil:
    # Log of the summed exponentials of the scores of all allowed actions.
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
