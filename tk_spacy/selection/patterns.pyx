"""Patterns: combinations of basic features, found in the arcs and trees that have them.

Source: Qian and Liu 2015, section 5.  In the polynomial space a pattern is a set of features of one
arc; it is grown from low to high numbers, so that each set is met once.  In the space of the tree
kernel it is a sub feature tree, grown by rightmost extension (section 5.2.2): a further arc hangs
on the last word that joined, or is the adjacent right sibling of a word on the path to it, so that
each subtree is met once.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

import numpy as np

from tk_spacy.selection.corpus cimport get_arc, get_tree, has_feature, spread_marks
from tk_spacy.selection.key_table cimport add_key, clear_keys, free_keys, key_hash, make_keys
from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.selection.corpus import MAX_FEATURES
from tk_spacy.utils.array_checks import checked

cdef enum:
    NO_SLOT = -1

assert MAX_FEATURES == 1 << FEATURE_BITS
MAX_ORDER = 255
BITS_OF_A_KEY = 16
cdef int32_t MAX_ORDER_ = MAX_ORDER, BITS_OF_A_KEY_ = BITS_OF_A_KEY


cdef int make_patterns(Patterns *patterns) noexcept nogil:
    patterns.room = 0
    patterns.keys, patterns.orders = NULL, NULL
    return make_keys(&patterns.table)


cdef void free_patterns(Patterns *patterns) noexcept nogil:
    free_keys(&patterns.table)
    free(patterns.keys)
    free(patterns.orders)
    patterns.keys, patterns.orders = NULL, NULL


cdef int64_t add_pattern(
    Patterns *patterns, int64_t parent, uint64_t step, int order
) noexcept nogil:
    cdef Py_ssize_t n = patterns.table.n, room
    cdef uint64_t key = pattern_key(parent, step)
    cdef uint64_t *keys
    cdef uint8_t *orders
    cdef int32_t node
    if n == patterns.room:
        room = max(256, 2 * n)
        keys = <uint64_t *>realloc(patterns.keys, room * sizeof(uint64_t))
        if keys == NULL:
            return NOWHERE
        patterns.keys = keys
        orders = <uint8_t *>realloc(patterns.orders, room)
        if orders == NULL:
            return NOWHERE
        patterns.orders = orders
        patterns.room = room
    node = add_key(&patterns.table, key)
    if node == n:
        patterns.keys[n] = key
        patterns.orders[n] = <uint8_t>order
    return node


cdef void cut_patterns(Patterns *patterns, Py_ssize_t n) noexcept nogil:
    """Leaves the first n nodes; those after them have no children among these."""
    cdef Py_ssize_t i
    clear_keys(&patterns.table)
    for i in range(n):
        add_key(&patterns.table, patterns.keys[i])


cdef void walk_arc(
    const Slots *slots, const Arc *arc, const Index *index, Step step, void *context
) noexcept nogil:
    """Every pattern of an arc, depth first."""
    if slots.of_feature == NULL:
        extend_set(arc, 0, index, NOWHERE, 0, step, context)
    else:
        extend_slots(slots, arc.ids, arc.n, 0, NO_SLOT, NOWHERE, 0, step, context)


cdef bint has_few_children(
    const Index *index, int64_t node, int32_t n, int64_t *first, int64_t *last
) noexcept nogil:
    """Whether to look at a node's children, first..last - 1, and not for n features."""
    if index == NULL or node == NOWHERE:
        return False
    first[0], last[0] = index.starts[node], index.starts[node + 1]
    return last[0] - first[0] <= n


cdef void extend_set(
    const Arc *arc, int32_t start, const Index *index, int64_t node, int order, Step step,
    void *context,
) noexcept nogil:
    """By any feature from `start` on."""
    cdef int32_t i
    cdef int64_t child, at, first, last
    if has_few_children(index, node, arc.n - start, &first, &last):
        for at in range(first, last):
            if has_feature(arc, <int32_t>index.steps[at]):
                child = step(context, node, index.steps[at], order)
                if child != NOWHERE:
                    extend_set(arc, 0, index, child, order + 1, step, context)
        return
    for i in range(start, arc.n):
        child = step(context, node, <uint64_t>arc.ids[i], order)
        if child != NOWHERE:
            extend_set(arc, i + 1, index, child, order + 1, step, context)


