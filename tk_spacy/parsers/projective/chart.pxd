# The best score of every span (see chart.pyx).

from libc.stdint cimport int32_t, int64_t

from tk_spacy.parsers.projective.arcs cimport Arcs
from tk_spacy.parsers.sampling.search.structs cimport Buffer


cdef struct Parts:
    # Scores of parts; a part's cell is told by `arcs`.
    float *root          # [n_arcs], of the arcs from the root, all of their parts
    float *chains        # [n_chains]: arc, sibling, grandparent and grand-sibling together
    float *triples       # [n_triples]


cdef struct Chart:
    double *spans        # C: [n_arcs * (n + 1)], by arc and end
    double *ends         # E: [n_ends]
    double *chains       # I: [n_chains]
    double *gaps         # S: [n_pairs]
    Buffer memory


cdef int fill(Chart *chart, const Arcs *g, const Parts *parts) noexcept nogil
cdef void release_chart(Chart *chart) noexcept nogil
