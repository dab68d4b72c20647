from cython cimport final
from libc.stdint cimport int32_t, uint64_t


@final
cdef class KeyTable:
    cdef uint64_t *keys     # 0 where a cell is empty
    cdef int32_t *numbers
    cdef uint64_t mask
    cdef readonly Py_ssize_t n
    cdef int32_t add(self, uint64_t key) except? -2 nogil
    cdef int grow(self) except -1 nogil

    # The number of a key, -1 where it is not there.
    cdef inline int32_t find(self, uint64_t key) noexcept nogil:
        cdef uint64_t i = key_hash(key) & self.mask
        while self.keys[i] != 0:
            if self.keys[i] == key:
                return self.numbers[i]
            i = (i + 1) & self.mask
        return -1


cdef inline uint64_t key_hash(uint64_t key) noexcept nogil:
    """All bits of a key mixed (the finalizer of splitmix64)."""
    key = (key ^ (key >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    key = (key ^ (key >> 27)) * <uint64_t>0x94D049BB133111EB
    return key ^ (key >> 31)