cdef void extend_slots(
    const Slots *slots, const int32_t *ids, int32_t n, int32_t start, int32_t slot, int64_t node,
    int order, Step step, void *context,
) noexcept nogil:
    """By a feature of a slot after the given one that passes over none which a pattern needs."""
    cdef int32_t i, following
    cdef int64_t child
    for i in range(start, n):
        following = slots.of_feature[ids[i]]
        if following == slot:
            continue
        if slots.after[following] > slot:
            return
        child = step(context, node, <uint64_t>ids[i], order)
        if child != NOWHERE:
            extend_slots(slots, ids, n, i + 1, following, child, order + 1, step, context)


cdef void walk_tree(
    const Lists *lists, const Tree *tree, Reach *reach, const Index *index, Step step, void *context
) noexcept nogil:
    """Every pattern of a tree, depth first, whose top word is each of its words in turn."""
    cdef int32_t top
    for top in range(tree.n + 1):
        walk_below(lists, tree, top, reach, index, step, context)


cdef void walk_below(
    const Lists *lists, const Tree *tree, int32_t top, Reach *reach, const Index *index, Step step,
    void *context,
) noexcept nogil:
    """Those with one top word."""
    cdef int32_t path[MAX_DEPTH]
    path[0] = top
    extend_tree(lists, tree, reach, index, path, 0, NOWHERE, 0, False, step, context)


cdef void extend_tree(
    const Lists *lists, const Tree *tree, Reach *reach, const Index *index, const int32_t *path,
    int depth, int64_t node, int order, bint marked, Step step, void *context,
) noexcept nogil:
    """path: the words from the top to the last that joined, path[depth]."""
    cdef int32_t word
    cdef int i
    if depth + 1 < MAX_DEPTH:
        word = tree.first_child[path[depth]]
        while word:
            extend_by(
                lists, tree, reach, index, path, depth, word, node, order, marked, step, context
            )
            word = tree.next_sibling[word]
    for i in range(1, depth + 1):
        word = tree.next_sibling[path[i]]
        if word:
            extend_by(
                lists, tree, reach, index, path, i - 1, word, node, order, marked, step, context
            )


cdef void extend_by(
    const Lists *lists, const Tree *tree, Reach *reach, const Index *index, const int32_t *path,
    int depth, int32_t word, int64_t node, int order, bint marked, Step step, void *context,
) noexcept nogil:
    """By the arc into a word that hangs on path[depth]."""
    cdef int32_t longer[MAX_DEPTH]
    cdef Arc arc
    cdef int64_t child, at, first, last
    cdef uint64_t by
    cdef int j
    cdef bint copied = False, few
    if reach != NULL:
        marked = marked or reach.marked[word]
        if not marked and not reaches(reach, path, depth, word, order + 1):
            return
    get_arc(lists, tree.first_arc + tree.members[word - 1], &arc)
    few = has_few_children(index, node, arc.n, &first, &last)
    if not few:
        first, last = 0, arc.n
    for at in range(first, last):
        if few:
            by = index.steps[at]
            if by >> FEATURE_BITS != <uint64_t>depth or not has_feature(
                &arc, <int32_t>(by & ((1 << FEATURE_BITS) - 1))
            ):
                continue
        else:
            by = <uint64_t>depth << FEATURE_BITS | <uint64_t>arc.ids[at]
        if reach != NULL:
            reach.has_marked = marked
        child = step(context, node, by, order)
        if child == NOWHERE:
            continue
        if not copied:
            for j in range(depth + 1):
                longer[j] = path[j]
            longer[depth + 1] = word
            copied = True
        extend_tree(
            lists, tree, reach, index, longer, depth + 1, child, order + 1, marked, step, context
        )


cdef bint reaches(
    const Reach *reach, const int32_t *path, int depth, int32_t word, int order
) noexcept nogil:
    """Whether an occurrence that ends in a word on path[depth] may still get a marked arc."""
    cdef int32_t nearest = reach.below[word]
    cdef int i
    for i in range(depth + 1):
        nearest = min(nearest, reach.below[path[i]])
    return order + nearest <= reach.max_order


cdef struct Sum:
    const Index *index
    const double *weights
    double total
    double *values
    Reach reach


