"""A table that numbers keys of 64 bits in the order in which they come, for compiled loops."""

from cython cimport final
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_starts

cdef Py_ssize_t MOST = (1 << 31) - 2    # keys that can be numbered
cdef uint64_t FIRST_MASK = 255


cdef int make_keys(Keys *table) noexcept nogil:
    table.n = 0
    table.mask = FIRST_MASK
    table.keys = <uint64_t *>calloc(FIRST_MASK + 1, sizeof(uint64_t))
    table.numbers = <int32_t *>malloc((FIRST_MASK + 1) * sizeof(int32_t))
    return table.keys == NULL or table.numbers == NULL


cdef void free_keys(Keys *table) noexcept nogil:
    free(table.keys)
    free(table.numbers)
    table.keys, table.numbers = NULL, NULL


cdef void clear_keys(Keys *table) noexcept nogil:
    memset(table.keys, 0, (table.mask + 1) * sizeof(uint64_t))
    table.n = 0


cdef int32_t add_key(Keys *table, uint64_t key) noexcept nogil:
    cdef uint64_t i
    if 2 * <uint64_t>table.n > table.mask and grow(table):
        return -1
    i = key_hash(key) & table.mask
    while table.keys[i] != 0:
        if table.keys[i] == key:
            return table.numbers[i]
        i = (i + 1) & table.mask
    table.keys[i] = key
    table.numbers[i] = <int32_t>table.n
    table.n += 1
    return <int32_t>(table.n - 1)


cdef int grow(Keys *table) noexcept nogil:
    """Doubles a table; returns 1 where there is no memory, or no further number."""
    cdef uint64_t i, j, mask = 2 * table.mask + 1
    cdef uint64_t *keys
    cdef int32_t *numbers
    if table.n >= MOST:
        return 1
    keys = <uint64_t *>calloc(mask + 1, sizeof(uint64_t))
    numbers = <int32_t *>malloc((mask + 1) * sizeof(int32_t))
    if keys == NULL or numbers == NULL:
        free(keys)
        free(numbers)
        return 1
    for i in range(table.mask + 1):
        if table.keys[i] != 0:
            j = key_hash(table.keys[i]) & mask
            while keys[j] != 0:
                j = (j + 1) & mask
            keys[j] = table.keys[i]
            numbers[j] = table.numbers[i]
    free_keys(table)
    table.keys, table.numbers, table.mask = keys, numbers, mask
    return 0


@final
cdef class KeyTable:
    """Numbers 0, 1, ... of keys; a key is not 0."""

    def __cinit__(self):
        if make_keys(&self.table):
            raise MemoryError("no memory for a table of keys")

    def __dealloc__(self):
        free_keys(&self.table)

    def __len__(self):
        return self.table.n

    def add_all(self, keys):
        """Numbers keys in their order.  keys: uint64[_], none 0.  Returns their numbers, int32[_].

        Raises ValueError for a key that is 0, MemoryError where there is no room.
        """
        keys = checked("keys", keys, np.uint64, None)
        numbers = np.empty(len(keys), dtype=np.int32)
        cdef const uint64_t[::1] given = keys
        cdef int32_t[::1] out = numbers
        cdef Py_ssize_t i
        if not keys.all():
            raise ValueError("a key is 0, expected other numbers")
        for i in range(given.shape[0]):
            out[i] = add_key(&self.table, given[i])
            if out[i] < 0:
                raise MemoryError(f"no memory for a table of more than {len(self)} keys")
        return numbers

    def find_all(self, keys):
        """The numbers of keys, -1 where one is not there: int32[_]."""
        keys = checked("keys", keys, np.uint64, None)
        numbers = np.empty(len(keys), dtype=np.int32)
        cdef const uint64_t[::1] given = keys
        cdef int32_t[::1] out = numbers
        cdef Py_ssize_t i
        with nogil:
            for i in range(given.shape[0]):
                out[i] = -1 if given[i] == 0 else find_key(&self.table, given[i])
        return numbers

    def known(self, starts, keys):
        """The keys of a ragged array that are here, as ascending numbers, and its new starts.

        starts: int32[r + 1].  keys: uint64[_].  Returns (starts, numbers): int32[r + 1], int32[_].
        Raises ValueError for starts that do not fit.
        """
        starts = checked("starts", starts, np.int32, None)
        keys = checked("keys", keys, np.uint64, None)
        cdef const int32_t[::1] begins = starts
        cdef const uint64_t[::1] given = keys
        check_starts(begins, given.shape[0], "starts")
        new_starts = np.zeros(len(starts), dtype=np.int32)
        numbers = np.empty(len(keys), dtype=np.int32)
        cdef int32_t[::1] new_begins = new_starts, out = numbers
        cdef Py_ssize_t row, i, j, n = 0, first
        cdef int32_t number
        with nogil:
            for row in range(begins.shape[0] - 1):
                first = n
                for i in range(begins[row], begins[row + 1]):
                    number = find_key(&self.table, given[i])
                    if number < 0:
                        continue
                    j = n
                    while j > first and out[j - 1] > number:
                        out[j] = out[j - 1]
                        j -= 1
                    out[j] = number
                    n += 1
                new_begins[row + 1] = <int32_t>n
        return new_starts, numbers[:n].copy()
