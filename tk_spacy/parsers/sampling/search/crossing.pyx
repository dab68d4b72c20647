"""What an arc scores for each arc that it crosses."""

from libc.math cimport rint
from libc.stdint cimport int32_t, uint32_t

from tk_spacy.features.templates cimport Sink, Words, id_sink, listed_score
from tk_spacy.parsers.sampling.search.structs cimport CROSSING_UNIT, Model
from tk_spacy.parsers.sampling.search.templates cimport crossing_templates


cdef int32_t crossing_score(
    const Model *model, const Words *x, int h, int m, int label, uint32_t *ids
) noexcept nogil:
    """What an arc scores for each arc that it crosses, in units."""
    cdef double total
    cdef Sink sink
    if not model.crossing:
        return 0
    sink = id_sink(ids, model.mask)
    crossing_templates(&sink, x, h, m, label)
    total = listed_score(&sink, model.weights)
    return <int32_t>rint(max(-1000.0, min(1000.0, total)) * CROSSING_UNIT)
