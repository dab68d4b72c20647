# A finished set of patterns with its index (see pattern_table.pyx).

from libc.stdint cimport int64_t

from tk_spacy.selection.matching cimport Index
from tk_spacy.selection.patterns cimport Patterns


cdef class PatternTable:
    cdef Patterns patterns
    cdef Index index
    cdef readonly bint trees
    cdef readonly object order
    cdef object _kept

    cdef int _make_index(
        self, const int64_t[::1] parents, const int64_t[::1] steps, int highest
    ) except -1
