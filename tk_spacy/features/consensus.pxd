# How far the candidates of a list agree, for loops over lists.

from libc.stdint cimport int32_t


cdef enum:
    N_SHARE_FEATURES = 5


cdef bint add_share_features(
    const int32_t *heads, const int32_t *labels, Py_ssize_t k, Py_ssize_t n, const double *weights,
    Py_ssize_t n_weights, double *out, Py_ssize_t width,
) noexcept nogil