cdef int64_t add_weight(void *context, int64_t node, uint64_t step, int order) noexcept nogil:
    cdef Sum *found = <Sum *>context
    cdef int64_t child = look_up(found.index, node, step)
    if child == NOWHERE:
        return NOWHERE
    if found.reach.has_marked:
        found.total += found.weights[child]
    return child if is_inner(found.index, child) else NOWHERE


cdef void note_total(void *context, int64_t unit) noexcept nogil:
    cdef Sum *found = <Sum *>context
    found.values[unit], found.total = found.total, 0.0


cdef struct Move:
    const Index *index
    const Slots *slots
    double *weights
    double *stepped
    double by
    double at
    Reach reach


cdef int64_t move_weight(void *context, int64_t node, uint64_t step, int order) noexcept nogil:
    cdef Move *move = <Move *>context
    cdef int64_t child = look_up(move.index, node, step)
    if child == NOWHERE:
        return NOWHERE
    if move.reach.has_marked and may_weigh(move.slots, step):
        move.weights[child] += move.by
        move.stepped[child] += move.by * move.at
    return child if is_inner(move.index, child) else NOWHERE


cdef class PatternTable:
    """A set of patterns, closed under prefixes, with numbers 0..p-1.

    parents: int64[p], -1 for a pattern of one feature; less than the pattern's own number.
    steps: int64[p], the feature that a pattern has more than its parent; in the space of trees also
        the depth of the word that its arc hangs on, times 2 ** 25.
    trees: whether this is the space of trees; else that of arcs.

    Raises ValueError for parents that do not come before, and for a pattern that is there twice.
    """

    def __cinit__(self, parents, steps, *, trees):
        cdef const int64_t[::1] above = checked("parents", parents, np.int64, None)
        cdef const int64_t[::1] given = checked("steps", steps, np.int64, above.shape[0])
        cdef Py_ssize_t i
        cdef int order
        cdef int64_t node
        self.trees = trees
        self.highest = 0
        if make_patterns(&self.patterns):
            raise MemoryError("no memory for a table of patterns")
        for i in range(above.shape[0]):
            if not -1 <= above[i] < i or not 0 <= given[i] < <int64_t>MAX_DEPTH << FEATURE_BITS:
                raise ValueError(
                    f"pattern {i} extends {above[i]} by {given[i]}, expected one before it and a "
                    "feature"
                )
            order = 1 if above[i] < 0 else self.patterns.orders[above[i]] + 1
            if order > MAX_ORDER:
                raise ValueError(f"pattern {i} has over {MAX_ORDER} features")
            self.highest = max(self.highest, order)
            node = add_pattern(&self.patterns, above[i], <uint64_t>given[i], order)
            if node == NOWHERE:
                raise MemoryError("no memory for a table of patterns")
            if node != i:
                raise ValueError(f"pattern {i} is there twice, expected each once")
        self._make_index(above, given)

    cdef int _make_index(
        self, const int64_t[::1] parents, const int64_t[::1] steps
    ) except -1:
        cdef Py_ssize_t n = parents.shape[0], i
        cdef Py_ssize_t most = 1 << 6, features = 0
        cdef uint64_t bit
        while most < BITS_OF_A_KEY_ * n:
            most *= 2
        for i in range(n):
            if parents[i] < 0 and steps[i] < <int64_t>1 << FEATURE_BITS:
                features = max(features, steps[i] + 1)
        cdef int32_t[::1] firsts = np.full(features + 1, NOWHERE, dtype=np.int32)
        cdef const int64_t[::1] starts
        cdef const uint32_t[::1] of_children
        cdef uint64_t[::1] bits = np.zeros(most >> 6, dtype=np.uint64)
        self.index.mask = <uint64_t>(most - 1)
        for i in range(n):
            bit = key_hash(self.patterns.keys[i]) >> 24 & self.index.mask
            bits[bit >> 6] |= <uint64_t>1 << (bit & 63)
            if parents[i] < 0 and steps[i] < features:
                firsts[steps[i]] = <int32_t>i
        numbers = np.lexsort((steps, parents))
        above = np.asarray(parents)[numbers]
        starts = np.searchsorted(above, np.arange(n + 1)).astype(np.int64)
        of_children = np.append(np.asarray(steps)[numbers], 0).astype(np.uint32)
        self._kept = (firsts, starts, of_children, bits)
        self.index.patterns = &self.patterns
        self.index.firsts, self.index.n_firsts = &firsts[0], features
        self.index.starts, self.index.steps = &starts[0], &of_children[0]
        self.index.bits = &bits[0]
        return 0

    def __dealloc__(self):
        free_patterns(&self.patterns)

    def __len__(self):
        return self.patterns.table.n

    @property
    def parents(self):
        """int64[p], see above."""
        return np.array(
            [parent_of(self.patterns.keys[i]) for i in range(len(self))], dtype=np.int64
        )

    @property
    def steps(self):
        """int64[p], see above."""
        return np.array(
            [self.patterns.keys[i] & 0xFFFFFFFF for i in range(len(self))], dtype=np.int64
        )

    @property
    def orders(self):
        """The number of features of each pattern: int32[p]."""
        return np.array([self.patterns.orders[i] for i in range(len(self))], dtype=np.int32)

    def scores(self, Corpus corpus not None, weights, *, n_threads=None):
        """The sum of the weights of all patterns, as often as they occur, of each candidate.

        Comparable within a list: what all its candidates have is left out, in the space of arcs
        whole arcs, in that of trees occurrences without an arc that differs.
        weights: float64[p].  Returns float64[k] for each list of the corpus.
        """
        cdef const double[::1] given = checked("weights", weights, np.float64, len(self))
        lengths = corpus.lengths
        _check_trees(corpus, self.trees)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        cdef const int64_t[::1] begins = ends
        cdef double[::1] out = np.zeros(ends[len(lengths)] + 1)
        cdef Py_ssize_t n = corpus.n_lists, i
        cdef int threads = effective_n_threads(n_threads), failed = 0
        cdef const Lists *lists = &corpus.lists
        cdef Listener listener = Listener(n)
        cdef bint trees = self.trees
        cdef int highest = self.highest
        if not len(self) or not n:
            return [np.zeros(k) for k in lengths]
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                if not is_stopped(&listener.watch):
                    failed += score_list(
                        &self.index, &given[0], lists, i, trees, highest, &out[begins[i]]
                    )
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        if failed:
            raise MemoryError("no memory for the scores of a list's arcs")
        return np.split(np.asarray(out)[: ends[len(lengths)]], ends[1 : len(lengths)])

    def list_scores(self, Corpus corpus not None, Py_ssize_t at, weights):
        """The same of one list, on one thread: float64[k]."""
        cdef const double[::1] given = checked("weights", weights, np.float64, len(self))
        _check_trees(corpus, self.trees)
        _check_place(corpus, at, 0)
        cdef double[::1] out = np.zeros(corpus.lists.k[at])
        cdef int failed = 0
        if len(self):
            with nogil:
                failed = score_list(
                    &self.index, &given[0], &corpus.lists, at, self.trees, self.highest, &out[0]
                )
        if failed:
            raise MemoryError("no memory for the scores of a list's arcs")
        return np.asarray(out)

    def move(self, Corpus corpus not None, Py_ssize_t at, int row, double by, weights, stepped,
             double time):
        """Adds `by` to the weight of each pattern of a candidate, as often as `scores` counts it.

        Of parts in slots only complete patterns have weights (see Corpus).

        at, row: the list and its candidate.  weights, stepped: float64[p]; to the second one by *
        time is added, for averaging.
        """
        cdef double[::1] of_patterns = checked("weights", weights, np.float64, len(self))
        cdef double[::1] sums = checked("stepped", stepped, np.float64, len(self))
        cdef Move context
        _check_trees(corpus, self.trees)
        _check_place(corpus, at, row)
        if not len(self):
            return
        cdef int failed = 0
        context.index = &self.index
        context.slots = &corpus.lists.slots
        context.weights, context.stepped = &of_patterns[0], &sums[0]
        context.by, context.at = by, time
        context.reach.max_order = self.highest
        with nogil:
            failed = walk(&corpus.lists, at, row, self.trees, move_weight, &context)
        if failed:
            raise MemoryError("no memory for a list's trees")


