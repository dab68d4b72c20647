# Contraction of a score matrix (see contraction.pyx), shared by max_tree and k_best_trees.

from libc.stdint cimport int32_t, uint8_t

from tk_spacy.parallel.stopping cimport Watch


cdef struct SpanningScratch:
    void *block                # owns what the pointers below point into
    size_t size
    Watch *watch               # whether to stop, NULL where nobody asks
    # Of the 2n - 1 supernodes: 1 to n are the words, the others contracted cycles.
    double *table              # [2n, n+1], adjusted score of the best arc from a node into each
    double *best               # [2n], adjusted score of the chosen arc, and that arc:
    int32_t *tails             # [2n]
    int32_t *entries           # [2n], the word where it ends, 0 where that is not yet known
    int32_t *parents           # [2n], the contracted cycle that holds it
    int32_t *rings             # [2n], the next one in that cycle
    int32_t *members           # [2n], one member of a contracted cycle
    int32_t *states            # [2n]
    int32_t *path              # [2n]
    int32_t *component         # [n+1], the outermost supernode that holds a node
    int32_t *tops              # [n+1], the outermost supernode that a word's arc enters
    # Of the tree whose next best one is sought:
    int32_t *children          # [n+1], the first dependent
    int32_t *siblings          # [n+1], the next dependent of the same head
    int32_t *order             # [n+1], nodes, each before its dependents
    int32_t *first             # [n+1], the place of a node in that order
    int32_t *sizes             # [n+1], nodes of its subtree, which are the places from there on
    # Of the k sets of trees:
    double *columns            # [n+1, n+1], scores by word, then head
    double *proposal_totals    # [k]
    int32_t *proposals         # [k, n+1], the best tree of a set after the one already found
    int32_t *removed           # [k], a word whose head differs in it, 0 for no such tree
    int32_t *origins           # [k], the set whose constraints it inherits
    int32_t *banned_words      # [k], and the arc that it may not have, besides
    int32_t *banned_heads      # [k]
    uint8_t *forced            # [k, n+1], whether a word keeps its head


cdef void init_spanning(SpanningScratch *scratch) noexcept nogil

cdef void free_spanning(SpanningScratch *scratch) noexcept nogil

# Room for n words and, unless k is 0, for k sets of trees; False where there is no memory.
cdef bint reserve(SpanningScratch *scratch, int n, int k) noexcept nogil

# Scores by word, then head, without the arcs that nothing may have.
cdef void transpose(const double *scores, int n, double *columns) noexcept nogil

# Choose an arc into each supernode; the table's rows 1 to n are the words' arcs.
# Returns the number of the last supernode, -1 where one has no incoming arc or it was stopped.
cdef int contract(SpanningScratch *scratch, int n, bint single_root) noexcept nogil

# The tree of the chosen arcs.  heads: int32[n+1] out.
cdef void expand(SpanningScratch *scratch, int n, int top, int32_t *heads) noexcept nogil

# The word where the best arc from a tail into a supernode ends.
cdef int arc_target(const SpanningScratch *scratch, int n, int node, int tail) noexcept nogil
