# What a source's scores say of the candidates of a list, for loops over lists.

from libc.stdint cimport uint8_t


cdef enum:
    N_SCORE_FEATURES = 5


cdef struct Room:
    # For the candidates of a list.
    double *full             # scores, the lowest where there is none
    double *squares
    uint8_t *missing
    Py_ssize_t *order
    Py_ssize_t *merged


cdef bint make_room(Room *room, Py_ssize_t k) noexcept nogil
cdef void drop_room(Room *room) noexcept nogil
cdef Py_ssize_t source_features(
    const double *scores, Py_ssize_t stride, Py_ssize_t k, const uint8_t *known, double scale,
    const double *temperatures, Py_ssize_t n_temperatures, const double *log_ranks,
    double *features, Py_ssize_t width, double *gaps, Room *room,
) noexcept nogil
cdef void normalize(double *values, Py_ssize_t k) noexcept nogil
