# The k best trees of a chart (see lists.pyx).

from libc.stdint cimport int32_t, int64_t, uint64_t

from tk_spacy.parsers.projective.arcs cimport Arcs
from tk_spacy.parsers.projective.chart cimport Chart, Parts
from tk_spacy.parsers.sampling.search.structs cimport Buffer


cdef struct Item:
    # A span of the chart, or the whole sentence.
    int kind
    int32_t x            # an arc; an arc and a side; or a head and a side
    int32_t i            # the end of C, otherwise the rank of the last modifier
    int32_t j            # the rank of the one before


cdef struct Way:
    # One way of building an item: a choice, and which of the trees of both spans below.
    double score
    int32_t choice
    int32_t left
    int32_t right


cdef struct Ways:
    int size
    int room
    Way *cells


cdef struct Node:
    Item item
    Ways found           # best first
    Ways open            # a heap of those that may be next
    bint pushed          # whether what follows from the last one found is in the heap


cdef struct Lists:
    const Arcs *g
    const Chart *chart
    const Parts *parts
    Node *nodes
    int n_nodes
    int room
    uint64_t *keys       # open addressing; 0 is free
    int32_t *places
    uint64_t n_slots     # a power of two
    bint failed          # out of memory


cdef int next_tree(Lists *x, int rank, int32_t *heads) noexcept nogil
cdef int begin_lists(
    Lists *x, const Arcs *g, const Chart *chart, const Parts *parts
) noexcept nogil
cdef void release_lists(Lists *x) noexcept nogil
