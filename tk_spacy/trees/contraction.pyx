"""Best spanning trees by contraction: what spanning.pyx builds on.

Method: Tarjan 1977, "Finding optimum branchings", in the dense form with one row of incoming arcs
for each supernode.  A path grows backwards along best arcs; where it meets itself, the cycle of c
supernodes becomes one, which costs O(c n), in all O(n^2).

A single root needs no penalty here.  The penalty would order trees by their number of root arcs
first and by score second; arcs of a cycle never leave the root, so in every comparison that the
method makes it would only say: an arc of the root is taken where there is no other.

Equal scores: the lowest head wins; between words of a contracted cycle, the first in its ring.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, realloc

from tk_spacy.parallel.stopping cimport is_stopped

cdef enum:
    UNSEEN = 0
    ON_PATH = 1
    DONE = 2


cdef void init_spanning(SpanningScratch *scratch) noexcept nogil:
    scratch.block = NULL
    scratch.size = 0
    scratch.watch = NULL


cdef void free_spanning(SpanningScratch *scratch) noexcept nogil:
    free(scratch.block)
    init_spanning(scratch)


cdef bint reserve(SpanningScratch *scratch, int n, int k) noexcept nogil:
    cdef size_t width = n + 1, nodes = 2 * width
    cdef size_t sets = k, square = width * width if k else 0
    cdef size_t size = (
        sizeof(double) * (nodes * width + nodes + square + sets)
        + sizeof(int32_t) * (7 * nodes + 7 * width + sets * width + 4 * sets)
        + sets * width
    )
    cdef char *free_space
    if size > scratch.size:
        free_space = <char*>realloc(scratch.block, size)
        if not free_space:
            return False
        scratch.block = free_space
        scratch.size = size
    free_space = <char*>scratch.block
    scratch.table = <double*>take(&free_space, sizeof(double) * nodes * width)
    scratch.best = <double*>take(&free_space, sizeof(double) * nodes)
    scratch.columns = <double*>take(&free_space, sizeof(double) * square)
    scratch.proposal_totals = <double*>take(&free_space, sizeof(double) * sets)
    scratch.tails = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.entries = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.parents = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.rings = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.members = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.states = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.path = <int32_t*>take(&free_space, sizeof(int32_t) * nodes)
    scratch.component = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.tops = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.children = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.siblings = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.order = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.first = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.sizes = <int32_t*>take(&free_space, sizeof(int32_t) * width)
    scratch.proposals = <int32_t*>take(&free_space, sizeof(int32_t) * sets * width)
    scratch.removed = <int32_t*>take(&free_space, sizeof(int32_t) * sets)
    scratch.origins = <int32_t*>take(&free_space, sizeof(int32_t) * sets)
    scratch.banned_words = <int32_t*>take(&free_space, sizeof(int32_t) * sets)
    scratch.banned_heads = <int32_t*>take(&free_space, sizeof(int32_t) * sets)
    scratch.forced = <uint8_t*>take(&free_space, sets * width)
    return True


cdef inline void *take(char **free_space, size_t size) noexcept nogil:
    cdef void *taken = free_space[0]
    free_space[0] += size
    return taken


cdef void transpose(const double *scores, int n, double *columns) noexcept nogil:
    # In tiles of one cache line.
    cdef Py_ssize_t width = n + 1
    cdef Py_ssize_t head, word, start, stop
    for start in range(0, width, 8):
        stop = min(start + 8, width)
        for head in range(width):
            for word in range(start, stop):
                columns[word * width + head] = scores[head * width + word]
    for word in range(1, width):
        columns[word * width + word] = -INFINITY


cdef int contract(SpanningScratch *scratch, int n, bint single_root) noexcept nogil:
    cdef Py_ssize_t width = n + 1
    cdef int top = n
    cdef int start, node, tail, length, i
    for node in range(2 * n):
        scratch.states[node] = UNSEEN
        scratch.parents[node] = 0
    for node in range(width):
        scratch.component[node] = node
    scratch.states[0] = DONE
    for start in range(1, width):
        node = scratch.component[start]
        length = 0
        while scratch.states[node] != DONE:
            if scratch.states[node] == ON_PATH:
                top += 1
                length = merge_cycle(scratch, n, top, node, length)
                node = top
            scratch.states[node] = ON_PATH
            scratch.path[length] = node
            length += 1
            tail = best_tail(scratch.table + node * width, n, single_root)
            if tail < 0 or is_stopped(scratch.watch):
                return -1
            scratch.tails[node] = tail
            scratch.best[node] = scratch.table[node * width + tail]
            scratch.entries[node] = node if node <= n else 0
            node = scratch.component[tail]
        for i in range(length):
            scratch.states[scratch.path[i]] = DONE
    return top


cdef inline int best_tail(const double *row, int n, bint single_root) noexcept nogil:
    # The maximum first, as four independent ones: a branch for each new maximum costs far more.
    cdef int start = 1 if single_root else 0
    cdef int node = start
    cdef double a = -INFINITY, b = -INFINITY, c = -INFINITY, d = -INFINITY
    while node + 3 <= n:
        a = larger(row[node], a)
        b = larger(row[node + 1], b)
        c = larger(row[node + 2], c)
        d = larger(row[node + 3], d)
        node += 4
    while node <= n:
        a = larger(row[node], a)
        node += 1
    a = larger(larger(a, b), larger(c, d))
    if a > -INFINITY:
        for node in range(start, n + 1):
            if row[node] == a:
                return node
    return 0 if single_root and row[0] > -INFINITY else -1


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef int merge_cycle(
    SpanningScratch *scratch, int n, int top, int first, int length
) noexcept nogil:
    # The end of the path, from its member `first` on, becomes the supernode `top`; an arc into it
    # replaces the chosen arc into the same member.  Returns the path's length before the cycle.
    cdef Py_ssize_t width = n + 1
    cdef double *row = scratch.table + top * width
    cdef const double *arcs
    cdef double chosen
    cdef int member = -1
    cdef int last = scratch.path[length - 1]
    cdef int node
    scratch.members[top] = last
    for node in range(n + 1):
        row[node] = -INFINITY
    while member != first:
        length -= 1
        member = scratch.path[length]
        scratch.parents[member] = top
        scratch.rings[member] = last if member == first else scratch.path[length - 1]
        chosen = scratch.best[member]
        arcs = scratch.table + member * width
        for node in range(n + 1):
            row[node] = larger(arcs[node] - chosen, row[node])
    for node in range(1, n + 1):
        if scratch.parents[scratch.component[node]] == top:
            scratch.component[node] = top
            row[node] = -INFINITY
    return length


cdef int arc_target(const SpanningScratch *scratch, int n, int node, int tail) noexcept nogil:
    # Looked for again instead of noted in merge_cycle, which is then a plain maximum.
    cdef const double *column = scratch.table + tail
    cdef Py_ssize_t width = n + 1
    cdef int member, last
    cdef double score, best
    while node > n:
        last = scratch.members[node]
        node = last
        best = column[node * width] - scratch.best[node]
        member = scratch.rings[last]
        while member != last:
            score = column[member * width] - scratch.best[member]
            if score > best:
                best = score
                node = member
            member = scratch.rings[member]
    return node


cdef void expand(SpanningScratch *scratch, int n, int top, int32_t *heads) noexcept nogil:
    # From outside in: an arc undoes the chosen ones of all that it enters.
    cdef int node, inner, word
    for node in range(top + 1):
        scratch.states[node] = UNSEEN
    heads[0] = -1
    for node in range(top, 0, -1):
        if scratch.states[node] == DONE:
            continue
        word = scratch.entries[node]
        if not word:
            word = arc_target(scratch, n, node, scratch.tails[node])
            scratch.entries[node] = word
        heads[word] = scratch.tails[node]
        scratch.tops[word] = node
        inner = word
        scratch.states[inner] = DONE
        while inner != node:
            inner = scratch.parents[inner]
            scratch.states[inner] = DONE
