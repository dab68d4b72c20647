"""Patterns: combinations of basic features, found in the arcs and trees that have them.

Source: Qian and Liu 2015, section 5.  In the polynomial space a pattern is a set of features of one
arc; it is grown from low to high numbers, so that each set is met once.  In the space of the tree
kernel it is a sub feature tree, grown by rightmost extension (section 5.2.2): a further arc hangs
on the last word that joined, or is the adjacent right sibling of a word on the path to it, so that
each subtree is met once.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc

from tk_spacy.selection.corpus cimport get_arc
from tk_spacy.selection.key_table cimport add_key, clear_keys, free_keys, make_keys
from tk_spacy.selection.corpus import MAX_FEATURES

cdef enum:
    NO_SLOT = -1

assert MAX_FEATURES == 1 << FEATURE_BITS


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


cdef void walk_arc(const Slots *slots, const Arc *arc, Step step, void *context) noexcept nogil:
    """Every pattern of an arc, depth first."""
    if slots.of_feature == NULL:
        extend_set(arc.ids, arc.n, 0, NOWHERE, 0, step, context)
    else:
        extend_slots(slots, arc.ids, arc.n, 0, NO_SLOT, NOWHERE, 0, step, context)


cdef void extend_set(
    const int32_t *ids, int32_t n, int32_t start, int64_t node, int order, Step step, void *context
) noexcept nogil:
    """By any feature from `start` on."""
    cdef int32_t i
    cdef int64_t child
    for i in range(start, n):
        child = step(context, node, <uint64_t>ids[i], order)
        if child != NOWHERE:
            extend_set(ids, n, i + 1, child, order + 1, step, context)


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
    const Lists *lists, const Tree *tree, Reach *reach, Step step, void *context
) noexcept nogil:
    """Every pattern of a tree, depth first, whose top word is each of its words in turn."""
    cdef int32_t top, path[MAX_DEPTH]
    for top in range(tree.n + 1):
        path[0] = top
        extend_tree(lists, tree, reach, path, 0, NOWHERE, 0, False, step, context)


cdef void extend_tree(
    const Lists *lists, const Tree *tree, Reach *reach, const int32_t *path, int depth,
    int64_t node, int order, bint marked, Step step, void *context,
) noexcept nogil:
    """path: the words from the top to the last that joined, path[depth]."""
    cdef int32_t word
    cdef int i
    if depth + 1 < MAX_DEPTH:
        word = tree.first_child[path[depth]]
        while word:
            extend_by(lists, tree, reach, path, depth, word, node, order, marked, step, context)
            word = tree.next_sibling[word]
    for i in range(1, depth + 1):
        word = tree.next_sibling[path[i]]
        if word:
            extend_by(lists, tree, reach, path, i - 1, word, node, order, marked, step, context)


cdef void extend_by(
    const Lists *lists, const Tree *tree, Reach *reach, const int32_t *path, int depth,
    int32_t word, int64_t node, int order, bint marked, Step step, void *context,
) noexcept nogil:
    """By the arc into a word that hangs on path[depth]."""
    cdef int32_t longer[MAX_DEPTH]
    cdef Arc arc
    cdef int64_t child
    cdef int i
    cdef bint copied = False
    if reach != NULL:
        marked = marked or reach.marked[word]
        if not marked and not reaches(reach, path, depth, word, order + 1):
            return
    get_arc(lists, tree.first_arc + tree.members[word - 1], &arc)
    for i in range(arc.n):
        if reach != NULL:
            reach.has_marked = marked
        child = step(context, node, <uint64_t>depth << FEATURE_BITS | <uint64_t>arc.ids[i], order)
        if child == NOWHERE:
            continue
        if not copied:
            lengthen(longer, path, depth, word)
            copied = True
        extend_tree(lists, tree, reach, longer, depth + 1, child, order + 1, marked, step, context)
