# The violations of single trees, for compiled code (see violations.pyx).

from libc.stdint cimport int32_t, uint8_t, uint64_t

cdef enum:
    MOST = 64            # relations, and kinds


cdef struct Tables:
    # For each relation: kinds of violations, NO_KIND where it has none, and what a leaf may have.
    int leaf[MOST]
    uint64_t allowed[MOST]
    int left_headed[MOST]
    int of_tags[MOST]
    # Kinds.
    int roots
    int subjects
    int objects
    int oblique
    int punct_causes
    int punct_is
    int punct_tag
    int fixed_tag
    # Sets of relations.
    uint64_t of_possessives
    uint64_t nominal
    uint64_t of_predicates
    # Relations.
    int advmod
    int det
    int fixed
    int goeswith
    int obj
    int obl
    int punct
    int root


cdef class Rules:
    cdef Tables tables


# The violations of one tree, added to `at` and `blamed`.
# head, relation: [n + 1], from word 1 on, the head -1 for none.  subjects, objects, children:
# room, [n + 1].  misfits, flags, at, blamed: [n], from word 1 on.
cdef void find_in_tree(
    int32_t *head, int32_t *relation, int32_t *subjects, int32_t *objects, uint64_t *children,
    int n, const uint64_t *misfits, const uint8_t *flags, const Tables *rules, uint64_t *at,
    uint64_t *blamed,
) noexcept nogil
