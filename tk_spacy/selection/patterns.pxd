# Patterns of basic features as a trie, and the walks over those that occur (see patterns.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from tk_spacy.selection.corpus cimport Arc, Corpus, Lists, Slots, Tree
from tk_spacy.selection.key_table cimport Keys, find_key, key_hash

cdef enum:
    NOWHERE = -1            # the parent of patterns of one feature; no node
    FEATURE_BITS = 25
    MAX_DEPTH = 127         # of a tree pattern's words below each other; more are not looked at


cdef struct Patterns:
    # Node i extends the node `parent` by a step: in the space of arcs a basic feature whose number
    # is higher than those before it, in the space of trees a feature of a further arc and where it
    # hangs.  Parents come before their children.
    Keys table
    uint64_t *keys
    uint8_t *orders         # number of basic features
    Py_ssize_t room


cdef struct Index:
    # A finished set of patterns, to look things up in fast: most of what is asked for is not there.
    const Patterns *patterns
    const int32_t *firsts       # the node of each feature alone, NOWHERE for none; so many features
    int64_t n_firsts
    const int64_t *starts       # node i has the children from starts[i] on, until starts[i + 1]
    const uint32_t *steps       # the steps to these, ascending
    const uint64_t *bits        # one bit for each of the nodes' keys, by their hash
    uint64_t mask


# What a walk does with each step that occurs: returns the node to go on from, or NOWHERE.
# order: number of features before the step.
ctypedef int64_t (*Step)(void *context, int64_t node, uint64_t step, int order) noexcept nogil


cdef struct Reach:
    # Which occurrences of tree patterns a walk passes: those with a marked arc, and those that can
    # still get one before they have max_order features.
    const uint8_t *marked       # of the arc into each word
    const int32_t *below        # arcs from a word down to the nearest marked one, that one too
    int max_order
    bint has_marked             # OUT: whether the occurrence that is stepped to has a marked arc


cdef inline uint64_t pattern_key(int64_t parent, uint64_t step) noexcept nogil:
    return <uint64_t>(parent + 2) << 32 | step


cdef inline int64_t find_pattern(
    const Patterns *patterns, int64_t parent, uint64_t step
) noexcept nogil:
    """The number of a node, NOWHERE where there is none."""
    return find_key(&patterns.table, pattern_key(parent, step))


cdef inline int64_t look_up(const Index *index, int64_t parent, uint64_t step) noexcept nogil:
    """As find_pattern."""
    cdef uint64_t key, bit
    if parent == NOWHERE and step < <uint64_t>index.n_firsts:
        return index.firsts[step]
    key = pattern_key(parent, step)
    bit = key_hash(key) >> 24 & index.mask
    if not index.bits[bit >> 6] >> (bit & 63) & 1:
        return NOWHERE
    return find_key(&index.patterns.table, key)


cdef inline bint is_inner(const Index *index, int64_t node) noexcept nogil:
    """Whether a node has children."""
    return index.starts[node] < index.starts[node + 1]


cdef inline bint may_weigh(const Slots *slots, uint64_t step) noexcept nogil:
    """Whether a pattern, given by its last step or its key, may have a weight: if complete."""
    return slots.of_feature == NULL or slots.completes[
        slots.of_feature[step & ((1 << FEATURE_BITS) - 1)]
    ]


cdef inline int64_t parent_of(uint64_t key) noexcept nogil:
    return <int64_t>(key >> 32) - 2


cdef int make_patterns(Patterns *patterns) noexcept nogil       # 1 where there is no memory
cdef void free_patterns(Patterns *patterns) noexcept nogil
# The number of a node, a new one where it was not there; NOWHERE where there is no memory.
cdef int64_t add_pattern(
    Patterns *patterns, int64_t parent, uint64_t step, int order
) noexcept nogil
cdef void cut_patterns(Patterns *patterns, Py_ssize_t n) noexcept nogil

# Patterns of one arc, or part; slots: those of its features.  index: of the patterns that the walk
# is for, to pass over other steps; NULL where all that occurs is asked for.
cdef void walk_arc(
    const Slots *slots, const Arc *arc, const Index *index, Step step, void *context
) noexcept nogil
# reach: NULL for all occurrences.
cdef void walk_tree(
    const Lists *lists, const Tree *tree, Reach *reach, const Index *index, Step step, void *context
) noexcept nogil


# What scores are summed of: the distinct arcs of a list, or the nodes of its forest (`trees`), each
# walked through once.  After each `end` is called; visit_units returns 1 where there is no memory.
ctypedef void (*End)(void *context, int64_t unit) noexcept nogil
cdef int visit_units(
    const Lists *lists, Py_ssize_t at, bint trees, const Index *index, Reach *reach, Step step,
    End end, void *context,
) noexcept nogil
# Writes for each candidate the sum of its units' values.
cdef void sum_units(
    const Lists *lists, Py_ssize_t at, bint trees, const double *values, double *out
) noexcept nogil


cdef inline int64_t n_units(const Lists *lists, Py_ssize_t at, bint trees) noexcept nogil:
    if trees:
        return lists.first_top[at + 1] - lists.first_top[at]
    return lists.first_arc[at + 1] - lists.first_arc[at]


cdef inline const int32_t *units_of(
    const Lists *lists, Py_ssize_t at, int32_t row, bint trees, int32_t *n
) noexcept nogil:
    """The units of a candidate, -1 for none; their number is written to n."""
    cdef int32_t words = lists.n[at]
    if trees:
        n[0] = words + 1
        return lists.nodes + lists.first_node[at] + <int64_t>row * (words + 1)
    n[0] = words
    return lists.members + lists.first_member[at] + <int64_t>row * words


cdef class PatternTable:
    cdef Patterns patterns
    cdef Index index
    cdef readonly bint trees
    cdef object _kept

    cdef int _make_index(
        self, const int64_t[::1] parents, const int64_t[::1] steps
    ) except -1
    cdef int highest        # number of features of the longest pattern
