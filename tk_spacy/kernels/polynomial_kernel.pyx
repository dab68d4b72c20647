"""The polynomial kernel (a . b + 1) ** d of sparse vectors, and its sum over support vectors.

Source: Qian and Liu 2015, section 3.1; an arc is the set of its basic features, a tree the sum of
the kernel over pairs of arcs, or, as one vector, the multiset of its arcs' features.

Support vectors lie in an inverted index: of each feature, the vectors that have it.  The products
of one vector with all of them take a walk through the lists of its own features.  Lists only grow,
so what was added since a mark is the end of each.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_starts, check_values
from tk_spacy.parallel.threads import effective_n_threads

MAX_DEGREE = 16


cdef class PolynomialSupport:
    """Support vectors with a weight and an averaged weight each.

    n_features: of the vectors, numbered from 0.  degree: d, 1 to MAX_DEGREE.
    """

    cdef readonly int32_t n_features
    cdef readonly int degree
    cdef readonly Py_ssize_t n
    cdef Py_ssize_t _n_ids
    cdef list _starts, _ids, _counts, _weights, _averaged
    cdef object _index

    def __init__(self, n_features, degree):
        if not 1 <= degree <= MAX_DEGREE:
            raise ValueError(f"degree is {degree}, expected 1 to {MAX_DEGREE}")
        if n_features < 0:
            raise ValueError(f"n_features is {n_features}, expected 0 or more")
        self.n_features = n_features
        self.degree = degree
        self.n = self._n_ids = 0
        self._starts, self._ids, self._counts = [np.zeros(1, dtype=np.int64)], [], []
        self._weights, self._averaged = [], []
        self._index = None

    def __len__(self):
        return self.n

    def append(self, starts, ids, weights, averaged, *, counts=None):
        """Add vectors.

        starts: int32[v + 1], ids: int32[_], see ArcLists.  weights, averaged: float64[v].
        counts: int32[_], how often each feature is there; once where it is not given.
        Raises TypeError or ValueError for arrays that do not fit.
        """
        starts, ids, counts = checked_vectors(starts, ids, counts, self.n_features)
        v = len(starts) - 1
        self._weights.append(checked("weights", weights, np.float64, v))
        self._averaged.append(checked("averaged", averaged, np.float64, v))
        self._starts.append(starts[1:].astype(np.int64) + self._n_ids)
        self._n_ids += len(ids)
        self._ids.append(ids)
        self._counts.append(counts)
        self.n += v
        self._index = None

    def add_scores(self, starts, ids, out, *, counts=None, since=0, averaged=False, n_threads=None):
        """Adds to out[i] the sum over support vectors s of weight * (a_i . s + 1) ** d.

        starts, ids, counts: the vectors a_i, as in `append`.  out: float64[v].  since: only the
        support vectors from that number on.  averaged: with their averaged weights.
        The sum runs in the order of the support vectors, whatever the threads.
        """
        starts, ids, counts = checked_vectors(starts, ids, counts, self.n_features)
        out = checked("out", out, np.float64, len(starts) - 1)
        if not 0 <= since <= self.n:
            raise ValueError(f"since is {since}, expected 0 to {self.n}")
        if since == self.n:
            return
        lists, vectors, times = self._inverted(since)
        weights = np.concatenate(self._averaged if averaged else self._weights)[since:]
        _add_scores(
            starts, ids, counts, lists, vectors, times, weights, self.degree, out,
            effective_n_threads(n_threads),
        )

    def _inverted(self, since):
        """For each feature its vectors from `since` on: starts int64[f + 1], vectors, counts."""
        if self._index is not None and self._index[0] == since:
            return self._index[1]
        starts = np.concatenate(self._starts)
        first = starts[since]
        ids = np.concatenate(self._ids)[first:]
        counts = np.concatenate(self._counts)[first:]
        owner = np.repeat(
            np.arange(self.n - since, dtype=np.int32), np.diff(starts[since:])
        )
        order = np.argsort(ids, kind="stable")
        lists = np.zeros(self.n_features + 1, dtype=np.int64)
        np.cumsum(np.bincount(ids, minlength=self.n_features), out=lists[1:])
        made = lists, owner[order], counts[order]
        self._index = (since, made)
        return made


def checked_vectors(starts, ids, counts, n_features):
    """Sparse vectors as arrays, or TypeError or ValueError where they do not fit together."""
    starts = checked("starts", starts, np.int32, None)
    ids = checked("ids", ids, np.int32, None)
    check_starts(starts, len(ids), "starts")
    check_values(ids, 0, <int32_t>(n_features - 1), "ids")
    if starts[0] or starts[len(starts) - 1] != len(ids):
        raise ValueError(f"starts run from {starts[0]} to {starts[-1]}, expected 0 to {len(ids)}")
    if counts is None:
        counts = np.ones(len(ids), dtype=np.int32)
    return starts, ids, checked("counts", counts, np.int32, len(ids))


cdef int _add_scores(
    const int32_t[::1] starts,       # IN
    const int32_t[::1] ids,          # IN
    const int32_t[::1] counts,       # IN
    const long[::1] lists,           # IN
    const int32_t[::1] vectors,      # IN
    const int32_t[::1] times,        # IN
    const double[::1] weights,       # IN
    int degree,
    double[::1] out,                 # IN, OUT
    int n_threads,
) except -1:
    cdef Py_ssize_t i, v = out.shape[0], s = weights.shape[0]
    cdef int failed = 0
    for i in prange(v, nogil=True, schedule="dynamic", chunksize=4, num_threads=n_threads):
        failed += add_score(
            &ids[starts[i]] if starts[i + 1] > starts[i] else NULL,
            &counts[starts[i]] if starts[i + 1] > starts[i] else NULL,
            starts[i + 1] - starts[i], lists, vectors, times, weights, degree, &out[i],
        )
    if failed:
        raise MemoryError(f"no memory for the products with {s} support vectors")
    return 0


cdef int add_score(
    const int32_t *ids, const int32_t *counts, Py_ssize_t n, const long[::1] lists,
    const int32_t[::1] vectors, const int32_t[::1] times, const double[::1] weights, int degree,
    double *out,
) noexcept nogil:
    """Returns 1 where there is no memory."""
    cdef Py_ssize_t i, j, s = weights.shape[0]
    cdef int32_t *products = <int32_t *>calloc(s, sizeof(int32_t))
    cdef double total = 0.0
    if products == NULL:
        return 1
    for i in range(n):
        for j in range(lists[ids[i]], lists[ids[i] + 1]):
            products[vectors[j]] += counts[i] * times[j]
    for j in range(s):
        total += weights[j] * raised(<double>products[j] + 1.0, degree)
    free(products)
    out[0] += total
    return 0


cdef inline double raised(double base, int degree) noexcept nogil:
    """base ** degree, exact where the result is a whole number of 53 bits."""
    cdef double power = 1.0
    while degree:
        if degree & 1:
            power *= base
        base *= base
        degree >>= 1
    return power
