# Scores of parts by hashed features (see scores.pyx).

from libc.stdint cimport int32_t, uint32_t, uint64_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.projective.arcs cimport Arcs
from tk_spacy.parsers.projective.chart cimport Parts
from tk_spacy.parsers.sampling.search.structs cimport Buffer


cdef struct Model:
    # What a sentence is parsed with; nothing here is written to.
    const float *weights     # [mask + 1]
    uint64_t mask
    const float *pruner      # [pruner_mask + 1]
    uint64_t pruner_mask
    int max_heads            # heads a word keeps at most
    double least             # marginal of a head kept, as a share of the word's best one's
    int morph_end


cdef struct PartScores:
    Parts parts
    float *arcs              # [n_arcs]
    float *siblings          # of one head and side
    uint32_t *ids            # features of the part at hand
    Buffer part_memory, id_memory


cdef int score_parts(
    PartScores *s, const Arcs *g, const Words *x, const Model *model, const int32_t *gold,
    double cost,
) noexcept nogil
cdef uint32_t *room_for_ids(Buffer *memory, int morph_end) noexcept nogil
cdef int arc_ids(const Words *x, uint64_t mask, uint32_t *ids, int h, int m) noexcept nogil
cdef int part_ids(
    const Words *x, uint64_t mask, uint32_t *ids, int kind, int g, int h, int t, int s, int m
) noexcept nogil
cdef double score_of_tree(
    const Words *x, const Model *model, uint32_t *ids, const int32_t *heads, const int32_t *nearer
) noexcept nogil
cdef double score_in_list(
    const Arcs *g, const Parts *parts, const int32_t *heads, const int32_t *nearer
) noexcept nogil
cdef void release_scores(PartScores *s) noexcept nogil
