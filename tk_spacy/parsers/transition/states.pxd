# Parser states of arc-standard with SWAP: what a state holds, and what each move does to it.
#
# The root lies at the bottom of the stack.  It takes its one modifier as the last move of all, so
# every tree has a single root.  A state's buffer is the words that SWAP put back, the last one
# first, and then the words from `next` on.

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy, memset

from tk_spacy.features.hashing cimport mix

cdef enum:
    SHIFT = 0            # the first word of the buffer onto the stack
    SWAP = 1             # the second word of the stack back into the buffer
    LEFT = 2             # the second word of the stack becomes a modifier of the first
    RIGHT = 3            # the first word of the stack becomes a modifier of the second
    MOVES = 4
    DONE = -1            # no move: a state that is final stays as it is


cdef struct Token:
    # A word and the modifiers that it has so far; 0 for no word, -1 for no label.
    int32_t head
    int32_t label
    int32_t left1        # the last modifier by LEFT, the one before it
    int32_t left2
    int32_t right1       # the same by RIGHT
    int32_t right2
    int32_t n_left
    int32_t n_right
    uint64_t left_labels   # sets of labels, a bit each (modulo 64)
    uint64_t right_labels
    uint64_t history     # a hash of all its modifiers, their labels and their order


cdef struct State:
    double score
    int32_t node         # the move that led here, see search.pxd
    int32_t n_stack
    int32_t n_back
    int32_t next
    int32_t swaps
    int32_t *stack       # [n + 1]
    int32_t *back        # [n + 1], words that SWAP put back
    Token *tokens        # [n + 2]; the last one stands for no word at all


cdef inline size_t state_size(int n) noexcept nogil:
    """Bytes of a state's arrays; a multiple of 8."""
    return (n + 2) * sizeof(Token) + (2 * (n + 2)) * sizeof(int32_t)


cdef inline void place_state(State *state, char *memory, int n) noexcept nogil:
    """Lay a state's arrays into memory of state_size bytes."""
    state.tokens = <Token *>memory
    state.stack = <int32_t *>(memory + (n + 2) * sizeof(Token))
    state.back = state.stack + n + 2


cdef inline void begin_state(State *state, int n) noexcept nogil:
    cdef int i
    memset(state.tokens, 0, (n + 2) * sizeof(Token))
    for i in range(n + 2):
        state.tokens[i].label = -1
    state.stack[0] = 0
    state.n_stack, state.n_back, state.next, state.swaps = 1, 0, 1, 0
    state.score, state.node = 0, -1


cdef inline void copy_state(State *to, const State *state, int n) noexcept nogil:
    memcpy(to.tokens, state.tokens, (n + 2) * sizeof(Token))
    memcpy(to.stack, state.stack, state.n_stack * sizeof(int32_t))
    memcpy(to.back, state.back, state.n_back * sizeof(int32_t))
    to.n_stack, to.n_back = state.n_stack, state.n_back
    to.next, to.swaps = state.next, state.swaps
    to.score, to.node = state.score, state.node


cdef inline int n_buffer(const State *state, int n) noexcept nogil:
    return state.n_back + n + 1 - state.next


cdef inline bint is_final(const State *state, int n) noexcept nogil:
    return state.n_stack == 1 and n_buffer(state, n) == 0


cdef inline bint is_legal(const State *state, int n, int move, int most_swaps) noexcept nogil:
    """Whether the search may make a move; some move always is legal until the state is final.

    None of the rules forbids a move of the oracle.  Without swaps, a word takes its modifiers on
    the left before those on the right, so a projective tree has one sequence of moves.  Two words
    that were swapped have no arc between each other, which they could have had before.
    """
    cdef int top, upper
    if move == SHIFT:
        return n_buffer(state, n) > 0
    if state.n_stack < 3:
        return move == RIGHT and state.n_stack == 2 and n_buffer(state, n) == 0
    top, upper = state.stack[state.n_stack - 1], state.stack[state.n_stack - 2]
    if move == SWAP:
        return upper < top and state.swaps < most_swaps
    if upper > top and n_buffer(state, n) > 0:
        return False
    return move == RIGHT or state.swaps > 0 or state.tokens[top].n_right == 0


cdef inline void make_move(State *state, int move, int label) noexcept nogil:
    cdef int top = state.n_stack - 1, head, mod
    cdef Token *token
    if move == SHIFT:
        if state.n_back:
            state.n_back -= 1
            state.stack[top + 1] = state.back[state.n_back]
        else:
            state.stack[top + 1] = state.next
            state.next += 1
        state.n_stack += 1
        return
    state.n_stack -= 1
    if move == RIGHT:
        mod, head = state.stack[top], state.stack[top - 1]
    else:
        mod, head = state.stack[top - 1], state.stack[top]
        state.stack[top - 1] = head
        if move == SWAP:
            state.back[state.n_back] = mod
            state.n_back += 1
            state.swaps += 1
            return
    state.tokens[mod].head = head
    state.tokens[mod].label = label
    token = &state.tokens[head]
    token.history = mix(mix(token.history + 1, mod * 4 + move), label)
    if move == LEFT:
        token.left2, token.left1 = token.left1, mod
        token.n_left += 1
        token.left_labels |= (<uint64_t>1) << (label & 63)
    else:
        token.right2, token.right1 = token.right1, mod
        token.n_right += 1
        token.right_labels |= (<uint64_t>1) << (label & 63)
