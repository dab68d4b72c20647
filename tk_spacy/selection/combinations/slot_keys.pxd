# The key of a slot's property with its value (see slot_space.py).

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef enum:
    LABEL = 0
    DISTANCE = 1
    LENGTH = 2


cdef inline uint64_t slot_key(uint64_t slot, uint64_t number, int32_t value) noexcept nogil:
    return (slot + 1) << 48 | number << 32 | <uint32_t>value


cdef int node_keys(const int32_t *node, Py_ssize_t n, uint64_t slot, uint64_t *out) noexcept nogil
cdef int edge_keys(int32_t label, int32_t distance, uint64_t slot, uint64_t *out) noexcept nogil
