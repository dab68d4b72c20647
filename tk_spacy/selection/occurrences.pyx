"""Where patterns occur in lists, written down for a learner that comes to each again and again."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.selection.corpus cimport Corpus, Lists, Slots
from tk_spacy.selection.matching cimport (
    Finding, Index, n_units, sum_units, units_of, visit_units,
)
from tk_spacy.selection.pattern_table cimport PatternTable
from tk_spacy.selection.patterns cimport may_weigh
from tk_spacy.utils.array_checks import checked


cdef struct Notes:
    # What is found in the units of a list, counted or written down.
    const Index *index
    const Slots *slots
    int32_t *ids            # NULL to count
    int64_t n
    int64_t *ends           # of each unit, counted from the list's first occurrence


cdef void note(void *context, int32_t position) noexcept nogil:
    cdef Notes *notes = <Notes *>context
    if may_weigh(notes.slots, <uint64_t>notes.index.steps[position]):
        if notes.ids != NULL:
            notes.ids[notes.n] = notes.index.numbers[position]
        notes.n += 1


cdef void note_end(void *context, int64_t unit) noexcept nogil:
    cdef Notes *notes = <Notes *>context
    notes.ends[unit] = notes.n


cdef class Occurrences:
    """The patterns of a table in all that differs within the lists of a corpus, written down.

    For a learner that comes to list after list: `scores` and `move` read what is written down.
    most: how many occurrences there is room for (4 bytes each, and one list's in any case).  Where
    there are more, a stretch of lists is written down at a time, from the one that is asked for on.
    len(): all occurrences.
    """

    cdef PatternTable _table
    cdef Corpus _corpus
    cdef int _threads
    cdef int32_t[::1] _ids
    cdef int64_t[::1] _ends         # of each unit of each list, see Notes
    cdef int64_t[::1] _first_unit
    cdef int64_t[::1] _first        # occurrence of each list
    cdef Py_ssize_t _begin, _end    # the lists that are written down
    cdef int64_t _most
    cdef double[::1] _values

    def __init__(
        self, PatternTable table not None, Corpus corpus not None, *, most=None, n_threads=None
    ):
        cdef Py_ssize_t n = corpus.n_lists, i
        if table.trees and not corpus.has_trees:
            raise ValueError("patterns of trees in a corpus of other parts, expected one of trees")
        self._table, self._corpus = table, corpus
        self._threads = effective_n_threads(n_threads)
        units = [n_units(&corpus.lists, i, table.trees) for i in range(n)]
        self._first_unit = np.concatenate([[0], np.cumsum(units)]).astype(np.int64)
        self._ends = np.zeros(self._first_unit[n] + 1, dtype=np.int64)
        self._values = np.zeros(max(units, default=0) + 1)
        self._first = np.zeros(n + 1, dtype=np.int64)
        self._ids = np.zeros(1, dtype=np.int32)
        self._begin, self._end = 0, 0
        counts = np.zeros(n + 1, dtype=np.int64)
        if len(table):
            self._walk(counts, 0, n, False)
        self._first = np.concatenate([[0], np.cumsum(counts[:n])]).astype(np.int64)
        self._most = self._first[n] if most is None else most

    cdef int _write_down(self, Py_ssize_t at) except -1:
        """The lists from one on, as many as there is room for."""
        cdef Py_ssize_t n = self._corpus.n_lists, end = at + 1
        while end < n and self._first[end + 1] - self._first[at] <= self._most:
            end += 1
        self._begin, self._end = 0, 0
        self._ids = np.zeros(1, dtype=np.int32)     # that both are never there at once
        self._ids = np.empty(self._first[end] - self._first[at] + 1, dtype=np.int32)
        if len(self._table):
            self._walk(np.zeros(n + 1, dtype=np.int64), at, end, True)
        self._begin, self._end = at, end
        return 0

    cdef int _walk(
        self, int64_t[::1] counts, Py_ssize_t begin, Py_ssize_t end, bint write
    ) except -1:
        """Counts the occurrences of some lists, or writes them down."""
        cdef Py_ssize_t n = end - begin, i
        cdef int64_t first = self._first[begin]
        cdef const Lists *lists = &self._corpus.lists
        cdef int threads = self._threads, failed = 0
        cdef Listener listener = Listener(n)
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                if not is_stopped(&listener.watch):
                    failed += note_list(
                        &self._table.index, lists, begin + i, self._table.trees,
                        &self._ids[self._first[begin + i] - first] if write else NULL,
                        &self._ends[self._first_unit[begin + i]], &counts[begin + i],
                    )
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        if failed:
            raise MemoryError("no memory for the patterns of a list")
        return 0

    def __len__(self):
        return self._first[self._corpus.n_lists]

    cdef int64_t _place_of(self, Py_ssize_t at, int row) except -1:
        """Where a list's occurrences are written down."""
        if not 0 <= at < self._corpus.n_lists or not 0 <= row < self._corpus.lists.k[at]:
            raise ValueError(f"there is no candidate {row} of a list {at}")
        if not self._begin <= at < self._end:
            self._write_down(at)
        return self._first[at] - self._first[self._begin]

    def scores(self, Py_ssize_t at, weights):
        """The sum of the weights of its patterns, of each candidate of a list: float64[k].

        As PatternTable.scores, to the last bit where weights are whole numbers.
        weights: float64[p].
        """
        cdef const double[::1] given = checked("weights", weights, np.float64, len(self._table))
        cdef int64_t i, unit, end, first = self._place_of(at, 0), start = self._first_unit[at]
        cdef double[::1] out = np.zeros(self._corpus.lists.k[at])
        cdef int64_t n = self._first_unit[at + 1] - start
        cdef double total
        with nogil:
            i = 0
            for unit in range(n):
                end, total = self._ends[start + unit], 0.0
                while i < end:
                    total += given[self._ids[first + i]]
                    i += 1
                self._values[unit] = total
            sum_units(&self._corpus.lists, at, self._table.trees, &self._values[0], &out[0])
        return np.asarray(out)

    def move(self, Py_ssize_t at, int row, double by, weights, stepped, double time):
        """Adds `by` to the weight of each pattern of a candidate, as often as `scores` counts it.

        Of parts in slots only complete patterns have weights (see Corpus).
        at, row: the list and its candidate.  weights, stepped: float64[p]; to the second one by *
        time is added, for averaging.
        """
        cdef double[::1] of_patterns = checked("weights", weights, np.float64, len(self._table))
        cdef double[::1] sums = checked("stepped", stepped, np.float64, len(self._table))
        cdef const int32_t *units
        cdef int32_t n, j, id
        cdef int64_t unit, i, first = self._place_of(at, row), start = self._first_unit[at]
        with nogil:
            units = units_of(&self._corpus.lists, at, row, self._table.trees, &n)
            for j in range(n):
                unit = units[j]
                if unit < 0:
                    continue
                for i in range(0 if unit == 0 else self._ends[start + unit - 1],
                               self._ends[start + unit]):
                    id = self._ids[first + i]
                    of_patterns[id] += by
                    sums[id] += by * time


cdef int note_list(
    const Index *index, const Lists *lists, Py_ssize_t at, bint trees, int32_t *ids, int64_t *ends,
    int64_t *count,
) noexcept nogil:
    """Notes the occurrences of one list; returns 1 where there is no memory."""
    cdef Notes notes
    cdef Finding finding
    cdef int failed
    notes.index, notes.slots = index, &lists.slots
    notes.ids, notes.n, notes.ends = ids, 0, ends
    finding.index, finding.found, finding.end, finding.context = index, note, note_end, &notes
    failed = visit_units(lists, at, trees, &finding)
    count[0] = notes.n
    return failed
