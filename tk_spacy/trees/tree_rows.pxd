from cython cimport final
from libc.stdint cimport int32_t


@final
cdef class CheckedTrees:
    cdef const int32_t[:, ::1] rows
    cdef readonly object heads
