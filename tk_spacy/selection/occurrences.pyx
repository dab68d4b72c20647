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

    `scores` and `move` are those of PatternTable, to the last bit where weights are whole numbers
    that a perceptron makes, and many times as fast.  most: how many occurrences there is room for
    (4 bytes each); beyond it MemoryError is raised.
    """

    cdef PatternTable _table
    cdef Corpus _corpus
    cdef int32_t[::1] _ids
    cdef int64_t[::1] _ends         # of each unit of each list, see Notes
    cdef int64_t[::1] _first_unit
    cdef int64_t[::1] _first        # occurrence of each list
    cdef double[::1] _values

    def __init__(
        self, PatternTable table not None, Corpus corpus not None, *, most=None, n_threads=None
    ):
        cdef Py_ssize_t n = corpus.n_lists, i
        if table.trees and not corpus.has_trees:
            raise ValueError("patterns of trees in a corpus of other parts, expected one of trees")
        self._table, self._corpus = table, corpus
        units = [n_units(&corpus.lists, i, table.trees) for i in range(n)]
        self._first_unit = np.concatenate([[0], np.cumsum(units)]).astype(np.int64)
        self._ends = np.zeros(self._first_unit[n] + 1, dtype=np.int64)
        self._values = np.zeros(max(units, default=0) + 1)
        self._first = np.zeros(n + 1, dtype=np.int64)
        self._ids = np.zeros(1, dtype=np.int32)
        if not len(table):
            return
        counts = np.zeros(n + 1, dtype=np.int64)
        self._walk(counts, False, effective_n_threads(n_threads))
        total = int(counts.sum())
        if most is not None and total > most:
            raise MemoryError(f"{total} occurrences of patterns, room for {most}")
        self._first = np.concatenate([[0], np.cumsum(counts[:n])]).astype(np.int64)
        self._ids = np.zeros(total + 1, dtype=np.int32)
        self._walk(counts, True, effective_n_threads(n_threads))

    cdef int _walk(self, int64_t[::1] counts, bint write, int threads) except -1:
        """Counts the occurrences of each list, or writes them down."""
        cdef Py_ssize_t n = self._corpus.n_lists, i
        cdef const Lists *lists = &self._corpus.lists
        cdef int failed = 0
        cdef Listener listener = Listener(n)
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                if not is_stopped(&listener.watch):
                    failed += note_list(
                        &self._table.index, lists, i, self._table.trees,
                        &self._ids[self._first[i]] if write else NULL,
                        &self._ends[self._first_unit[i]], &counts[i],
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

    def scores(self, Py_ssize_t at, weights):
        """The sum of the weights of its patterns, of each candidate of a list: float64[k].

        weights: float64[p].
        """
        cdef const double[::1] given = checked("weights", weights, np.float64, len(self._table))
        self._check_place(at, 0)
        cdef double[::1] out = np.zeros(self._corpus.lists.k[at])
        cdef int64_t i, unit, end, first = self._first[at], start = self._first_unit[at]
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
        """Adds `by` to the weight of each pattern of a candidate, as often as it occurs.

        at, row: the list and its candidate.  weights, stepped: float64[p]; to the second one by *
        time is added, for averaging.
        """
        cdef double[::1] of_patterns = checked("weights", weights, np.float64, len(self._table))
        cdef double[::1] sums = checked("stepped", stepped, np.float64, len(self._table))
        self._check_place(at, row)
        cdef const int32_t *units
        cdef int32_t n, j, id
        cdef int64_t unit, i, first = self._first[at], start = self._first_unit[at]
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

    cdef int _check_place(self, Py_ssize_t at, int row) except -1:
        if not 0 <= at < self._corpus.n_lists or not 0 <= row < self._corpus.lists.k[at]:
            raise ValueError(f"there is no candidate {row} of a list {at}")
        return 0


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
