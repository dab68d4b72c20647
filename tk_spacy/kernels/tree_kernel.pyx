"""The dependency tree kernel: how many sub feature trees two trees have in common.

Source: Qian and Liu 2015, section 5.2.  A subtree is connected, and siblings next to each other in
it are next to each other in the tree; a sub feature tree has one basic feature in place of each of
its arcs.  With D(p, q) = (features that the arcs to the p-th child of a and to the q-th child of b
share) * (1 + what these children have in common below them), all pairs of runs of children are

    G(p, q) = D(p, q) * (1 + G(p + 1, q + 1)),    delta(a, b) = the sum of G over all p and q

which is the paper's recursion over runs of length l with the factor that its print lacks.  Ours
adds a decay of each arc (Collins and Duffy 2002, `decay` 1 as in the paper), and compares forests
that share subtrees (forest.py), each pair of nodes once.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_target
from tk_spacy.utils.index_checks cimport check_starts, check_values
from tk_spacy.parallel.threads import effective_n_threads

MOST = 1e150
"""Larger numbers of common subtrees count as this one, so that sums and products stay finite."""

cdef double MOST_ = MOST
cdef int32_t MOST_ID = 0x7FFFFFFF


cdef struct Trees:
    # A forest and the features of its arcs.
    const int32_t *starts
    const int32_t *nodes
    const int32_t *arcs
    const int32_t *feature_starts
    const int32_t *features
    Py_ssize_t n_nodes
    Py_ssize_t n_arcs


cdef struct Index:
    # The arcs of a forest by their features: an open table of features, and a list for each.
    int32_t *keys       # -1 where a cell is empty
    int32_t *cells      # the number of a cell's list
    int32_t *starts
    int32_t *arcs
    Py_ssize_t mask


def common_subtrees(forest_a, arcs_a, forest_b, arcs_b, *, decay=1.0):
    """The number of common sub feature trees that are rooted in each pair of nodes.

    forest_a, forest_b: each a Forest.  arcs_a, arcs_b: the features of their arcs, (starts, ids) as
    in ArcLists, numbered alike.  Returns float64[a, b], exact up to 2 ** 53 with a decay of 1.
    Raises ValueError for features that do not fit, MemoryError.
    """
    out = np.zeros((forest_a.n_nodes, forest_b.n_nodes))
    _check_decay(decay)
    cdef double[:, ::1] values = out
    cdef Index index
    a = _Holder(forest_a, arcs_a)
    b = _Holder(forest_b, arcs_b)
    if out.size:
        make_index(&index, &(<_Holder>a).trees)
        try:
            if fill(&(<_Holder>a).trees, &index, &(<_Holder>b).trees, decay, &values[0, 0]):
                raise MemoryError("no memory for the comparison of trees")
        finally:
            free_index(&index)
    return out


cdef class TreeSupport:
    """Support forests: each has a coefficient for its nodes, a weight and an averaged weight.

    decay: see above.
    """

    cdef readonly double decay
    cdef list _holders, _weights, _averaged

    def __init__(self, *, decay=1.0):
        _check_decay(decay)
        self.decay = decay
        self._holders, self._weights, self._averaged = [], [], []

    def __len__(self):
        return len(self._holders)

    def append(self, forest, arcs, coefficients, *, weight, averaged):
        """Add a forest.

        forest, arcs: as `common_subtrees`.  coefficients: float64 of a value for each node.
        """
        self._holders.append(_Holder(forest, arcs, coefficients))
        self._weights.append(weight)
        self._averaged.append(averaged)

    def add_scores(self, forest, arcs, out, *, since=0, averaged=False, n_threads=None):
        """Adds to out[c] the sum over support nodes of weight * coefficient * delta(c, node).

        forest, arcs: as `common_subtrees`.  out: float64[c], a value for each node of the forest.
        since: only the support forests from that number on.  averaged: with averaged weights.
        The sum runs in the order of the support forests, whatever the threads.
        """
        out = checked_target("out", out, np.float64, forest.n_nodes)
        if not 0 <= since <= len(self):
            raise ValueError(f"since is {since}, expected 0 to {len(self)}")
        holders = self._holders[since:]
        if not holders or not forest.n_nodes:
            return
        own = _Holder(forest, arcs)
        cdef Py_ssize_t n = len(holders), i, c, failed = 0, n_nodes = forest.n_nodes
        cdef Index index
        cdef Trees *trees = &(<_Holder>own).trees
        cdef const Trees **others = <const Trees **>malloc(n * sizeof(Trees *))
        cdef const double **values = <const double **>malloc(n * sizeof(double *))
        cdef double[:, ::1] sums = np.empty((n, n_nodes))
        cdef const double[::1] weights = np.array(
            (self._averaged if averaged else self._weights)[since:], dtype=np.float64
        )
        cdef double[::1] result = out
        cdef int threads = effective_n_threads(n_threads)
        cdef double decay = self.decay
        if others == NULL or values == NULL:
            free(others)
            free(values)
            raise MemoryError(f"no memory for {n} support forests")
        for i in range(n):
            others[i] = &(<_Holder>holders[i]).trees
            values[i] = (<_Holder>holders[i]).values
        try:
            make_index(&index, trees)
            for i in prange(n, nogil=True, schedule="dynamic", chunksize=8, num_threads=threads):
                failed += weigh(trees, &index, others[i], values[i], decay, &sums[i, 0])
            free_index(&index)
        finally:
            free(others)
            free(values)
        if failed:
            raise MemoryError("no memory for the comparison of trees")
        for i in range(n):
            for c in range(n_nodes):
                result[c] += weights[i] * sums[i, c]


cdef class _Holder:
    """Keeps the arrays of a forest alive whose addresses `trees` holds."""

    cdef Trees trees
    cdef const double *values
    cdef object _kept

    def __init__(self, forest, features, values=None):
        starts, ids = features
        cdef const int32_t[::1] begins = forest.starts, nodes = forest.child_nodes
        cdef const int32_t[::1] arcs = forest.child_arcs
        cdef const int32_t[::1] feature_starts = starts, feature_ids = ids
        cdef const double[::1] weights
        cdef Py_ssize_t n_arcs = feature_starts.shape[0] - 1
        check_starts(feature_starts, feature_ids.shape[0], "starts")
        if feature_starts[0] != 0:
            raise ValueError(f"starts[0] is {feature_starts[0]}, expected 0")
        check_values(feature_ids, 0, MOST_ID, "ids")
        if arcs.shape[0] and not 0 <= min(forest.child_arcs) <= max(forest.child_arcs) < n_arcs:
            raise ValueError(f"a forest names an arc beyond the {n_arcs} that have features")
        self._kept = (forest, starts, ids, values)
        self.trees.starts = &begins[0]
        self.trees.nodes = &nodes[0] if nodes.shape[0] else NULL
        self.trees.arcs = &arcs[0] if arcs.shape[0] else NULL
        self.trees.feature_starts = &feature_starts[0]
        self.trees.features = &feature_ids[0] if feature_ids.shape[0] else NULL
        self.trees.n_nodes = begins.shape[0] - 1
        self.trees.n_arcs = n_arcs
        if values is not None:
            weights = checked("coefficients", values, np.float64, self.trees.n_nodes)
            self._kept += (weights,)
            self.values = &weights[0]


def _check_decay(decay):
    if not 0 < decay <= 1:
        raise ValueError(f"decay is {decay}, expected more than 0, 1 at most")


cdef int make_index(Index *index, const Trees *trees) except -1:
    cdef Py_ssize_t n = trees.feature_starts[trees.n_arcs], i, cell, n_lists = 0, arc
    index.mask = 15
    while index.mask < 2 * n:
        index.mask = 2 * index.mask + 1
    index.keys = <int32_t *>malloc((index.mask + 1) * sizeof(int32_t))
    index.cells = <int32_t *>malloc((index.mask + 1) * sizeof(int32_t))
    index.starts = <int32_t *>calloc(n + 2, sizeof(int32_t))
    index.arcs = <int32_t *>malloc((n + 1) * sizeof(int32_t))
    if index.keys == NULL or index.cells == NULL or index.starts == NULL or index.arcs == NULL:
        free_index(index)
        raise MemoryError(f"no memory for an index of {n} features")
    for i in range(index.mask + 1):
        index.keys[i] = -1
    for i in range(n):
        cell = find_cell(index, trees.features[i])
        if index.keys[cell] < 0:
            index.keys[cell] = trees.features[i]
            index.cells[cell] = <int32_t>n_lists
            n_lists += 1
        index.starts[index.cells[cell] + 2] += 1
    for i in range(2, n_lists + 2):
        index.starts[i] += index.starts[i - 1]
    # starts[l + 1] moves from the begin of list l to its end.
    for arc in range(trees.n_arcs):
        for i in range(trees.feature_starts[arc], trees.feature_starts[arc + 1]):
            cell = index.cells[find_cell(index, trees.features[i])]
            index.arcs[index.starts[cell + 1]] = <int32_t>arc
            index.starts[cell + 1] += 1
    return 0


cdef void free_index(Index *index) noexcept:
    free(index.keys)
    free(index.cells)
    free(index.starts)
    free(index.arcs)


cdef inline Py_ssize_t find_cell(const Index *index, int32_t feature) noexcept nogil:
    cdef Py_ssize_t cell = (<uint32_t>feature * <uint32_t>0x9E3779B1) & index.mask
    while index.keys[cell] >= 0 and index.keys[cell] != feature:
        cell = (cell + 1) & index.mask
    return cell


cdef int weigh(
    const Trees *a, const Index *index, const Trees *b, const double *values, double decay,
    double *sums,
) noexcept nogil:
    """Writes the weighted sum of delta over the nodes of b for each node of a; 1: no memory."""
    cdef Py_ssize_t i, j
    cdef double total
    cdef double *delta = <double *>malloc((a.n_nodes * b.n_nodes + 1) * sizeof(double))
    if delta == NULL or fill(a, index, b, decay, delta):
        free(delta)
        return 1
    for i in range(a.n_nodes):
        total = 0.0
        for j in range(b.n_nodes):
            if values[j] != 0.0:
                total += values[j] * delta[i * b.n_nodes + j]
        sums[i] = total
    free(delta)
    return 0


cdef int fill(
    const Trees *a, const Index *index, const Trees *b, double decay, double *delta
) noexcept nogil:
    """Writes delta of each pair of nodes; returns 1 where there is no memory."""
    cdef Py_ssize_t i, j, most = 1
    cdef int32_t *common = <int32_t *>calloc(a.n_arcs * b.n_arcs + 1, sizeof(int32_t))
    cdef double *runs
    for j in range(b.n_nodes):
        most = max(most, b.starts[j + 1] - b.starts[j] + 1)
    runs = <double *>malloc(most * sizeof(double))
    if common == NULL or runs == NULL:
        free(common)
        free(runs)
        return 1
    count_common(index, b, a.n_arcs, common)
    for i in range(a.n_nodes):
        for j in range(b.n_nodes):
            delta[i * b.n_nodes + j] = of_pair(a, b, i, j, common, decay, delta, runs)
    free(common)
    free(runs)
    return 0


cdef void count_common(
    const Index *index, const Trees *b, Py_ssize_t n_arcs, int32_t *common
) noexcept nogil:
    """common[arc_b, arc_a]: the features that two arcs share."""
    cdef Py_ssize_t arc, i, j, cell
    cdef int32_t *row
    for arc in range(b.n_arcs):
        row = common + arc * n_arcs
        for i in range(b.feature_starts[arc], b.feature_starts[arc + 1]):
            cell = find_cell(index, b.features[i])
            if index.keys[cell] < 0:
                continue
            cell = index.cells[cell]
            for j in range(index.starts[cell], index.starts[cell + 1]):
                row[index.arcs[j]] += 1


cdef double of_pair(
    const Trees *a, const Trees *b, Py_ssize_t i, Py_ssize_t j, const int32_t *common,
    double decay, const double *delta, double *runs,
) noexcept nogil:
    """delta(i, j) by the recursion of the docstring; runs: G of the row of p before, one longer."""
    cdef Py_ssize_t first = b.starts[j], n_b = b.starts[j + 1] - first, p, q
    cdef double total = 0.0, g, shared
    for q in range(n_b + 1):
        runs[q] = 0.0
    for p in range(a.starts[i + 1] - 1, a.starts[i] - 1, -1):
        # Rising q: runs[q + 1] is still that of p + 1.
        for q in range(n_b):
            shared = common[b.arcs[first + q] * a.n_arcs + a.arcs[p]]
            g = 0.0
            if shared != 0.0:
                g = decay * shared * (1.0 + delta[a.nodes[p] * b.n_nodes + b.nodes[first + q]])
                g = min(g * (1.0 + runs[q + 1]), MOST_)
            runs[q] = g
            total += g
    return min(total, MOST_)
