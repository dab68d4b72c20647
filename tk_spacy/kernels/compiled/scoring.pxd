# Compiled support parts (see scoring.pyx).

from libc.stdint cimport int32_t, uint8_t

from tk_spacy.kernels.compiled.blocks cimport BlockView
from tk_spacy.kernels.compiled.row_cache cimport RowKeeper


cdef class Runs:
    cdef int n_nodes, width, n_singles
    cdef bint has_pairs
    cdef Py_ssize_t n_runs, n_parts, n_rows, n_pairs
    cdef int32_t[:, :, ::1] kept, rest
    cdef int32_t[:, ::1] number
    cdef int32_t[::1] slots, rows, local, first_parts, first_rows
    cdef int32_t[::1] first_pairs, pair_parts, distances, next_pairs, row_pairs
    cdef int32_t[::1] last_parts, next_parts

    cdef bint add(
        self, RowKeeper keeper, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
        const int32_t *part, const int32_t *node_columns,
    ) except -1
    cdef void _pair(self, int32_t distance, int32_t head, int32_t arc) noexcept
    cdef int end(self) except -1


cdef class CompiledParts:
    cdef readonly list blocks
    cdef readonly RowKeeper keeper
    cdef readonly object groups, kinds
    cdef int32_t[::1] slot_kinds, skips, node_columns
    cdef int n_nodes, n_edges
    cdef bint short_products

    cdef Py_ssize_t _add_some(
        self, list blocks, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles,
        const int32_t[:, ::1] parts, double[::1] out, Py_ssize_t start, Py_ssize_t most,
        int n_threads,
    ) except -1
    cdef int fill(self, list blocks, int n_threads) except -1
    cdef int _score(
        self, list blocks, Runs runs, const int32_t[:, ::1] parts, double[:, ::1] sums,
        int n_threads,
    ) except -1
    cdef void _score_run(
        self, const BlockView *block, Runs runs, Py_ssize_t run, const int32_t[:, ::1] parts,
        double *sums, uint8_t *rows,
    ) noexcept nogil


cdef object views_of(list blocks)
cdef int check_encoded(groups, ids, singles) except -1
