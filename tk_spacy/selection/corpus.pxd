# Candidate lists of many sentences as flat arrays, for compiled loops (see corpus.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    ARC_WORDS = 4       # of 64 bits, in which an arc has one of each of its features


cdef struct Slots:
    # Where an arc's features stand in slots, and a pattern takes at most one of each, in order.
    const int32_t *of_feature   # NULL where there are no slots
    const int32_t *after        # the last slot before each one that a pattern needs, -1 for none
    const uint8_t *completes    # whether a pattern that ends in a slot has all that it needs


cdef struct Lists:
    Slots slots
    # Arc a has the features ids[arc_starts[a]:arc_starts[a + 1]], in ascending order.
    const int64_t *arc_starts
    const int32_t *ids
    const uint64_t *bits    # ARC_WORDS of each arc
    # List l has k[l] trees of n[l] words and arcs from first_arc[l] on.  The arcs into the words of
    # its tree j begin at members[first_member[l] + j * n[l]], numbered from first_arc[l], or -1
    # for none; the tables of its words, the root among them, at [first_node[l] + j * (n[l] + 1)].
    const int32_t *k
    const int32_t *n
    const int64_t *first_arc
    const int64_t *first_member
    const int64_t *first_node
    const int32_t *members
    const int32_t *first_child      # 0 where a word has none
    const int32_t *next_sibling     # the sibling to the right, 0 where there is none
    # What differs between the trees of a list; all else adds the same to the score of each.
    # Of its distinct arcs (from first_arc[l] on) and of its words (from first_mark[l] on, the root
    # too): whether some of the trees have another arc into the word, or another left sibling of it.
    const uint8_t *arc_differs
    const int64_t *first_mark
    const uint8_t *marked
    # Words with equal trees below them are one node (see kernels.forest): nodes, laid out as
    # first_child, has -1 for what all trees have.  Node i is found below words[i] of tree rows[i],
    # from first_top[l] on; so many nodes has the list.
    const int32_t *nodes
    const int64_t *first_top
    const int32_t *top_rows
    const int32_t *top_words


cdef struct Arc:
    # The features of one arc, ascending.
    const int32_t *ids
    int32_t n
    const uint64_t *bits


cdef struct Tree:
    # One tree of a list.
    int32_t n
    int64_t first_arc
    const int32_t *members
    const int32_t *first_child
    const int32_t *next_sibling


cdef class Corpus:
    cdef Lists lists
    cdef readonly Py_ssize_t n_lists
    cdef readonly int32_t n_features
    cdef readonly bint has_trees
    cdef object _kept
    cdef object _slots
    cdef list _members
    cdef int _take_slots(self, slots) except -1


cdef inline void get_tree(
    const Lists *lists, Py_ssize_t at, int32_t row, Tree *tree
) noexcept nogil:
    cdef int32_t n = lists.n[at]
    tree.n = n
    tree.first_arc = lists.first_arc[at]
    tree.members = lists.members + lists.first_member[at] + <int64_t>row * n
    tree.first_child = lists.first_child + lists.first_node[at] + <int64_t>row * (n + 1)
    tree.next_sibling = lists.next_sibling + lists.first_node[at] + <int64_t>row * (n + 1)


cdef inline void get_arc(const Lists *lists, int64_t number, Arc *arc) noexcept nogil:
    arc.ids = lists.ids + lists.arc_starts[number]
    arc.n = <int32_t>(lists.arc_starts[number + 1] - lists.arc_starts[number])
    arc.bits = lists.bits + ARC_WORDS * number


cdef inline bint has_feature(const Arc *arc, int32_t feature) noexcept nogil:
    cdef int32_t first = 0, last = arc.n, middle
    if not arc.bits[feature >> 6 & (ARC_WORDS - 1)] >> (feature & 63) & 1:
        return False
    while first < last:
        middle = (first + last) >> 1
        if arc.ids[middle] < feature:
            first = middle + 1
        else:
            last = middle
    return first < arc.n and arc.ids[first] == feature


# Writes how many arcs it is from each word down to the nearest word whose arc is marked (marked,
# below: n + 1, the root first); `most` + 1 for none.  head: room for n + 1 numbers.
cdef void spread_marks(
    const Tree *tree, const uint8_t *marked, int32_t *head, int32_t *below, int32_t most
) noexcept nogil
