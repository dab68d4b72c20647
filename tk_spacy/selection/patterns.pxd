# Patterns of basic features as a trie, and the walks over those that occur (see patterns.pyx).

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from tk_spacy.selection.corpus cimport Arc, Lists, Slots, Tree
from tk_spacy.selection.key_table cimport Keys, find_key

cdef enum:
    NOWHERE = -1            # the parent of patterns of one feature; no node
    FEATURE_BITS = 25
    MAX_ORDER = 255         # features of a pattern
    MAX_DEPTH = 127         # of a tree pattern's words below each other; more are not looked at


cdef struct Patterns:
    # Node i extends the node `parent` by a step: in the space of arcs a basic feature whose number
    # is higher than those before it, in the space of trees a feature of a further arc and where it
    # hangs.  Parents come before their children.
    Keys table
    uint64_t *keys
    uint8_t *orders         # number of basic features
    Py_ssize_t room


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


cdef inline bint reaches(
    const Reach *reach, const int32_t *path, int depth, int32_t word, int order
) noexcept nogil:
    """Whether an occurrence that ends in a word on path[depth] may still get a marked arc."""
    cdef int32_t nearest = reach.below[word]
    cdef int i
    for i in range(depth + 1):
        nearest = min(nearest, reach.below[path[i]])
    return order + nearest <= reach.max_order


cdef inline void lengthen(
    int32_t *longer, const int32_t *path, int depth, int32_t word
) noexcept nogil:
    """Writes the path to a word on path[depth]."""
    cdef int i
    for i in range(depth + 1):
        longer[i] = path[i]
    longer[depth + 1] = word


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

# Patterns of one arc, or part; slots: those of its features.
cdef void walk_arc(const Slots *slots, const Arc *arc, Step step, void *context) noexcept nogil
# reach: NULL for all occurrences.
cdef void walk_tree(
    const Lists *lists, const Tree *tree, Reach *reach, Step step, void *context
) noexcept nogil
