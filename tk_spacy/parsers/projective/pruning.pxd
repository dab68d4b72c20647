# Few heads for each word (see pruning.pyx).

from libc.stdint cimport int32_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.projective.arcs cimport Arcs
from tk_spacy.parsers.projective.scores cimport Model
from tk_spacy.parsers.sampling.search.structs cimport Buffer


cdef struct Pruning:
    double *scores       # [(n + 1) ** 2], of the arc from h to m at h * (n + 1) + m
    double *right        # [(n + 1) ** 2] each: i with its right modifiers up to j, and so on
    double *left
    double *to_right
    double *to_left
    double *shares       # [4 * (n + 1) ** 2], of all trees, that each of these has
    double *marginals    # [(n + 1) ** 2]
    int32_t *tree        # [n + 1], the best one
    int32_t *first       # [n + 2], of the heads kept
    int32_t *kept
    Buffer table_memory, word_memory


cdef int prune(
    Pruning *p, Arcs *g, const Words *x, const Model *model, const int32_t *gold
) noexcept nogil
cdef int marginals_of(Pruning *p, int n) noexcept nogil
cdef int room_for_pruning(Pruning *p, int n, int max_heads) noexcept nogil
cdef void release_pruning(Pruning *p) noexcept nogil
