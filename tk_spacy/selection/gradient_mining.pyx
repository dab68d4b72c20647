"""One pass of gradient mining: the patterns whose gradient may be steep, and their new weights.

Source: Qian and Liu 2015, Algorithm 1, lines 5 to 19.  Of the samples that the model gets wrong the
right tree (better) and the chosen one (worse) are walked through, and #f+ and #f- count how often
each pattern occurs in these.  A pattern survives where one of the two counts is above the threshold
C, or its weight is not 0; only what extends a survivor is looked at (neither count can rise with
the order, their difference can).  Patterns of order r + 1 are proposed by a spectral Bloom filter
in two rounds, for either count, and then counted exactly, so that no filter's size changes what
survives.

The weight of a survivor moves against the gradient: by step * (#f+ - #f- - C * sign(w)), and stops
at 0; one that is 0 moves only where |#f+ - #f-| > C, by what is above C.  (The print of line 12
adds C * sign(w), which would let weights grow.)

What both trees of a sample have cancels out in the gradient, though not in the counts.  `contested`
leaves it out of these, which is the same gradient and a tighter bound: in the space of arcs, arcs
that both trees have; in that of trees, occurrences without an arc whose head or left sibling is
another one in the other tree, as far as they cannot get such an arc by further steps either.  (An
occurrence's beginnings are counted where it is, so the counts still cannot rise with the order.)

In a corpus of parts in slots (see combinations) a pattern has at most one feature of each slot, and
only a complete one gets a weight; the others are counted as bounds of those that extend them.
There the gradient is taken from the occurrences that do have one.

Patterns are parted by their first feature into PARTS that know nothing of each other, so threads
work on them apart, and the result is the same for any number of threads.
"""

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

import numpy as np

from tk_spacy.selection.bloom cimport (
    MOST_COUNT, Bloom, came_often, clear_bloom, free_bloom, make_bloom,
)
from tk_spacy.selection.corpus cimport (
    Arc, Corpus, Lists, Slots, Tree, get_arc, get_tree, spread_marks,
)
from tk_spacy.selection.patterns cimport (
    FEATURE_BITS, MAX_DEPTH, MAX_ORDER, NOWHERE, Patterns, Reach, add_pattern, cut_patterns,
    find_pattern, free_patterns, make_patterns, may_weigh, parent_of, pattern_key, walk_arc,
    walk_tree,
)
from tk_spacy.parallel.stopping cimport Listener, Watch, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_power

PARTS = 32

cdef enum:
    PROPOSE = 0
    COUNT = 1
    NO_MEMORY = 1
    TOO_MANY = 2


cdef struct Part:
    # The patterns that begin with one of some features, their counts (#f+ and #f-) and gradients.
    Patterns patterns
    int32_t number
    int32_t *better
    int32_t *worse
    int32_t *gradients
    double *weights
    uint8_t *survives
    uint8_t *inner          # whether a pattern has had extensions
    Py_ssize_t room
    int failed


cdef struct Samples:
    const int64_t *lists
    const int32_t *better
    const int32_t *worse
    Py_ssize_t n
    bint trees
    bint contested


cdef struct Limits:
    double threshold
    double step
    int max_order
    uint64_t filter_bytes
    Py_ssize_t max_patterns


cdef struct Walk:
    Part *part
    int mode
    int order               # of the patterns that are proposed or counted
    int most                # how often one must have come to be proposed
    Bloom *bloom
    double threshold
    bint better             # whether the right trees are walked: #f+, and 1 for the gradient
    Reach reach             # of trees, where only contested occurrences count
    Py_ssize_t max_patterns


class TooManyPatternsError(MemoryError):
    """More patterns than a limit allows."""


