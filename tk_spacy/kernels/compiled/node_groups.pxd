# Properties of nodes in groups, each distinct combination of values numbered once.

from libc.stdint cimport int32_t, uint64_t


cdef class Interner:
    cdef readonly Py_ssize_t width, size
    cdef Py_ssize_t capacity, n_slots
    cdef int32_t *values
    cdef int32_t *slots
    cdef int32_t intern(self, const int32_t *values) except -1
    cdef int _grow(self) except -1
