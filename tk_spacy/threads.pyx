from cython.parallel cimport prange


def parallel_sum(const double[::1] values, int n_threads):
    """Sum of squares, threaded; for tests of the threads themselves."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in prange(values.shape[0], nogil=True, num_threads=n_threads):
        total += values[i] * values[i]
    return total
