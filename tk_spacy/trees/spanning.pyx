"""Maximum spanning trees of dense score matrices, rooted in node 0: the best one and the k best.

The best: see contraction.pyx.

The k best: Camerini, Fratta and Maffioli 1980, "The k best spanning arborescences of a network",
simplified as in Zmigrod, Vieira and Cotterell 2021, "On finding the k-best non-projective
dependency trees".  Each tree found stands for a set of trees, those with its forced arcs and
without its banned ones; of each set the second best tree is known.  The best of these is the next
tree; an arc of its set's tree that it lacks is forced in that set and banned in the new one.  Two
contractions for each tree, O(k n^2).

The second best differs from the best in one arc into one supernode, as the supernodes are in the
contraction, and the new arc does not come from below it.  Three traps: its tail may lie outside
the cycle that the supernode became part of; it may be the tail of the old arc, into another word
of the supernode; and where trees are equal up to rounding, a contraction may find another best
tree than the set's own, which then serves as its second best.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memmove, memset

from tk_spacy.trees.contraction cimport arc_target, contract, expand, reserve, transpose
from tk_spacy.parallel.stopping cimport Listener, is_stopped

import numpy as np


def max_spanning_tree(scores, *, single_root=True):
    """The tree with the largest sum of scores.

    scores: float64[n+1, n+1]; scores[h, m] is the score of the arc from node h to word m, -inf for
    a missing arc; node 0 is the root, column 0 and the diagonal are ignored.
    single_root: exactly one word depends on the root.

    Returns heads int32[n], 0..n.  Raises ValueError for another shape, NaN, scores beyond
    +-1e300, and where the arcs contain no tree.
    """
    scores = check_scores(scores)
    cdef const double[:, ::1] view = scores
    cdef int n = len(scores) - 1
    heads = np.empty(n + 1, dtype=np.int32)
    cdef int32_t[::1] heads_view = heads
    cdef bint single = single_root
    cdef int code
    cdef SpanningScratch scratch
    cdef Listener listener = Listener()
    init_spanning(&scratch)
    scratch.watch = &listener.watch
    with nogil:
        code = max_tree(&view[0, 0], n, single, &heads_view[0], &scratch)
        free_spanning(&scratch)
    listener.check()
    if code < 0:
        raise MemoryError(f"spanning tree of {n} words")
    if code:
        raise ValueError(no_tree(scores, single_root))
    return heads[1:]


def k_best_spanning_trees(scores, k, *, single_root=True):
    """The k trees with the largest sums of scores, fewer where there are no more.

    scores, single_root: as for max_spanning_tree.

    Returns heads int32[k', n] and totals float64[k'], all trees different, best first (in the order
    of the totals; totals closer than the rounding of sums may be cut off in any order at the end).
    Raises ValueError as max_spanning_tree, and for k < 1.
    """
    scores = check_scores(scores)
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    cdef const double[:, ::1] view = scores
    cdef int n = len(scores) - 1
    cdef int limit = k
    heads = np.empty((k, n + 1), dtype=np.int32)
    totals = np.empty(k)
    cdef int32_t[:, ::1] heads_view = heads
    cdef double[::1] totals_view = totals
    cdef bint single = single_root
    cdef int found
    cdef SpanningScratch scratch
    cdef Listener listener = Listener()
    init_spanning(&scratch)
    scratch.watch = &listener.watch
    with nogil:
        found = k_best_trees(
            &view[0, 0], n, single, limit, &heads_view[0, 0], &totals_view[0], &scratch
        )
        free_spanning(&scratch)
    listener.check()
    if found < 0:
        raise MemoryError(f"{k} spanning trees of {n} words")
    if not found:
        raise ValueError(no_tree(scores, single_root))
    return heads[:found, 1:].copy(), totals[:found].copy()


def check_scores(scores):
    """Scores as contiguous float64[n+1, n+1], or ValueError for what no tree can be found in."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(scores) < 2:
        raise ValueError(f"scores have shape {scores.shape}, expected [n+1, n+1] for n >= 1 words")
    wrong = np.isnan(scores) | (np.abs(scores) > 1e300) & (scores != -np.inf)
    np.fill_diagonal(wrong, False)
    wrong[:, 0] = False
    if wrong.any():
        head, word = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"scores[{head}, {word}] is {scores[head, word]}, expected -inf or a number up to 1e300"
        )
    return scores