def _check_trees(Corpus corpus, bint trees):
    if trees and not corpus.has_trees:
        raise ValueError("patterns of trees in a corpus of other parts, expected one of trees")


def _check_place(Corpus corpus, Py_ssize_t at, int row):
    if not 0 <= at < corpus.n_lists or not 0 <= row < corpus.lists.k[at]:
        raise ValueError(f"there is no candidate {row} of a list {at}")


cdef int walk(
    const Lists *lists, Py_ssize_t at, int32_t row, bint trees, Step step, Move *context
) noexcept nogil:
    """Every pattern of a candidate that not all have; 1: no memory."""
    cdef Tree tree
    cdef Arc arc
    cdef int32_t m
    cdef int32_t *numbers
    get_tree(lists, at, row, &tree)
    if trees:
        numbers = <int32_t *>malloc(2 * (tree.n + 1) * sizeof(int32_t))
        if numbers == NULL:
            return 1
        look_down(lists, at, &tree, numbers, &context.reach)
        walk_tree(lists, &tree, &context.reach, context.index, step, context)
        free(numbers)
        return 0
    context.reach.has_marked = True
    for m in range(tree.n):
        if tree.members[m] >= 0 and lists.arc_differs[tree.first_arc + tree.members[m]]:
            get_arc(lists, tree.first_arc + tree.members[m], &arc)
            walk_arc(&lists.slots, &arc, context.index, step, context)
    return 0


