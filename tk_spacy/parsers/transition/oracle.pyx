"""The moves that build a given tree: one sequence for each tree.

LEFT and RIGHT are made as soon as the modifier has all of its own.  Words whose order is another
one in the projective order of the tree are swapped, but not before the upper one's projective part
is complete, which needs fewer swaps.  Source: Nivre, Kuhlmann and Hall (IWPT 2009), "An improved
oracle for dependency parsing with online reordering".
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc

import numpy as np

from tk_spacy.parsers.transition.states cimport LEFT, RIGHT, SHIFT, SWAP
from tk_spacy.utils.array_checks import checked, checked_range


cdef int derive(
    OracleScratch *scratch, const int32_t *heads, int n, int32_t *moves, int room
) noexcept nogil:
    """The moves of a tree, heads int32[n + 1] from 1 on, with a single root; their number.

    moves: int32[room].  Returns -1 without memory, -2 where room is too little, -3 for what
    is no such tree.
    """
    cdef int32_t *memory
    cdef int32_t *order
    cdef int32_t *part
    cdef int32_t *left
    cdef int32_t *child
    cdef int32_t *sibling
    cdef int32_t *stack
    cdef int32_t *back
    cdef int i, head, top, n_stack, n_back, upper, first, count = 0
    if scratch.n < n or scratch.memory == NULL:
        memory = <int32_t *>realloc(scratch.memory, 7 * (n + 2) * sizeof(int32_t))
        if memory == NULL:
            return -1
        scratch.memory, scratch.n = memory, n
    order = scratch.memory               # place of each word in the projective order
    part = order + n + 2                 # the projective part that it belongs to
    left = part + n + 2                  # modifiers that it still lacks
    child = left + n + 2
    sibling = child + n + 2
    stack = sibling + n + 2
    back = stack + n + 2
    for i in range(n + 1):
        left[i] = child[i] = 0
    for i in range(n, 0, -1):
        sibling[i] = child[heads[i]]
        child[heads[i]] = i
        left[heads[i]] += 1
    if left[0] != 1:
        return -3
    # In order: modifiers on the left, the word, modifiers on the right.  part: whether placed.
    for i in range(n + 1):
        part[i] = 0
    stack[0], n_stack = 0, 1
    while n_stack:
        top = stack[n_stack - 1]
        i = child[top]
        if part[top] == 0 and (i == 0 or i > top):
            part[top] = 1
            order[top] = count
            count += 1
        elif i == 0:
            n_stack -= 1
        else:
            child[top] = sibling[i]
            stack[n_stack] = i
            n_stack += 1
    # What can be built without swaps.
    stack[0], n_stack = 0, 1
    for i in range(1, n + 1):
        stack[n_stack] = i
        n_stack += 1
        n_stack = reduce_all(stack, n_stack, heads, left)
    # What is left on the stack is nobody's part but its own.
    for i in range(n + 1):
        part[i] = -1
        left[i] = 0
    for i in range(n_stack):
        part[stack[i]] = stack[i]
    for i in range(1, n + 1):
        left[heads[i]] += 1
        head = i
        while part[head] < 0:
            head = heads[head]
        part[i] = part[head]
    count = 0
    first, n_back = 1, 0
    stack[0], n_stack = 0, 1
    while n_stack > 1 or n_back or first <= n:
        if count == room:
            return -2
        top = stack[n_stack - 1]
        upper = stack[n_stack - 2] if n_stack > 1 else 0
        if n_stack > 2 and heads[upper] == top and left[upper] == 0:
            moves[count] = LEFT
            left[top] -= 1
            stack[n_stack - 2] = top
            n_stack -= 1
        elif n_stack > 1 and heads[top] == upper and left[top] == 0:
            moves[count] = RIGHT
            left[upper] -= 1
            n_stack -= 1
        else:
            i = back[n_back - 1] if n_back else first if first <= n else 0
            if n_stack > 2 and order[top] < order[upper] and (i == 0 or part[top] != part[i]):
                moves[count] = SWAP
                back[n_back] = upper
                n_back += 1
                stack[n_stack - 2] = top
                n_stack -= 1
            elif i == 0:
                return -3
            else:
                moves[count] = SHIFT
                stack[n_stack] = i
                n_stack += 1
                if n_back:
                    n_back -= 1
                else:
                    first += 1
        count += 1
    return count


cdef int reduce_all(
    int32_t *stack, int n_stack, const int32_t *heads, int32_t *left
) noexcept nogil:
    """Make every LEFT and RIGHT that can be made; the stack's new size."""
    cdef int top, upper
    while n_stack > 1:
        top, upper = stack[n_stack - 1], stack[n_stack - 2]
        if upper != 0 and heads[upper] == top and left[upper] == 0:
            left[top] -= 1
            stack[n_stack - 2] = top
        elif heads[top] == upper and left[top] == 0:
            left[upper] -= 1
        else:
            break
        n_stack -= 1
    return n_stack


cdef void release_oracle(OracleScratch *scratch) noexcept nogil:
    free(scratch.memory)
    scratch.memory = NULL
    scratch.n = 0


def moves_of(heads):
    """The moves that build a tree, int32[m]: 0 SHIFT, 1 SWAP, 2 LEFT, 3 RIGHT.

    heads: int32[n], 0 for the root's one child.
    Raises TypeError or ValueError where they are no such tree.
    """
    tree = checked("heads", heads, np.int32, None)
    cdef int n = len(tree), count
    checked_range("heads", tree, 0, n)
    cdef const int32_t[::1] given = np.concatenate([[0], tree]).astype(np.int32)
    room = 2 * n + n * n
    found = np.zeros(room, dtype=np.int32)
    cdef int32_t[::1] moves = found
    cdef OracleScratch scratch
    scratch.memory, scratch.n = NULL, 0
    count = derive(&scratch, &given[0], n, &moves[0], room)
    release_oracle(&scratch)
    if count == -1:
        raise MemoryError("no memory for the moves of a tree")
    if count < 0:
        raise ValueError(f"heads are {tree.tolist()}, expected a tree with one root")
    return found[:count].copy()
