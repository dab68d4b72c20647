"""Which rows the blocks of a support keep, and where: bounded, the longest unused make room.

Every block keeps rows of the same combinations of properties at the same places, so one directory
serves them all.  A place's generation tells a block whether what it holds there is of the present
owner.
"""

from libc.stdint cimport int32_t

import numpy as np

from tk_spacy.utils.sorted_values cimport find_value


cdef class RowKeeper:
    """The directory of kept rows.

    groups: a NodeGroups.  n_slots: node slots of the part type.  frequent: for each node slot and
    each single property, in this order, the values whose rows are kept too, int32 ascending.
    limit: the number of places.
    """

    def __init__(self, groups, int n_slots, frequent, Py_ssize_t limit):
        n_lists = n_slots * len(groups.singles)
        if n_slots < 0 or limit < 0 or len(frequent) != n_lists:
            raise ValueError(
                f"{n_slots} slots, {limit} places and {len(frequent)} lists of values, expected "
                f"none below 0, and {n_lists} lists"
            )
        self.groups = groups
        self.n_slots = n_slots
        self.n_groups = len(groups.groups)
        self.n_singles = len(groups.singles)
        self.width = self.n_groups + self.n_singles
        self.limit = limit
        self.frequent = [np.array(values, dtype=np.int32) for values in frequent]
        self.table = np.zeros(max(n_slots * self.width, 1), dtype=np.uintp)
        self.value_table = np.zeros(max(n_slots * self.n_singles, 1), dtype=np.uintp)
        self.n_values = np.array([len(values) for values in frequent] + [0], dtype=np.int32)
        cdef int32_t[::1] values
        cdef Py_ssize_t i
        for i in range(len(self.frequent)):
            if len(self.frequent[i]):
                values = self.frequent[i]
                self.value_table[i] = <size_t>&values[0]
        self.owners = np.zeros((max(limit, 1), 3), dtype=np.int32)
        self.stamps = np.zeros(max(limit, 1), dtype=np.int64)
        self.generations = np.zeros(max(limit, 1), dtype=np.uint32)
        self.batch = 0
        self.clear()

    def clear(self):
        """Forget what is kept: the numbers of combinations are void."""
        cdef Py_ssize_t i
        self.places = [
            np.full(64 if kind < self.n_groups else max(1, len(self._values(slot, kind))),
                    NO_PLACE, dtype=np.int32)
            for slot in range(self.n_slots) for kind in range(self.width)
        ]
        self.used = self.hand = 0
        for i in range(self.generations.shape[0]):
            self.generations[i] += 1

    def _values(self, slot, kind):
        return self.frequent[slot * self.n_singles + kind - self.n_groups]

    def shrink(self, Py_ssize_t limit):
        """Give up all but the first places."""
        if limit < 0:
            raise ValueError(f"limit is {limit}, expected at least 0")
        if limit < self.limit:
            self.limit = limit
            self.clear()

    def begin(self):
        """A new batch: what is wanted from now on stays until the next one begins."""
        cdef Py_ssize_t slot, kind, size, i
        cdef int32_t[::1] places
        self.batch += 1
        for slot in range(self.n_slots):
            for kind in range(self.width):
                i = slot * self.width + kind
                size = self.groups.interners[kind].size if kind < self.n_groups else 0
                if size > len(self.places[i]):
                    grown = np.full(2 * size, NO_PLACE, dtype=np.int32)
                    grown[: len(self.places[i])] = self.places[i]
                    self.places[i] = grown
                places = self.places[i]
                self.table[i] = <size_t>&places[0]

    cdef bint want(
        self, const int32_t[:, ::1] ids, const int32_t[:, ::1] singles, Py_ssize_t row, int slot,
        int32_t *kept, int32_t *rest,
    ) except -1:
        """Whether there is room for the kept rows of a word in a slot.

        kept: int32[width], OUT, the places.  rest: int32[n_singles], OUT, the values of single
        properties that are not kept.
        """
        cdef int g, c
        cdef Py_ssize_t at
        for g in range(self.n_groups):
            kept[g] = self._place(slot, g, ids[row, g])
            if kept[g] == NO_PLACE:
                return False
        for c in range(self.n_singles):
            kept[self.n_groups + c] = NO_PLACE
            rest[c] = singles[row, c]
            at = slot * self.n_singles + c
            at = find_value(<const int32_t *>self.value_table[at], self.n_values[at], rest[c])
            if at >= 0:
                kept[self.n_groups + c] = self._place(slot, self.n_groups + c, <int32_t>at)
                if kept[self.n_groups + c] == NO_PLACE:
                    return False
                rest[c] = 0
        return True

    cdef int32_t _place(self, int slot, int kind, int32_t name) noexcept:
        cdef int32_t *places = <int32_t *>self.table[slot * self.width + kind]
        cdef int32_t place = places[name]
        cdef int32_t *owner
        cdef Py_ssize_t looked = 0
        if place != NO_PLACE:
            self.stamps[place] = self.batch
            return place
        if self.used < self.limit:
            place = <int32_t>self.used
            self.used += 1
        else:
            # The next place, in turn, that this batch does not need.
            while looked < self.limit and self.stamps[self.hand] == self.batch:
                self.hand = (self.hand + 1) % self.limit
                looked += 1
            if looked == self.limit:
                return NO_PLACE
            place = <int32_t>self.hand
            self.hand = (self.hand + 1) % self.limit
            owner = &self.owners[place, 0]
            (<int32_t *>self.table[owner[0] * self.width + owner[1]])[owner[2]] = NO_PLACE
        self.owners[place, 0] = slot
        self.owners[place, 1] = kind
        self.owners[place, 2] = name
        self.generations[place] += 1
        self.stamps[place] = self.batch
        places[name] = place
        return place

    def wanted(self):
        """The places that the present batch needs, ascending: int32[_]."""
        return np.flatnonzero(np.asarray(self.stamps)[: self.used] == self.batch).astype(np.int32)