cdef void look_down(
    const Lists *lists, Py_ssize_t at, const Tree *tree, int32_t *numbers, Reach *reach
) noexcept nogil:
    """For a walk over the occurrences that not all trees of a list have.

    numbers: room for 2 * (n + 1).
    """
    cdef const uint8_t *marked = lists.marked + lists.first_mark[at]
    spread_marks(tree, marked, numbers + tree.n + 1, numbers, MAX_ORDER_)
    reach.marked, reach.below = marked, numbers


cdef int score_list(
    const Index *index, const double *weights, const Lists *lists, Py_ssize_t at, bint trees,
    int highest, double *out,
) noexcept nogil:
    """Writes a score for each candidate; returns 1 where there is no memory."""
    cdef Sum context
    cdef int failed
    context.index, context.weights, context.total = index, weights, 0.0
    context.reach.max_order = highest
    context.values = <double *>malloc((n_units(lists, at, trees) + 1) * sizeof(double))
    if context.values == NULL:
        return 1
    failed = visit_units(
        lists, at, trees, index, &context.reach, add_weight, note_total, &context
    )
    if not failed:
        sum_units(lists, at, trees, context.values, out)
    free(context.values)
    return failed


cdef int visit_units(
    const Lists *lists, Py_ssize_t at, bint trees, const Index *index, Reach *reach, Step step,
    End end, void *context,
) noexcept nogil:
    if trees:
        return visit_nodes(lists, at, index, reach, step, end, context)
    visit_arcs(lists, at, index, reach, step, end, context)
    return 0


cdef void visit_arcs(
    const Lists *lists, Py_ssize_t at, const Index *index, Reach *reach, Step step, End end,
    void *context,
) noexcept nogil:
    """The distinct arcs of a list; nothing occurs in one that all its trees have."""
    cdef int64_t i, first = lists.first_arc[at]
    cdef Arc arc
    reach.has_marked = True
    for i in range(n_units(lists, at, False)):
        if lists.arc_differs[first + i]:
            get_arc(lists, first + i, &arc)
            walk_arc(&lists.slots, &arc, index, step, context)
        end(context, i)


cdef int visit_nodes(
    const Lists *lists, Py_ssize_t at, const Index *index, Reach *reach, Step step, End end,
    void *context,
) noexcept nogil:
    """Each node of the list's forest once; returns 1 where there is no memory."""
    cdef int64_t top, first = lists.first_top[at]
    cdef int32_t row, last = -1
    cdef Tree tree
    cdef int32_t *numbers = <int32_t *>malloc(2 * (lists.n[at] + 1) * sizeof(int32_t))
    if numbers == NULL:
        return 1
    for top in range(n_units(lists, at, True)):
        row = lists.top_rows[first + top]
        if row != last:
            get_tree(lists, at, row, &tree)
            look_down(lists, at, &tree, numbers, reach)
            last = row
        walk_below(lists, &tree, lists.top_words[first + top], reach, index, step, context)
        end(context, top)
    free(numbers)
    return 0


cdef void sum_units(
    const Lists *lists, Py_ssize_t at, bint trees, const double *values, double *out
) noexcept nogil:
    cdef const int32_t *units
    cdef int32_t row, i, n
    for row in range(lists.k[at]):
        units = units_of(lists, at, row, trees, &n)
        out[row] = 0.0
        for i in range(n):
            if units[i] >= 0:
                out[row] += values[units[i]]
