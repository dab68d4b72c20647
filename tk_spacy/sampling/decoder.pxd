from libc.stdint cimport int32_t

from tk_spacy.sampling.lattice cimport Buffer, Lattice, Model
from tk_spacy.sampling.search cimport Search


cdef struct Workspace:
    # The memory of one thread.
    Lattice lattice
    Search search
    Buffer order_memory


cdef class Scorer:
    cdef Model model
    cdef readonly object weights, pruner, places
