from libc.stdint cimport int32_t

cdef struct OracleScratch:
    int32_t *memory
    int n

cdef int derive(
    OracleScratch *scratch, const int32_t *heads, int n, int32_t *moves, int room
) noexcept nogil
cdef void release_oracle(OracleScratch *scratch) noexcept nogil
