# What a thread parses sentences with (see decoder.pyx).

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
