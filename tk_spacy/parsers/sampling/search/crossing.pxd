# Arcs that cross others: which do, and what that scores (see crossing.pyx).

from libc.stdint cimport int32_t, uint32_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parsers.sampling.search.structs cimport Model

cdef int32_t crossing_score(
    const Model *model, const Words *x, int h, int m, int label, uint32_t *ids
) noexcept nogil


cdef inline bint crosses(int low, int high, int other_low, int other_high) noexcept nogil:
    """Whether two arcs, each from low to high, cross."""
    return ((low < other_low) & (other_low < high) & (high < other_high)) | (
        (other_low < low) & (low < other_high) & (other_high < high)
    )
