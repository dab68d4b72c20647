# A spectral Bloom filter: how often keys came, up to a few, in little memory.
#
# Source: Cohen and Matias 2003 (minimal increase), as Qian and Liu 2015 use it in section 4.2: of a
# key's m counters only the lowest are raised, and the lowest is an upper bound of how often the key
# came.  Counters have 2 bits.  Ours takes the m places from two hashes of 64 bits (Kirsch and
# Mitzenmacher 2006) where the paper takes them from SHA-1.

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from tk_spacy.selection.key_table cimport key_hash

cdef enum:
    HASHES = 5
    MOST_COUNT = 3


cdef struct Bloom:
    uint8_t *counters       # four a byte
    uint64_t mask           # of a counter's number


cdef inline int make_bloom(Bloom *bloom, uint64_t n_bytes) noexcept nogil:
    """n_bytes: a power of two.  Returns 1 where there is no memory."""
    bloom.mask = 4 * n_bytes - 1
    bloom.counters = <uint8_t *>calloc(n_bytes, 1)
    return bloom.counters == NULL


cdef inline void free_bloom(Bloom *bloom) noexcept nogil:
    free(bloom.counters)
    bloom.counters = NULL


cdef inline void clear_bloom(Bloom *bloom) noexcept nogil:
    memset(bloom.counters, 0, (bloom.mask + 1) / 4)


cdef inline bint came_often(Bloom *bloom, uint64_t key, int most) noexcept nogil:
    """Whether a key may have come `most` times before; if not, counts it.  most: 0 to 3."""
    cdef uint64_t first = key_hash(key), second = key_hash(first ^ key) | 1
    cdef uint64_t places[HASHES]
    cdef int counts[HASHES]
    cdef int i, lowest = MOST_COUNT
    for i in range(HASHES):
        places[i] = (first + <uint64_t>i * second) & bloom.mask
        counts[i] = bloom.counters[places[i] >> 2] >> (2 * (places[i] & 3)) & 3
        lowest = min(lowest, counts[i])
    if lowest >= most:
        return True
    for i in range(HASHES):
        # Anew, as two of the places may be one.
        if (bloom.counters[places[i] >> 2] >> (2 * (places[i] & 3)) & 3) == lowest:
            bloom.counters[places[i] >> 2] += <uint8_t>(1 << 2 * (places[i] & 3))
    return False
