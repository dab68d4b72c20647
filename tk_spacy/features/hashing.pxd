# The mixing of values into 64-bit keys, from which features and trees are numbered.

from libc.stdint cimport uint64_t


cdef inline uint64_t mix(uint64_t value, uint64_t more) noexcept nogil:
    value = (value ^ more) * <uint64_t>0x9E3779B97F4A7C15ULL
    return value ^ (value >> 32)