def no_tree(scores, single_root):
    """The message for scores whose arcs contain no tree."""
    arcs = np.isfinite(scores[:, 1:]).sum() - np.isfinite(np.diagonal(scores)[1:]).sum()
    kind = "with one child of the root" if single_root else "from the root"
    return f"{arcs} arcs contain no tree {kind}, expected a path to each word in such a tree"


cdef int max_tree(
    const double *scores, int n, bint single_root, int32_t *heads, SpanningScratch *scratch,
) noexcept nogil:
    cdef int top
    if not reserve(scratch, n, 0):
        return -1
    transpose(scores, n, scratch.table)
    top = contract(scratch, n, single_root)
    if top < 0:
        return 1
    expand(scratch, n, top, heads)
    return 1 if single_root and not has_single_root(heads, n) else 0


cdef int k_best_trees(
    const double *scores, int n, bint single_root, int k, int32_t *heads, double *totals,
    SpanningScratch *scratch,
) noexcept nogil:
    cdef Py_ssize_t width = n + 1
    cdef int found = 1
    cdef int best, i, word
    if k < 1:
        return 0
    if not reserve(scratch, n, k):
        return -1
    transpose(scores, n, scratch.columns)
    memset(scratch.forced, 0, width)
    if best_of_set(scratch, n, single_root, 0, heads, heads) < 0:
        return 0
    totals[0] = total_of(scores, n, heads)
    if k > 1:
        propose(scratch, scores, n, single_root, 0, heads)
    while found < k and not is_stopped(scratch.watch):
        best = -1
        for i in range(found):
            if scratch.removed[i] and (
                best < 0 or scratch.proposal_totals[i] > scratch.proposal_totals[best]
            ):
                best = i
        if best < 0:
            break
        word = scratch.removed[best]
        memcpy(heads + found * width, scratch.proposals + best * width, width * sizeof(int32_t))
        totals[found] = scratch.proposal_totals[best]
        memcpy(scratch.forced + found * width, scratch.forced + best * width, width)
        scratch.forced[best * width + word] = True
        scratch.origins[found] = best
        scratch.banned_words[found] = word
        scratch.banned_heads[found] = heads[best * width + word]
        found += 1
        if found < k:
            propose(scratch, scores, n, single_root, best, heads + best * width)
            propose(scratch, scores, n, single_root, found - 1, heads + (found - 1) * width)
    sort_trees(n, found, heads, totals, scratch.proposals)
    return found


cdef bint has_single_root(const int32_t *heads, int n) noexcept nogil:
    cdef int word
    cdef int roots = 0
    for word in range(1, n + 1):
        roots += heads[word] == 0
    return roots == 1 or n == 0


cdef double total_of(const double *scores, int n, const int32_t *heads) noexcept nogil:
    cdef Py_ssize_t width = n + 1
    cdef double total = 0.0
    cdef int word
    for word in range(1, n + 1):
        total += scores[heads[word] * width + word]
    return total


cdef void sort_trees(
    int n, int found, int32_t *heads, double *totals, int32_t *spare
) noexcept nogil:
    # They are in order but for rounding, which insertion leaves at O(k).
    cdef Py_ssize_t width = n + 1
    cdef int i, place
    cdef double total
    for i in range(1, found):
        total = totals[i]
        place = i
        while place > 0 and totals[place - 1] < total:
            place -= 1
        if place == i:
            continue
        memcpy(spare, heads + i * width, width * sizeof(int32_t))
        memmove(
            heads + (place + 1) * width, heads + place * width,
            (i - place) * width * sizeof(int32_t),
        )
        memcpy(heads + place * width, spare, width * sizeof(int32_t))
        memmove(totals + place + 1, totals + place, (i - place) * sizeof(double))
        totals[place] = total


cdef int best_of_set(
    SpanningScratch *scratch, int n, bint single_root, int which, const int32_t *tree,
    int32_t *heads,
) noexcept nogil:
    # A best tree of the set, into heads.  tree: the set's own, whose arcs are forced where forced.
    # Returns the last supernode of its contraction, -1 where the set is empty.
    cdef Py_ssize_t width = n + 1
    cdef double *row
    cdef double score
    cdef int word, node, top
    memcpy(scratch.table + width, scratch.columns + width, n * width * sizeof(double))
    for word in range(1, n + 1):
        if scratch.forced[which * width + word]:
            row = scratch.table + word * width
            score = row[tree[word]]
            for node in range(n + 1):
                row[node] = -INFINITY
            row[tree[word]] = score
    while which > 0:
        scratch.table[
            scratch.banned_words[which] * width + scratch.banned_heads[which]
        ] = -INFINITY
        which = scratch.origins[which]
    top = contract(scratch, n, single_root)
    if top < 0:
        return -1
    expand(scratch, n, top, heads)
    return -1 if single_root and not has_single_root(heads, n) else top


