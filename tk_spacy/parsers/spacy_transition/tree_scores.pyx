"""How likely a spaCy parser's model holds given trees, whoever proposed them.

A tree has many derivations.  Here the parser is led: at each step the actions that keep the tree
reachable, at the least cost where none does, share the probability of the step, and the likeliest
of them is taken.  That is what the parser was trained to raise, so the sum of the logarithms is a
score of the tree, whichever way it was found.

Source: Goldberg and Nivre 2012, "A dynamic oracle for arc-eager dependency parsing"; the costs are
those of spaCy's own transition system (3.8, pipeline/_parser_internals/arc_eager.pyx).
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, is_stopped
from tk_spacy.parsers.spacy_transition.arc_eager cimport (
    LEFT, N_MOVE_TYPES, REDUCE, RIGHT, SHIFT, State, apply_move, buffer_length, buffer_word,
    is_final, max_steps, reset, stack_word, valid_moves,
)
from tk_spacy.parsers.spacy_transition.context_scores cimport ContextScores, Scores, log_of_allowed


def score_trees(ContextScores scorer not None, *, const int32_t[:, ::1] heads not None,
                const int32_t[:, ::1] actions not None):
    """Log-probabilities float64[m] of projective trees of the scorer's sentence.

    heads: int32[m, n], 0-based, -1 for the root; actions: int32[m, n], the LEFT or RIGHT action
    that makes each word's arc, ignored for the root.  -infinity where a tree is not projective or
    an action has the wrong direction.
    """
    cdef int row
    cdef bint failed = False
    if scorer.n_words == 0:
        raise ValueError("the scorer has no sentence yet: call its begin")
    if heads.shape[1] != scorer.n_words:
        raise ValueError(f"heads of {heads.shape[1]} words for a sentence of {scorer.n_words}")
    if actions.shape[0] != heads.shape[0] or actions.shape[1] != heads.shape[1]:
        raise ValueError("heads and actions must have one shape")
    low, high = np.min(actions, initial=0), np.max(actions, initial=0)
    if low < -1 or high >= scorer.n_actions:
        raise ValueError(f"actions must be -1 to {scorer.n_actions - 1}, got {low} to {high}")
    low, high = np.min(heads, initial=-1), np.max(heads, initial=-1)
    if low < -1 or high >= scorer.n_words:
        raise ValueError(f"heads must be -1 to {scorer.n_words - 1}, got {low} to {high}")
    logps = np.empty(heads.shape[0])
    cdef double[::1] logps_view = logps
    cdef Listener listener = Listener()
    scorer.watch = &listener.watch
    with nogil:
        for row in range(heads.shape[0]):
            if is_stopped(scorer.watch):
                break
            logps_view[row] = score_tree(scorer, &heads[row, 0], &actions[row, 0], &failed)
    scorer.watch = NULL
    listener.check()
    if failed:
        raise MemoryError(f"scores of a sentence of {scorer.n_words} words")
    return logps


cdef double score_tree(ContextScores model, const int32_t* heads, const int32_t* actions,
                       bint* failed) noexcept nogil:
    # Follows the likeliest of the actions that keep the tree reachable at the least cost.
    cdef State* state = &model.state
    cdef const Scores* scores
    cdef const float* row_scores
    cdef double logp = 0.0
    cdef double mass, own
    cdef int32_t row, action, b0, s0, following
    cdef int _step, valid, move, least, followed
    cdef int cost[4]
    reset(state)
    for _step in range(max_steps(model.n_words)):
        if is_stopped(model.watch):
            return -INFINITY
        if is_final(state):
            for row in range(state.n):
                if state.heads[row] != heads[row] or (
                    heads[row] >= 0 and state.labels[row] != actions[row]
                ):
                    return -INFINITY
            return logp
        row = model.look_up()
        if row < 0:
            failed[0] = True
            return -INFINITY
        scores = model.contexts + row
        row_scores = model.action_scores + <int64_t>row * model.n_actions
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
            if move == LEFT and heads[s0] == b0 or move == RIGHT and heads[b0] == s0:
                action = actions[s0] if move == LEFT else actions[b0]
                if action < 0 or model.move_types[action] != move:
                    return -INFINITY
                own = row_scores[action]
            mass = log_add(mass, own)
            if following < 0 or row_scores[action] > row_scores[following]:
                following = action
                followed = move
        if following < 0:
            return -INFINITY
        logp += mass - log_of_allowed(scores, valid)
        apply_move(state, followed, following)
    return -INFINITY


cdef inline void move_costs(const State* s, const int32_t* heads, int* cost) noexcept nogil:
    # Arcs of the tree that each move type loses; for an arc move, with the right label.
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
