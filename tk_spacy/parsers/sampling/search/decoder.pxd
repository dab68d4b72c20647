from libc.stdint cimport int32_t, int64_t

from tk_spacy.features.templates cimport Words
from tk_spacy.parallel.stopping cimport Watch
from tk_spacy.parsers.sampling.search.structs cimport Buffer, Lattice, Model, Search


cdef struct Workspace:
    # The memory of one thread.
    Lattice lattice
    Search search
    Buffer order_memory
    int32_t *order          # [pool's size], its trees by `choose`, best first
    int32_t *use            # [pool's size], which of them are the list


cdef enum:
    ROOM = 8             # trees kept for each that is asked for
    LEAST_ROOM = 16


cdef class Scorer:
    cdef Model model
    cdef readonly object weights, pruner, places


cdef int prune(Workspace *space, const Model *model, const Words *x) noexcept nogil
cdef int keep(
    Workspace *space, const Model *model, const Words *x, const int32_t *kept_head,
    const int64_t *kept_first,
) noexcept nogil
cdef int choose(Workspace *space, const Model *model, int k, double label_share) noexcept nogil
cdef int write_list(
    Workspace *space, int k, int32_t *heads, int32_t *labels, double *scores
) noexcept nogil
cdef void watch_spaces(Workspace *spaces, int n, Watch *watch) noexcept nogil
cdef void free_spaces(Workspace *spaces, int n) noexcept nogil
