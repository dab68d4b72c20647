"""Patterns with numbers, and the sums of their weights in candidate lists."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import numpy as np

from tk_spacy.parallel.stopping cimport Listener, await_others, is_stopped, task_done
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.selection.corpus cimport Corpus, Lists
from tk_spacy.selection.matching cimport (
    MANY, Cell, Finding, Index, fill_tables, n_units, sum_units, visit_units,
)
from tk_spacy.selection.patterns cimport FEATURE_BITS, MAX_DEPTH, MAX_ORDER, NOWHERE
from tk_spacy.utils.array_checks import checked

cdef Py_ssize_t MOST = (1 << 31) - 2    # patterns that can be numbered


cdef class PatternTable:
    """A set of patterns, closed under prefixes, with numbers 0..p-1.

    parents: int64[p], -1 for a pattern of one feature; less than the pattern's own number.
    steps: int64[p], the feature that a pattern has more than its parent; in the space of trees also
        the depth of the word that its arc hangs on, times 2 ** 25.
    trees: whether this is the space of trees; else that of arcs.

    Raises ValueError for parents that do not come before, for a pattern that is there twice, and
    for one of more than 255 features.  One that cannot be grown from its parent (see patterns.pyx)
    is taken, but whether it is found is not said.
    """

    def __cinit__(self, parents, steps, *, trees):
        cdef const int64_t[::1] above = checked("parents", parents, np.int64, None)
        cdef const int64_t[::1] given = checked("steps", steps, np.int64, above.shape[0])
        cdef Py_ssize_t n = above.shape[0], i
        cdef int order, highest = 0
        if n > MOST:
            raise MemoryError(f"{n} patterns, there are numbers for {MOST}")
        self.trees = trees
        self._parents, self._steps = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint32)
        self._orders = np.empty(n, dtype=np.uint8)
        cdef int32_t[::1] of_parents = self._parents
        cdef uint32_t[::1] of_steps = self._steps
        cdef uint8_t[::1] orders = self._orders
        for i in range(n):
            if not -1 <= above[i] < i or not 0 <= given[i] < <int64_t>MAX_DEPTH << FEATURE_BITS:
                raise ValueError(
                    f"pattern {i} extends {above[i]} by {given[i]}, expected one before it and a "
                    "feature"
                )
            order = 1 if above[i] < 0 else orders[above[i]] + 1
            if order > MAX_ORDER:
                raise ValueError(f"pattern {i} has over {MAX_ORDER} features")
            of_parents[i], of_steps[i] = <int32_t>above[i], <uint32_t>given[i]
            orders[i] = <uint8_t>order
            highest = max(highest, order)
        self._make_index(highest)

    cdef int _make_index(self, int highest) except -1:
        above, last_steps, orders = self._parents, self._steps, self._orders
        cdef Py_ssize_t n = len(above), features = 0, i
        alone = np.flatnonzero((above < 0) & (last_steps < 1 << FEATURE_BITS))
        if len(alone):
            features = int(last_steps[alone].max()) + 1
        numbers = np.argsort(orders, kind="stable").astype(np.int32)
        bounds = np.searchsorted(orders[numbers], np.arange(1, highest + 2))
        positions = np.full(n + 1, NOWHERE, dtype=np.int32)     # the last: of no parent
        for i in range(highest):
            of_order = numbers[bounds[i]:bounds[i + 1]]
            of_order = of_order[np.lexsort((last_steps[of_order], positions[above[of_order]]))]
            numbers[bounds[i]:bounds[i + 1]] = of_order
            positions[of_order] = np.arange(bounds[i], bounds[i + 1])
        firsts = np.full(features + 1, NOWHERE, dtype=np.int32)
        firsts[last_steps[alone]] = positions[alone]
        extended, by = positions[above[numbers]], np.append(last_steps[numbers], np.uint32(0))
        twice = np.flatnonzero((extended[1:] == extended[:-1]) & (by[1:n] == by[: n - 1]))
        if len(twice):
            again = numbers[twice + 1].min()
            raise ValueError(f"pattern {again} is there twice, expected each once")
        cdef const int32_t[::1] of_features = firsts, by_position = numbers
        cdef const int32_t[::1] starts = np.searchsorted(
            extended, np.arange(n + 1, dtype=np.int32)
        ).astype(np.int32)
        cdef const uint32_t[::1] steps = by
        extensions = np.diff(starts)
        many = np.flatnonzero(extensions >= MANY)
        tables = np.full(n + 1, NOWHERE, dtype=np.int32)
        tables[many] = np.arange(len(many))
        # Between half and a quarter of a table is full.
        sizes = 2 << np.ceil(np.log2(extensions[many])).astype(np.int64)
        cdef const int32_t[::1] tables_of = tables
        cdef const int64_t[::1] first_cells = np.append(0, np.cumsum(sizes)).astype(np.int64)
        cdef uint64_t[::1] cells = np.zeros(first_cells[len(many)] + 1, dtype=np.uint64)
        self._numbers = numbers
        self._kept = of_features, by_position, starts, steps, tables_of, first_cells, cells
        self.index.n, self.index.highest = n, highest
        self.index.firsts, self.index.n_firsts = &of_features[0], features
        self.index.numbers = &by_position[0] if n else NULL
        self.index.starts, self.index.steps = &starts[0], &steps[0]
        self.index.tables, self.index.first_cells = &tables_of[0], &first_cells[0]
        self.index.cells = <Cell *>&cells[0]
        with nogil:
            fill_tables(&self.index, <Cell *>&cells[0])
        return 0

    def __len__(self):
        return self.index.n

    @property
    def parents(self):
        """int64[p], see above."""
        return self._parents.astype(np.int64)

    @property
    def steps(self):
        """int64[p], see above."""
        return self._steps.astype(np.int64)

    @property
    def orders(self):
        """The number of features of each pattern: int32[p]."""
        return self._orders.astype(np.int32)

    def placed(self, weights):
        """float64[p], by number, as `placed_scores` takes it: at the positions of the index."""
        return checked("weights", weights, np.float64, len(self))[self._numbers]

    def scores(self, Corpus corpus not None, weights, *, n_threads=None):
        """The sum of the weights of all patterns, as often as they occur, of each candidate.

        Comparable within a list: what all its candidates have is left out, in the space of arcs
        whole arcs, in that of trees occurrences without an arc that differs.
        weights: float64[p].  Returns float64[k] for each list of the corpus.
        """
        return self.placed_scores(corpus, self.placed(weights), n_threads=n_threads)

    def placed_scores(self, Corpus corpus not None, weights, *, n_threads=None):
        """The same of weights that are `placed`, for who scores again and again."""
        cdef const double[::1] given = checked("weights", weights, np.float64, len(self))
        lengths = corpus.lengths
        _check_trees(corpus, self.trees)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        cdef const int64_t[::1] begins = ends
        cdef double[::1] out = np.zeros(ends[len(lengths)] + 1)
        cdef Py_ssize_t n = corpus.n_lists, i
        cdef int threads = effective_n_threads(n_threads), failed = 0
        cdef const Lists *lists = &corpus.lists
        cdef Listener listener = Listener(n)
        cdef bint trees = self.trees
        if not len(self) or not n:
            return [np.zeros(k) for k in lengths]
        for i in prange(
            n + threads, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
        ):
            if i < n:
                if not is_stopped(&listener.watch):
                    failed += score_list(
                        &self.index, &given[0], lists, i, trees, &out[begins[i]]
                    )
                task_done(&listener.watch)
            else:
                await_others(&listener.watch)
        listener.check()
        if failed:
            raise MemoryError("no memory for the scores of a list's arcs")
        return np.split(np.asarray(out)[: ends[len(lengths)]], ends[1 : len(lengths)])


def _check_trees(Corpus corpus, bint trees):
    if trees and not corpus.has_trees:
        raise ValueError("patterns of trees in a corpus of other parts, expected one of trees")


cdef struct Sum:
    const double *weights       # of the pattern at each position
    double total
    double *values


cdef void add_weight(void *context, int32_t position) noexcept nogil:
    cdef Sum *sum = <Sum *>context
    sum.total += sum.weights[position]


cdef void note_total(void *context, int64_t unit) noexcept nogil:
    cdef Sum *sum = <Sum *>context
    sum.values[unit], sum.total = sum.total, 0.0


cdef int score_list(
    const Index *index, const double *weights, const Lists *lists, Py_ssize_t at, bint trees,
    double *out,
) noexcept nogil:
    """Writes a score for each candidate; returns 1 where there is no memory."""
    cdef Sum sum
    cdef Finding finding
    cdef int failed
    sum.weights, sum.total = weights, 0.0
    sum.values = <double *>malloc((n_units(lists, at, trees) + 1) * sizeof(double))
    if sum.values == NULL:
        return 1
    finding.index, finding.context, finding.end = index, &sum, note_total
    finding.found = add_weight
    failed = visit_units(lists, at, trees, &finding)
    if not failed:
        sum_units(lists, at, trees, sum.values, out)
    free(sum.values)
    return failed
