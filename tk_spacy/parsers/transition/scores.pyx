"""Scores of moves and labels, each computed once a sentence.

States of a beam, and the trees of a list, have much in common: what a state's features read is
known by a hash, under which its scores are kept until the next sentence.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

from tk_spacy.features.hashing cimport mix
from tk_spacy.parsers.transition.states cimport LEFT, MOVES, State
from tk_spacy.parsers.transition.templates cimport Sink, Words, label_templates, move_templates

cdef extern from "rows.h":
    void tk_sum_moves(
        float *out, const float *weights, const uint32_t *ids, Py_ssize_t n
    ) noexcept nogil
    void tk_sum_labels(
        float *out, const float *weights, const uint32_t *ids, Py_ssize_t n, Py_ssize_t width
    ) noexcept nogil

cdef enum:
    FIRST_SLOTS = 1 << 12


cdef int begin_scores(Scores *scores, int n_labels) noexcept nogil:
    """Forget all, for a new sentence, or for other weights.  Returns -1 without memory."""
    if begin_cache(&scores.moves, MOVES) < 0:
        return -1
    return begin_cache(&scores.labels, n_labels)


cdef void release_scores(Scores *scores) noexcept nogil:
    release_cache(&scores.moves)
    release_cache(&scores.labels)


cdef int begin_cache(Cache *cache, int width) noexcept nogil:
    cdef uint64_t i
    cache.width = width
    cache.n_rows = 0
    cache.stamp += 1
    if cache.slots == NULL:
        cache.slots = <Slot *>calloc(FIRST_SLOTS, sizeof(Slot))
        if cache.slots == NULL:
            return -1
        cache.n_slots = FIRST_SLOTS
    elif cache.stamp == 0:  # it has gone round
        for i in range(cache.n_slots):
            cache.slots[i].stamp = 0
    if cache.stamp == 0:
        cache.stamp = 1
    return 0


cdef void release_cache(Cache *cache) noexcept nogil:
    free(cache.slots)
    free(cache.rows)
    free(cache.best)
    cache.slots, cache.rows, cache.best = NULL, NULL, NULL
    cache.n_slots, cache.room = 0, 0


cdef int grow(Cache *cache) noexcept nogil:
    """More slots, at most half of which are taken.  Returns -1 without memory."""
    cdef uint64_t size = cache.n_slots * 2, i, at
    cdef Slot *slots = <Slot *>calloc(size, sizeof(Slot))
    if slots == NULL:
        return -1
    for i in range(cache.n_slots):
        if cache.slots[i].stamp == cache.stamp:
            at = cache.slots[i].key & (size - 1)
            while slots[at].stamp == cache.stamp:
                at = (at + 1) & (size - 1)
            slots[at] = cache.slots[i]
    free(cache.slots)
    cache.slots, cache.n_slots = slots, size
    return 0


cdef int find(Cache *cache, uint64_t key, bint *is_new) noexcept nogil:
    """The row of a key, which may be new.  Returns -1 without memory."""
    cdef uint64_t at
    cdef int32_t room
    cdef void *memory
    if 2 * <uint64_t>cache.n_rows >= cache.n_slots and grow(cache) < 0:
        return -1
    at = key & (cache.n_slots - 1)
    while cache.slots[at].stamp == cache.stamp:
        if cache.slots[at].key == key:
            is_new[0] = False
            return cache.slots[at].row
        at = (at + 1) & (cache.n_slots - 1)
    if cache.n_rows == cache.room:
        room = 2 * cache.room + 256
        memory = realloc(cache.rows, <size_t>room * cache.width * sizeof(float))
        if memory == NULL:
            return -1
        cache.rows = <float *>memory
        memory = realloc(cache.best, <size_t>room * sizeof(Best))
        if memory == NULL:
            return -1
        cache.best = <Best *>memory
        cache.room = room
    cache.slots[at].key = key
    cache.slots[at].stamp = cache.stamp
    cache.slots[at].row = cache.n_rows
    cache.n_rows += 1
    is_new[0] = True
    return cache.n_rows - 1


cdef inline uint64_t of_word(const State *state, int word) noexcept nogil:
    return mix(state.tokens[word].history, word)


cdef int score_moves(
    Scores *scores, const Model *model, const Words *x, const State *state
) noexcept nogil:
    """The row of the scores of a state's moves.  Returns -1 without memory."""
    cdef int n = state.n_stack, _i, seen = state.n_back, row
    cdef bint is_new
    cdef uint64_t key = mix(of_word(state, state.stack[n - 1]), n if n < 3 else 3)
    if n > 1:
        key = mix(key, of_word(state, state.stack[n - 2]))
    if n > 2:
        key = mix(key, state.stack[n - 3])
    for _i in range(3):
        if seen:
            seen -= 1
            key = mix(key, state.back[seen])
    key = mix(key, state.next * 4 + (state.n_back if state.n_back < 3 else 3))
    row = find(&scores.moves, key, &is_new)
    if row >= 0 and is_new:
        n = move_ids(model, x, state, scores.ids)
        tk_sum_moves(scores.moves.rows + row * MOVES, model.moves, scores.ids, n)
    return row


cdef int score_labels(
    Scores *scores, const Model *model, const Words *x, const State *state, int move
) noexcept nogil:
    """The row of the scores of the labels of LEFT or RIGHT, and of the best two that may be.

    Returns -1 without memory.
    """
    cdef int top = state.n_stack - 1, row, n, i
    cdef int head = state.stack[top - 1 + (move == LEFT)], mod = state.stack[top - (move == LEFT)]
    cdef int place = ELSEWHERE if head else UNDER_ROOT
    # mix takes two values alike: the head's is mixed once more, so that it is not the modifier's.
    cdef uint64_t key = mix(mix(mix(of_word(state, head), 1), of_word(state, mod)), move)
    cdef bint is_new
    cdef float *cells
    cdef Best *best
    row = find(&scores.labels, key, &is_new)
    if row < 0 or not is_new:
        return row
    n = label_ids(model, x, state, move, scores.ids)
    cells = scores.labels.rows + <size_t>row * model.n_labels
    tk_sum_labels(cells, model.labels, scores.ids, n, model.n_labels)
    best = &scores.labels.best[row]
    best.first, best.second = -1, -1
    best.first_score = best.second_score = 0
    for i in range(model.n_labels):
        if not model.places[i] & place:
            continue
        if best.first < 0 or cells[i] > best.first_score:
            best.second, best.second_score = best.first, best.first_score
            best.first, best.first_score = i, cells[i]
        elif best.second < 0 or cells[i] > best.second_score:
            best.second, best.second_score = i, cells[i]
    return row


cdef int move_ids(
    const Model *model, const Words *x, const State *state, uint32_t *ids
) noexcept nogil:
    """The features of a state; their number."""
    cdef Sink sink
    sink.ids, sink.n, sink.mask, sink.step = ids, 0, model.move_mask, MOVES
    sink.weights = model.moves
    move_templates(&sink, x, state)
    return sink.n


cdef int label_ids(
    const Model *model, const Words *x, const State *state, int move, uint32_t *ids
) noexcept nogil:
    """The features of the arc that LEFT or RIGHT makes; their number."""
    cdef int top = state.n_stack - 1
    cdef int head = state.stack[top - 1 + (move == LEFT)], mod = state.stack[top - (move == LEFT)]
    cdef Sink sink
    sink.ids, sink.n, sink.mask, sink.step = ids, 0, model.label_mask, 1
    sink.weights = model.labels
    label_templates(&sink, x, state, head, mod, move == LEFT)
    return sink.n