cdef void propose(
    SpanningScratch *scratch, const double *scores, int n, bint single_root, int which,
    const int32_t *tree,
) noexcept nogil:
    # The second best tree of a set, into proposals, and a word whose head differs, into removed.
    cdef int32_t *proposal = scratch.proposals + which * <Py_ssize_t>(n + 1)
    cdef int word = 1
    cdef int top = best_of_set(scratch, n, single_root, which, tree, proposal)
    scratch.removed[which] = 0
    if top < 0:
        return
    while word <= n and proposal[word] == tree[word]:
        word += 1
    if word > n:
        word = swap_arc(scratch, n, single_root, which, top, proposal)
        if word == 0:
            return
    scratch.removed[which] = word
    scratch.proposal_totals[which] = total_of(scores, n, proposal)


cdef int swap_arc(
    SpanningScratch *scratch, int n, bint single_root, int which, int top, int32_t *heads
) noexcept nogil:
    # Turn the best tree of a set, just expanded, into its second best one.
    # Returns the word whose arc it loses, 0 where there is no other tree.
    cdef Py_ssize_t width = n + 1
    cdef const double *row
    cdef double best, gain = -INFINITY
    cdef int word, node, tail, entry, head, below
    cdef int lost = 0, new_tail = 0, new_entry = 0
    number_subtrees(scratch, n, heads)
    for word in range(1, n + 1):
        if scratch.forced[which * width + word]:
            continue
        node = scratch.tops[word]
        head = heads[word]
        best = gain + scratch.best[node]
        tail = -1
        entry = second_from_tail(scratch, n, word, node, head, &best)
        if entry:
            tail = head
        # The only arc of the root goes for another of the root, and for no other arc.
        if not single_root or head != 0:
            row = scratch.table + node * width
            for below in range(1 if single_root else 0, n + 1):
                if row[below] > best and below != head and (
                    not is_below(scratch, below, word)
                ):
                    best = row[below]
                    tail = below
            if tail >= 0 and tail != head:
                entry = arc_target(scratch, n, node, tail)
        if tail >= 0:
            gain = best - scratch.best[node]
            lost = word
            new_tail = tail
            new_entry = entry
    if lost:
        node = scratch.tops[lost]
        scratch.tails[node] = new_tail
        scratch.entries[node] = new_entry
        expand(scratch, n, top, heads)
    return lost


cdef int second_from_tail(
    const SpanningScratch *scratch, int n, int word, int top, int tail, double *best
) noexcept nogil:
    # The best arc from the chosen one's tail into the same supernode, but into another word of it.
    # best: the score to exceed, replaced by the arc's.  Returns that word, 0 for none.
    cdef Py_ssize_t width = n + 1
    cdef int inner = word
    cdef int end = 0
    cdef int other
    cdef double score, found = -INFINITY
    while inner != top:
        found -= scratch.best[inner]
        other = scratch.rings[inner]
        while other != inner:
            score = scratch.table[other * width + tail] - scratch.best[other]
            if score > found:
                found = score
                end = arc_target(scratch, n, other, tail)
            other = scratch.rings[other]
        inner = scratch.parents[inner]
    if found > best[0]:
        best[0] = found
        return end
    return 0


cdef void number_subtrees(SpanningScratch *scratch, int n, const int32_t *heads) noexcept nogil:
    # Number the nodes so that each subtree is a range of numbers, from its top on.
    cdef int32_t *stack = scratch.path
    cdef int node, place
    cdef int depth = 1
    for node in range(n + 1):
        scratch.children[node] = 0
        scratch.sizes[node] = 1
    for node in range(n, 0, -1):
        scratch.siblings[node] = scratch.children[heads[node]]
        scratch.children[heads[node]] = node
    stack[0] = 0
    for place in range(n + 1):
        depth -= 1
        node = stack[depth]
        scratch.order[place] = node
        scratch.first[node] = place
        node = scratch.children[node]
        while node:
            stack[depth] = node
            depth += 1
            node = scratch.siblings[node]
    for place in range(n, 0, -1):
        node = scratch.order[place]
        scratch.sizes[heads[node]] += scratch.sizes[node]


cdef inline bint is_below(const SpanningScratch *scratch, int node, int word) noexcept nogil:
    return 0 <= scratch.first[node] - scratch.first[word] < scratch.sizes[word]
