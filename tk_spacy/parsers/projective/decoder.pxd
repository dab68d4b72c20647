# What a thread parses sentences with (see decoder.pyx).

from libc.stdint cimport int32_t

from tk_spacy.parsers.projective.arcs cimport Arcs
from tk_spacy.parsers.projective.chart cimport Chart
from tk_spacy.parsers.projective.lists cimport Lists
from tk_spacy.parsers.projective.pruning cimport Pruning
from tk_spacy.parsers.projective.scores cimport Model, PartScores
from tk_spacy.parsers.sampling.search.structs cimport Buffer


cdef class Scorer:
    cdef Model model
    cdef object _arrays


cdef struct Workspace:
    Arcs arcs
    PartScores scores
    Chart chart
    Lists lists
    Pruning pruning
    Buffer tree_memory


cdef Workspace *new_spaces(int count) except NULL
cdef void free_spaces(Workspace *spaces, int count) noexcept
cdef int write_list(
    Workspace *space, int k, int32_t *heads, double *scores, int32_t *count
) noexcept nogil
