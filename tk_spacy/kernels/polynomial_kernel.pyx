"""The polynomial kernel (a . b + 1) ** d of sparse vectors, and its sum over support vectors.

Source: Qian and Liu 2015, section 3.1; an arc is the set of its basic features, a tree the sum of
the kernel over pairs of arcs, or, as one vector, the multiset of its arcs' features.

Support vectors lie in an inverted index: of each feature, the vectors that have it.  The products
of one vector with all of them take a walk through the lists of its own features.  Lists only grow,
so what was added since a mark is the end of each list.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_target
from tk_spacy.utils.index_checks cimport check_starts, check_values
from tk_spacy.parallel.threads import effective_n_threads

MAX_DEGREE = 16


cdef struct Posting:
    # The support vectors that have a feature, in their order, and how often each has it.
    int32_t *vectors
    int32_t *times
    int32_t n
    int32_t room


cdef class PolynomialSupport:
    """Support vectors with a weight and an averaged weight each.

    n_features: of the vectors, numbered from 0.  degree: d, 1 to MAX_DEGREE.
    """

    cdef readonly int32_t n_features
    cdef readonly int degree
    cdef readonly Py_ssize_t n
    cdef Posting *postings
    cdef double *weights
    cdef double *averaged
    cdef Py_ssize_t room

    def __cinit__(self, n_features, degree):
        if not 1 <= degree <= MAX_DEGREE:
            raise ValueError(f"degree is {degree}, expected 1 to {MAX_DEGREE}")
        if n_features < 0:
            raise ValueError(f"n_features is {n_features}, expected 0 or more")
        self.n_features = n_features
        self.degree = degree
        self.postings = <Posting *>calloc(n_features + 1, sizeof(Posting))
        if self.postings == NULL:
            raise MemoryError(f"no memory for an index of {n_features} features")

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.postings != NULL:
            for i in range(self.n_features):
                free(self.postings[i].vectors)
                free(self.postings[i].times)
        free(self.postings)
        free(self.weights)
        free(self.averaged)

    def __len__(self):
        return self.n

    def append(self, starts, ids, weights, averaged, *, counts=None):
        """Add vectors.

        starts: int32[v + 1], ids: int32[_], see ArcLists.  weights, averaged: float64[v].
        counts: int32[_], how often each feature is there; once where it is not given.
        Raises TypeError or ValueError for arrays that do not fit.
        """
        starts, ids, counts = checked_vectors(starts, ids, counts, self.n_features)
        cdef Py_ssize_t v = len(starts) - 1, i, j
        cdef const double[::1] given = checked("weights", weights, np.float64, v)
        cdef const double[::1] means = checked("averaged", averaged, np.float64, v)
        cdef const int32_t[::1] begins = starts, features = ids, times = counts
        self.make_room(v)
        for i in range(v):
            for j in range(begins[i], begins[i + 1]):
                add_posting(&self.postings[features[j]], <int32_t>self.n, times[j])
            self.weights[self.n] = given[i]
            self.averaged[self.n] = means[i]
            self.n += 1

    cdef int make_room(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t room = max(2 * self.room, self.n + more, 64)
        cdef double *grown
        if self.n + more <= self.room:
            return 0
        if room >= 1 << 31:
            raise MemoryError(f"{room} support vectors, more than can be numbered")
        grown = <double *>realloc(self.weights, room * sizeof(double))
        if grown == NULL:
            raise MemoryError(f"no memory for {room} support vectors")
        self.weights = grown
        grown = <double *>realloc(self.averaged, room * sizeof(double))
        if grown == NULL:
            raise MemoryError(f"no memory for {room} support vectors")
        self.averaged = grown
        self.room = room
        return 0

    def add_scores(self, starts, ids, out, *, counts=None, since=0, averaged=False, n_threads=None):
        """Adds to out[i] the sum over support vectors s of weight * (a_i . s + 1) ** d.

        starts, ids, counts: the vectors a_i, as in `append`.  out: float64[v].  since: only the
        support vectors from that number on.  averaged: with their averaged weights.
        The sum runs in the order of the support vectors, whatever the threads.
        """
        starts, ids, counts = checked_vectors(starts, ids, counts, self.n_features)
        cdef const int32_t[::1] begins = starts, features = ids, times = counts
        cdef double[::1] sums = checked_target("out", out, np.float64, len(starts) - 1)
        if not 0 <= since <= self.n:
            raise ValueError(f"since is {since}, expected 0 to {self.n}")
        cdef Py_ssize_t i, n = sums.shape[0], first = since, failed = 0
        cdef const double *weights = self.averaged if averaged else self.weights
        cdef int threads = effective_n_threads(n_threads)
        if first == self.n or n == 0:
            return
        for i in prange(n, nogil=True, schedule="dynamic", chunksize=4, num_threads=threads):
            failed += add_score(
                self.postings, &features[0] if features.shape[0] else NULL,
                &times[0] if times.shape[0] else NULL, begins[i], begins[i + 1], weights, first,
                self.n, self.degree, &sums[i],
            )
        if failed:
            raise MemoryError(f"no memory for the products with {self.n - first} support vectors")


cdef int add_posting(Posting *posting, int32_t vector, int32_t times) except -1:
    cdef int32_t room
    cdef int32_t *grown
    if posting.n == posting.room:
        room = max(4, 2 * posting.room)
        grown = <int32_t *>realloc(posting.vectors, room * sizeof(int32_t))
        if grown == NULL:
            raise MemoryError("no memory for a feature's support vectors")
        posting.vectors = grown
        grown = <int32_t *>realloc(posting.times, room * sizeof(int32_t))
        if grown == NULL:
            raise MemoryError("no memory for a feature's support vectors")
        posting.times = grown
        posting.room = room
    posting.vectors[posting.n] = vector
    posting.times[posting.n] = times
    posting.n += 1
    return 0


cdef int32_t first_from(const Posting *posting, Py_ssize_t since) noexcept nogil:
    """The place of the first vector of a list that is not before `since`."""
    cdef int32_t low = 0, high = posting.n, middle
    if since == 0:
        return 0
    while low < high:
        middle = (low + high) // 2
        if posting.vectors[middle] < since:
            low = middle + 1
        else:
            high = middle
    return low


cdef int add_score(
    const Posting *postings, const int32_t *ids, const int32_t *counts, Py_ssize_t start,
    Py_ssize_t stop, const double *weights, Py_ssize_t since, Py_ssize_t n, int degree,
    double *out,
) noexcept nogil:
    """Returns 1 where there is no memory."""
    cdef Py_ssize_t i
    cdef int32_t j
    cdef const Posting *posting
    cdef int32_t *products = <int32_t *>calloc(n - since, sizeof(int32_t))
    cdef double total = 0.0
    if products == NULL:
        return 1
    for i in range(start, stop):
        posting = &postings[ids[i]]
        for j in range(first_from(posting, since), posting.n):
            products[posting.vectors[j] - since] += counts[i] * posting.times[j]
    for i in range(n - since):
        total += weights[since + i] * raised(<double>products[i] + 1.0, degree)
    free(products)
    out[0] += total
    return 0


def checked_vectors(starts, ids, counts, n_features):
    """Sparse vectors as arrays, or TypeError or ValueError where they do not fit together."""
    starts = checked("starts", starts, np.int32, None)
    ids = checked("ids", ids, np.int32, None)
    check_starts(starts, len(ids), "starts")
    check_values(ids, 0, <int32_t>(n_features - 1), "ids")
    end = starts[len(starts) - 1]
    if starts[0] or end != len(ids):
        raise ValueError(f"starts run from {starts[0]} to {end}, expected 0 to {len(ids)}")
    if counts is None:
        counts = np.ones(len(ids), dtype=np.int32)
    return starts, ids, checked("counts", counts, np.int32, len(ids))


cdef inline double raised(double base, int degree) noexcept nogil:
    """base ** degree, exact where the result is a whole number of 53 bits."""
    cdef double power = 1.0
    while degree:
        if degree & 1:
            power *= base
        base *= base
        degree >>= 1
    return power
