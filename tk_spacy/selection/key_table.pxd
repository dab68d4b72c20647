# A table that numbers keys of 64 bits in the order in which they come (see key_table.pyx).

from cython cimport final
from libc.stdint cimport int32_t, uint64_t


cdef struct Keys:
    uint64_t *keys          # 0 where a cell is empty
    int32_t *numbers
    uint64_t mask
    Py_ssize_t n


cdef int make_keys(Keys *table) noexcept nogil      # 1 where there is no memory
cdef void free_keys(Keys *table) noexcept nogil
cdef void clear_keys(Keys *table) noexcept nogil
# The number of a key, a new one where it was not there; -1 where there is no memory.
cdef int32_t add_key(Keys *table, uint64_t key) noexcept nogil


cdef inline uint64_t key_hash(uint64_t key) noexcept nogil:
    """All bits of a key mixed (the finalizer of splitmix64)."""
    key = (key ^ (key >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    key = (key ^ (key >> 27)) * <uint64_t>0x94D049BB133111EB
    return key ^ (key >> 31)


cdef inline int32_t find_key(const Keys *table, uint64_t key) noexcept nogil:
    """The number of a key, -1 where it is not there."""
    cdef uint64_t i = key_hash(key) & table.mask
    while table.keys[i] != 0:
        if table.keys[i] == key:
            return table.numbers[i]
        i = (i + 1) & table.mask
    return -1


@final
cdef class KeyTable:
    cdef Keys table
