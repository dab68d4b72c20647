# A finished set of patterns with its index (see pattern_table.pyx).

from tk_spacy.selection.matching cimport Index


cdef class PatternTable:
    cdef Index index
    cdef readonly bint trees
    # Of each pattern by its number, as narrow as may be: there may be many millions.
    cdef object _parents
    cdef object _steps
    cdef object _orders
    cdef object _numbers        # of the pattern at each position of the index
    cdef object _kept

    cdef int _make_index(self, int highest) except -1
