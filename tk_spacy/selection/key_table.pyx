"""A table that numbers keys of 64 bits in the order in which they come, for compiled loops."""

from cython cimport final
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_starts

MOST = (1 << 31) - 2


@final
cdef class KeyTable:
    """Numbers 0, 1, ... of keys; a key is not 0.

    Reading (`find`) may run in several threads, adding in one alone.
    """

    def __cinit__(self):
        self.mask = 255
        self.keys = <uint64_t *>calloc(self.mask + 1, sizeof(uint64_t))
        self.numbers = <int32_t *>malloc((self.mask + 1) * sizeof(int32_t))
        if self.keys == NULL or self.numbers == NULL:
            raise MemoryError("no memory for a table of keys")

    def __dealloc__(self):
        free(self.keys)
        free(self.numbers)

    def __len__(self):
        return self.n

    cdef int32_t add(self, uint64_t key) except? -2 nogil:
        """The number of a key, a new one where it was not there.  Raises MemoryError."""
        cdef uint64_t i
        if 2 * <uint64_t>self.n > self.mask:
            self.grow()
        i = key_hash(key) & self.mask
        while self.keys[i] != 0:
            if self.keys[i] == key:
                return self.numbers[i]
            i = (i + 1) & self.mask
        self.keys[i] = key
        self.numbers[i] = <int32_t>self.n
        self.n += 1
        return <int32_t>(self.n - 1)

    cdef int grow(self) except -1 nogil:
        cdef uint64_t old_mask = self.mask, i, j, mask = 2 * self.mask + 1
        cdef uint64_t *keys
        cdef int32_t *numbers
        if <Py_ssize_t>mask > 2 * MOST_:
            with gil:
                raise MemoryError(f"a table of keys holds {MOST} at most")
        keys = <uint64_t *>calloc(mask + 1, sizeof(uint64_t))
        numbers = <int32_t *>malloc((mask + 1) * sizeof(int32_t))
        if keys == NULL or numbers == NULL:
            free(keys)
            free(numbers)
            with gil:
                raise MemoryError(f"no memory for a table of {mask + 1} keys")
        for i in range(old_mask + 1):
            if self.keys[i] != 0:
                j = key_hash(self.keys[i]) & mask
                while keys[j] != 0:
                    j = (j + 1) & mask
                keys[j] = self.keys[i]
                numbers[j] = self.numbers[i]
        free(self.keys)
        free(self.numbers)
        self.keys, self.numbers, self.mask = keys, numbers, mask
        return 0

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
            out[i] = self.add(given[i])
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
                out[i] = -1 if given[i] == 0 else self.find(given[i])
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
                    number = self.find(given[i])
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


cdef Py_ssize_t MOST_ = MOST
