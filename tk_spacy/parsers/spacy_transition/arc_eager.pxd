# The arc-eager transition system of spaCy's parser, for one sentence whose start is preset.
#
# Source: spaCy 3.8, pipeline/_parser_internals/arc_eager.pyx and _state.pxd, re-stated (no cimport,
# since spaCy's ABI changes).  It differs from the textbook system (Nivre 2004) in that REDUCE puts
# a word without head back to the buffer, and LEFT may replace a head.  Left out: BREAK, which is
# never valid here, because only the first word may start a sentence.
#
# All functions are inline and trust their input; `search.pyx` owns the memory.

from libc.stdint cimport int32_t, uint8_t


cdef enum:
    SHIFT = 0
    REDUCE = 1
    LEFT = 2
    RIGHT = 3
    N_MOVE_TYPES = 4


cdef struct State:
    int32_t n            # words 0..n-1
    int32_t depth        # of the stack
    int32_t n_back       # words put back to the buffer, read before the others
    int32_t next_word    # first word not yet read
    int32_t* stack
    int32_t* back
    int32_t* heads       # -1: none
    int32_t* labels
    int32_t* last_left   # of each word its newest left and right child, and of each child the next
    int32_t* last_right  # older one on the same side: -1 ends the list
    int32_t* older
    uint8_t* unshiftable


cdef inline void reset(State* s) noexcept nogil:
    cdef int32_t i
    s.depth = 0
    s.n_back = 0
    s.next_word = 0
    for i in range(s.n):
        s.heads[i] = -1
        s.labels[i] = -1
        s.last_left[i] = -1
        s.last_right[i] = -1
        s.older[i] = -1
        s.unshiftable[i] = 0


cdef inline int32_t stack_word(const State* s, int32_t i) noexcept nogil:
    return s.stack[s.depth - 1 - i] if i < s.depth else -1


cdef inline int32_t buffer_word(const State* s, int32_t i) noexcept nogil:
    if i < s.n_back:
        return s.back[s.n_back - 1 - i]
    i = s.next_word + (i - s.n_back)
    return i if i < s.n else -1


cdef inline int32_t buffer_length(const State* s) noexcept nogil:
    return s.n - s.next_word + s.n_back


cdef inline bint is_final(const State* s) noexcept nogil:
    return s.depth == 0 and buffer_length(s) == 0


cdef inline int32_t child(const State* s, const int32_t* newest, int32_t head,
                          int32_t nth) noexcept nogil:
    # The nth newest child on one side, counted from 1.
    if head < 0:
        return -1
    cdef int32_t word = newest[head]
    while nth > 1 and word >= 0:
        word = s.older[word]
        nth -= 1
    return word


cdef inline int valid_moves(const State* s) noexcept nogil:
    # Bit set of the move types that are allowed.
    cdef int32_t length = buffer_length(s)
    cdef int32_t first = buffer_word(s, 0)
    cdef int moves = 0
    if s.depth == 0:
        return 1 << SHIFT
    if length >= 2 and first != 0 and not s.unshiftable[first]:
        moves |= 1 << SHIFT
    if length == 0 or s.depth > 1 or first == 0:
        moves |= 1 << REDUCE
    if length >= 1 and first != 0:
        moves |= (1 << LEFT) | (1 << RIGHT)
    return moves


cdef inline void push(State* s) noexcept nogil:
    if s.n_back:
        s.n_back -= 1
        s.stack[s.depth] = s.back[s.n_back]
    else:
        s.stack[s.depth] = s.next_word
        s.next_word += 1
    s.depth += 1


cdef inline void drop_arc(State* s, int32_t word) noexcept nogil:
    cdef int32_t head = s.heads[word]
    cdef int32_t* link = &s.last_left[head] if head > word else &s.last_right[head]
    while link[0] != word:
        link = &s.older[link[0]]
    link[0] = s.older[word]


cdef inline void add_arc(State* s, int32_t head, int32_t word, int32_t label) noexcept nogil:
    if s.heads[word] >= 0:
        drop_arc(s, word)
    s.heads[word] = head
    s.labels[word] = label
    if head > word:
        s.older[word] = s.last_left[head]
        s.last_left[head] = word
    else:
        s.older[word] = s.last_right[head]
        s.last_right[head] = word


cdef inline void apply_move(State* s, int move, int32_t label) noexcept nogil:
    cdef int32_t top
    if move == SHIFT:
        push(s)
    elif move == REDUCE:
        top = s.stack[s.depth - 1]
        s.depth -= 1
        if s.heads[top] < 0 and s.depth > 0:
            s.unshiftable[top] = 1
            s.back[s.n_back] = top
            s.n_back += 1
    elif move == LEFT:
        add_arc(s, buffer_word(s, 0), s.stack[s.depth - 1], label)
        s.unshiftable[buffer_word(s, 0)] = 0
        s.depth -= 1
    else:
        add_arc(s, s.stack[s.depth - 1], buffer_word(s, 0), label)
        push(s)


cdef inline void context_words(const State* s, int32_t* ids, int n_features) noexcept nogil:
    # The words whose vectors the parser's model reads; -1 where there is none.
    cdef int32_t s0 = stack_word(s, 0)
    cdef int32_t s1 = stack_word(s, 1)
    cdef int32_t b0 = buffer_word(s, 0)
    ids[0] = b0
    ids[1] = buffer_word(s, 1)
    ids[2] = s0
    ids[3] = s1
    ids[4] = stack_word(s, 2)
    if n_features == 8:
        ids[5] = child(s, s.last_left, b0, 1)
        ids[6] = child(s, s.last_left, s0, 1)
        ids[7] = child(s, s.last_right, s0, 1)
    else:  # 13; spaCy's own order, which leaves out the second left child of s0
        ids[5] = child(s, s.last_left, s0, 1)
        ids[6] = child(s, s.last_right, s0, 1)
        ids[7] = child(s, s.last_left, b0, 1)
        ids[8] = child(s, s.last_right, s0, 2)
        ids[9] = child(s, s.last_left, s1, 1)
        ids[10] = child(s, s.last_left, s1, 2)
        ids[11] = child(s, s.last_right, s1, 1)
        ids[12] = child(s, s.last_right, s1, 2)


cdef inline int max_steps(int n) noexcept nogil:
    # Bound of the moves of a run: a word is put back to the buffer once, and once more after each
    # LEFT, so there are at most 3n pushes, as many pops, and n LEFTs.
    return 7 * n + 8
