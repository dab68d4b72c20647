# Which rows the blocks of a support keep (see row_cache.pyx).

from libc.stdint cimport int32_t, int64_t, uint32_t

cdef enum:
    NO_PLACE = -1


cdef class RowKeeper:
    cdef readonly Py_ssize_t limit
    cdef readonly int n_slots, n_groups, n_singles, width
    cdef int64_t batch
    cdef Py_ssize_t hand, used
    cdef object groups
    cdef list places, frequent
    # For each node slot, its groups and its single properties: the places by number, as pointers;
    # and the frequent values of the single ones.
    cdef size_t[::1] table, value_table
    cdef int32_t[::1] n_values
    cdef int32_t[:, ::1] owners
    cdef int64_t[::1] stamps
    cdef uint32_t[::1] generations

    cdef bint want(
        self, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles, Py_ssize_t row, int slot,
        int32_t *kept, int32_t *rest,
    ) except -1
    cdef int32_t _place(self, int slot, int kind, int32_t name) noexcept