def mine(
    Corpus corpus not None, lists, better, worse, carried, *, trees, threshold, step=1.0,
    max_order=255, filter_bytes=1 << 22, max_patterns=1 << 27, contested=False,
    n_threads=None,
):
    """One iteration over the samples that the model gets wrong.

    lists: int64[s], numbers of lists.  better, worse: int32[s], the right candidate of each and the
    one that the model chose.  carried: for each of the PARTS (parents, steps, weights) of the
    patterns that have a weight, closed under prefixes; see PatternTable.
    trees: the space of trees, else that of arcs.  threshold: C, 0 or more.  max_order: features of
    a pattern, at most.  filter_bytes: of a part's filter, a power of two.  max_patterns: in all, of
    which each part may have an equal share.
    contested: leave out of the counts what a sample's two trees have in common.

    Returns for each part (parents, steps, weights, better, worse, survives): int64, int64, float64,
    int32, int32 and bool, of its survivors and of what they grow from.
    Raises TooManyPatternsError where a part needs more than its share, MemoryError, or ValueError
    for arrays that do not fit.
    """
    cdef Samples samples
    cdef Limits limits
    cdef const int64_t[::1] places = checked("lists", lists, np.int64, None)
    cdef const int32_t[::1] right = checked("better", better, np.int32, places.shape[0])
    cdef const int32_t[::1] wrong = checked("worse", worse, np.int32, places.shape[0])
    cdef Py_ssize_t i, n = PARTS_
    _check_samples(corpus, places, right, wrong)
    check_power(filter_bytes, "a filter")
    if not threshold >= 0 or not step > 0:
        raise ValueError(f"threshold {threshold} and step {step}, expected positive numbers")
    if not 1 <= max_order <= MAX_ORDER:
        raise ValueError(f"max_order is {max_order}, expected 1 to {MAX_ORDER}")
    if len(carried) != PARTS_:
        raise ValueError(f"{len(carried)} parts, expected {PARTS_}")
    if trees and not corpus.has_trees:
        raise ValueError("patterns of trees in a corpus of other parts, expected one of trees")
    if places.shape[0]:
        samples.lists, samples.better, samples.worse = &places[0], &right[0], &wrong[0]
    samples.n, samples.trees, samples.contested = places.shape[0], trees, contested
    limits.threshold, limits.step, limits.max_order = threshold, step, max_order
    limits.filter_bytes, limits.max_patterns = filter_bytes, max(1, max_patterns // PARTS_)
    cdef int threads = effective_n_threads(n_threads)
    cdef Listener listener = Listener(n)
    cdef Part *parts = <Part *>calloc(n, sizeof(Part))
    if parts == NULL:
        raise MemoryError("no memory to mine in")
    try:
        for i in range(n):
            parents, steps, weights = carried[i]
            _fill_part(parts, i, parents, steps, weights, trees, corpus.n_features)
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                run_part(&corpus.lists, &samples, &limits, &parts[i], &listener.watch)
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        for i in range(n):
            if parts[i].failed == TOO_MANY:
                raise TooManyPatternsError(f"more than {max_patterns} patterns")
            if parts[i].failed:
                raise MemoryError("no memory for so many patterns")
        return [_taken_out(parts, i) for i in range(n)]
    finally:
        for i in range(n):
            free_part(&parts[i])
        free(parts)


def nothing_carried():
    """What `mine` takes before any pattern has a weight."""
    empty = np.zeros(0, dtype=np.int64)
    return [(empty, empty, np.zeros(0)) for _ in range(PARTS_)]


cdef int PARTS_ = PARTS


cdef int _check_samples(
    Corpus corpus, const int64_t[::1] lists, const int32_t[::1] better, const int32_t[::1] worse
) except -1:
    cdef Py_ssize_t i
    for i in range(lists.shape[0]):
        if not 0 <= lists[i] < corpus.n_lists:
            raise ValueError(f"lists[{i}] is {lists[i]}, expected 0 to {corpus.n_lists - 1}")
        k = corpus.lists.k[lists[i]]
        if not 0 <= better[i] < k or not 0 <= worse[i] < k:
            raise ValueError(f"sample {i} names candidates {better[i]} and {worse[i]} of {k}")
    return 0


cdef int _fill_part(
    Part *parts, Py_ssize_t number, parents, steps, weights, bint trees, int64_t n_features
) except -1:
    cdef Part *part = &parts[number]
    cdef const int64_t[::1] above = checked("parents", parents, np.int64, None)
    cdef const int64_t[::1] given = checked("steps", steps, np.int64, above.shape[0])
    cdef const double[::1] values = checked("weights", weights, np.float64, above.shape[0])
    cdef Py_ssize_t i
    cdef int64_t node
    cdef int order
    part.number = <int32_t>number
    if make_patterns(&part.patterns):
        raise MemoryError("no memory to mine in")
    for i in range(above.shape[0]):
        if (
            not -1 <= above[i] < i
            or not 0 <= given[i] >> FEATURE_BITS < (MAX_DEPTH if trees else 1)
            or not given[i] & ((1 << FEATURE_BITS) - 1) < n_features
        ):
            raise ValueError(
                f"carried pattern {i} extends {above[i]} by {given[i]}, expected one before it and "
                "a feature"
            )
        order = 1 if above[i] < 0 else part.patterns.orders[above[i]] + 1
        if order > MAX_ORDER:
            raise ValueError(f"carried pattern {i} has over {MAX_ORDER} features")
        node = add_pattern(&part.patterns, above[i], <uint64_t>given[i], order)
        if node == NOWHERE or make_room(part):
            raise MemoryError("no memory to mine in")
        if node != i:
            raise ValueError(f"carried pattern {i} is there twice, expected each once")
        part.weights[i] = values[i]
        if above[i] >= 0:
            part.inner[above[i]] = 1
    return 0


cdef object _taken_out(Part *parts, Py_ssize_t number):
    cdef Part *part = &parts[number]
    cdef Py_ssize_t n = part.patterns.table.n, i
    parents, steps = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    weights, survives = np.empty(n), np.empty(n, dtype=bool)
    better, worse = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    cdef int64_t[::1] above = parents, given = steps
    cdef double[::1] values = weights
    cdef uint8_t[::1] alive = survives.view(np.uint8)
    cdef int32_t[::1] plus = better, minus = worse
    for i in range(n):
        above[i] = parent_of(part.patterns.keys[i])
        given[i] = <int64_t>(part.patterns.keys[i] & 0xFFFFFFFF)
        values[i], alive[i] = part.weights[i], part.survives[i]
        plus[i], minus[i] = part.better[i], part.worse[i]
    return parents, steps, weights, better, worse, survives


cdef void free_part(Part *part) noexcept nogil:
    free_patterns(&part.patterns)
    free(part.better)
    free(part.worse)
    free(part.gradients)
    free(part.weights)
    free(part.survives)
    free(part.inner)


cdef int make_room(Part *part) noexcept nogil:
    """Room for what is said of each pattern; new ones have no counts.  1: no memory."""
    cdef Py_ssize_t room = part.patterns.room, i
    cdef void *grown
    if part.room >= room:
        return 0
    grown = realloc(part.better, room * sizeof(int32_t))
    if grown == NULL:
        return 1
    part.better = <int32_t *>grown
    grown = realloc(part.worse, room * sizeof(int32_t))
    if grown == NULL:
        return 1
    part.worse = <int32_t *>grown
    grown = realloc(part.gradients, room * sizeof(int32_t))
    if grown == NULL:
        return 1
    part.gradients = <int32_t *>grown
    grown = realloc(part.weights, room * sizeof(double))
    if grown == NULL:
        return 1
    part.weights = <double *>grown
    grown = realloc(part.survives, room)
    if grown == NULL:
        return 1
    part.survives = <uint8_t *>grown
    grown = realloc(part.inner, room)
    if grown == NULL:
        return 1
    part.inner = <uint8_t *>grown
    for i in range(part.room, room):
        part.better[i] = part.worse[i] = part.gradients[i] = 0
        part.weights[i] = 0.0
        part.survives[i] = part.inner[i] = 0
    part.room = room
    return 0


cdef void run_part(
    const Lists *lists, const Samples *samples, const Limits *limits, Part *part, Watch *watch
) noexcept nogil:
    """All orders, one after the other."""
    cdef Bloom bloom
    cdef int order = 0, highest = 0
    cdef Py_ssize_t i
    for i in range(part.patterns.table.n):
        highest = max(highest, part.patterns.orders[i])
    if make_bloom(&bloom, limits.filter_bytes):
        part.failed = NO_MEMORY
        return
    while order < limits.max_order and not part.failed and not is_stopped(watch):
        order += 1
        if not run_order(lists, samples, limits, part, order, &bloom, watch) and order >= highest:
            break
    free_bloom(&bloom)


cdef Py_ssize_t run_order(
    const Lists *lists, const Samples *samples, const Limits *limits, Part *part, int order,
    Bloom *bloom, Watch *watch,
) noexcept nogil:
    """Proposes, counts, prunes and moves the patterns of one order; the number of survivors."""
    cdef Walk walk
    cdef Py_ssize_t first = part.patterns.table.n
    cdef int round
    walk.part, walk.order, walk.bloom = part, order, bloom
    walk.max_patterns, walk.threshold = limits.max_patterns, limits.threshold
    walk.reach.max_order, walk.reach.has_marked = limits.max_order, True
    # A count of `most` or less may be below the threshold; the basic features are all counted.
    walk.most = 0 if order == 1 else <int>min(<double>MOST_COUNT, limits.threshold)
    walk.mode = PROPOSE
    for round in range(2):
        walk.better = round == 0
        clear_bloom(bloom)
        walk_samples(lists, samples, &walk, watch)
        if part.failed:
            return 0
    walk.mode = COUNT
    for round in range(2):
        walk.better = round == 0
        walk_samples(lists, samples, &walk, watch)
    return prune(part, limits, &lists.slots, order, first)


cdef void walk_samples(
    const Lists *lists, const Samples *samples, Walk *walk, Watch *watch
) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t m, own, others
    cdef Tree tree, other
    cdef Arc arc
    for i in range(samples.n):
        if walk.part.failed or is_stopped(watch):
            return
        own, others = samples.better[i], samples.worse[i]
        if not walk.better:
            own, others = others, own
        get_tree(lists, samples.lists[i], own, &tree)
        get_tree(lists, samples.lists[i], others, &other)
        if samples.trees:
            if not samples.contested:
                walk_tree(lists, &tree, NULL, mining_step, walk)
            elif walk_contested(lists, &tree, &other, walk):
                walk.part.failed = NO_MEMORY
            continue
        for m in range(tree.n):
            if tree.members[m] < 0 or samples.contested and tree.members[m] == other.members[m]:
                continue
            get_arc(lists, tree.first_arc + tree.members[m], &arc)
            walk_arc(&lists.slots, &arc, mining_step, walk)


cdef int walk_contested(
    const Lists *lists, const Tree *tree, const Tree *other, Walk *walk
) noexcept nogil:
    """The occurrences of a tree that another one lacks, and their beginnings; 1: no memory."""
    cdef Py_ssize_t n = tree.n + 1, word
    cdef uint8_t *marked = <uint8_t *>calloc(n, 1)
    cdef int32_t *numbers = <int32_t *>calloc(4 * n, sizeof(int32_t))
    cdef int32_t *below = numbers
    cdef int32_t *left = numbers + n
    cdef int32_t *left_there = numbers + 2 * n
    if marked == NULL or numbers == NULL:
        free(marked)
        free(numbers)
        return 1
    link(tree, left)
    link(other, left_there)
    for word in range(1, n):
        marked[word] = (
            tree.members[word - 1] != other.members[word - 1] or left[word] != left_there[word]
        )
    spread_marks(tree, marked, numbers + 3 * n, below, MAX_ORDER)
    walk.reach.marked, walk.reach.below = marked, below
    walk_tree(lists, tree, &walk.reach, mining_step, walk)
    free(marked)
    free(numbers)
    return 0


cdef void link(const Tree *tree, int32_t *left) noexcept nogil:
    """Writes the left sibling of each word that has one."""
    cdef Py_ssize_t word
    for word in range(1, tree.n + 1):
        if tree.next_sibling[word]:
            left[tree.next_sibling[word]] = <int32_t>word


cdef int64_t mining_step(void *context, int64_t node, uint64_t step, int order) noexcept nogil:
    cdef Walk *walk = <Walk *>context
    cdef Part *part = walk.part
    cdef int32_t *counts
    cdef int64_t child
    if order == 0 and <int32_t>((step & ((1 << FEATURE_BITS) - 1)) % PARTS_) != part.number:
        return NOWHERE
    if order + 1 < walk.order:
        child = find_pattern(&part.patterns, node, step)
        if child == NOWHERE:
            return NOWHERE
        # An extension comes no more often than what it extends, so that one that is new and above
        # the threshold extends one that is; and to count is what is there already.
        if walk.mode == PROPOSE:
            # (Not kept in `walk`: the counts move where there is more room.)
            counts = part.better if walk.better else part.worse
            return child if counts[child] > walk.threshold else NOWHERE
        return child if part.inner[child] else NOWHERE
    if walk.mode == COUNT:
        child = find_pattern(&part.patterns, node, step)
        if child != NOWHERE:
            counts = part.better if walk.better else part.worse
            counts[child] += 1
            if walk.reach.has_marked:
                part.gradients[child] += 1 if walk.better else -1
        return NOWHERE
    if part.failed:
        return NOWHERE
    if find_pattern(&part.patterns, node, step) != NOWHERE:
        return NOWHERE
    if came_often(walk.bloom, pattern_key(node, step), walk.most):
        if part.patterns.table.n >= walk.max_patterns:
            part.failed = TOO_MANY
        elif add_pattern(&part.patterns, node, step, order + 1) == NOWHERE or make_room(part):
            part.failed = NO_MEMORY
        elif node != NOWHERE:
            part.inner[node] = 1
    return NOWHERE


cdef Py_ssize_t prune(
    Part *part, const Limits *limits, const Slots *slots, int order, Py_ssize_t first
) noexcept nogil:
    """Moves the weights of an order's survivors and forgets the others; the number of survivors.

    first: the first pattern that was proposed just now; those before it were carried.
    """
    cdef Py_ssize_t i, n = 0, kept = first
    for i in range(part.patterns.table.n):
        if part.patterns.orders[i] != order:
            continue
        part.survives[i] = (
            part.better[i] > limits.threshold or part.worse[i] > limits.threshold
            or part.weights[i] != 0.0
        )
        if part.survives[i]:
            n += 1
            if may_weigh(slots, part.patterns.keys[i]):
                part.weights[i] = moved(
                    part.weights[i], part.gradients[i], limits.threshold, limits.step
                )
        if i < first:
            continue
        if part.survives[i]:
            part.patterns.keys[kept] = part.patterns.keys[i]
            part.patterns.orders[kept] = part.patterns.orders[i]
            part.better[kept], part.worse[kept] = part.better[i], part.worse[i]
            part.gradients[kept] = part.gradients[i]
            part.weights[kept], part.survives[kept] = part.weights[i], 1
            kept += 1
    for i in range(kept, part.patterns.table.n):
        part.better[i] = part.worse[i] = part.gradients[i] = 0
        part.weights[i], part.survives[i] = 0.0, 0
        part.inner[i] = 0
    cut_patterns(&part.patterns, kept)
    return n


cdef double moved(double weight, double gradient, double threshold, double step) noexcept nogil:
    """A weight after one step; see the module's docstring."""
    cdef double new
    if weight == 0.0:
        if fabs(gradient) <= threshold:
            return 0.0
        return step * (gradient - threshold if gradient > 0 else gradient + threshold)
    new = weight + step * (gradient - (threshold if weight > 0 else -threshold))
    return new if (new > 0) == (weight > 0) else 0.0
