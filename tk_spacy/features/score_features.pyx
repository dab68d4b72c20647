"""Features of the scores of candidates within their list, for compiled loops over lists.

Sums are numpy's own, to the bit, so that weights that were learnt with numpy's means and deviations
see the same numbers.
"""

from libc.math cimport INFINITY, NAN, isfinite, sqrt
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

from tk_spacy.utils.numpy_sums cimport pairwise_sum

SCORE_FEATURES = ("gap", "standard", "rank", "first", "unscored")
"""Of each source: how far a candidate is from the best one; its standard score; minus the logarithm
of its rank from 1; whether it is the best; whether others have scored it, but not this source."""

assert len(SCORE_FEATURES) == N_SCORE_FEATURES


cdef Py_ssize_t source_features(
    const double *scores,            # IN: of candidate j at j * stride; NULL for none at all
    Py_ssize_t stride,
    Py_ssize_t k,                    # 1 at least
    const uint8_t *known,            # IN: [k], whether any source at all has scored it
    double scale,                    # positive
    const double *temperatures,      # IN: [n_temperatures], positive
    Py_ssize_t n_temperatures,
    const double *log_ranks,         # IN: [k], logarithms of 1, 2, ...
    double *features,                # OUT: SCORE_FEATURES of candidate j at j * width, or NULL
    Py_ssize_t width,
    double *gaps,                    # OUT: [n_temperatures, k]
    Room *room,                      # for k candidates
) noexcept nogil:
    """What one source says of the candidates of a list; its best one, -1 where it scored none.

    A score may be NaN or infinite where there is none; unscored candidates count as the worst.
    gaps: to the best one divided by scale and temperature, -inf for unscored candidates and 0 for
    all where none is scored.
    """
    cdef Py_ssize_t i, j, best = -1
    cdef double worst = INFINITY, top, mean, deviation
    cdef double *full = room.full
    cdef double *own
    for j in range(k):
        full[j] = NAN if scores == NULL else scores[j * stride]
        room.missing[j] = not isfinite(full[j])
        if not room.missing[j]:
            worst = min(worst, full[j])
            if best < 0 or full[j] > full[best]:
                best = j
    if best < 0:
        worst = 0.0
    for j in range(k):
        if room.missing[j]:
            full[j] = worst
    for i in range(n_temperatures):
        for j in range(k):
            if best < 0:
                gaps[i * k + j] = 0.0
            elif room.missing[j]:
                gaps[i * k + j] = -INFINITY
            else:
                gaps[i * k + j] = (full[j] - full[best]) / (scale * temperatures[i])
    if features == NULL:
        return best
    sort_falling(full, k, room)
    top = full[room.order[0]]
    mean = pairwise_sum(full, k) / k
    for j in range(k):
        room.squares[j] = (full[j] - mean) * (full[j] - mean)
    deviation = sqrt(pairwise_sum(room.squares, k) / k)
    if not deviation > 0:
        deviation = 1.0
    for i in range(k):
        j = room.order[i]
        own = features + j * width
        own[0] = (full[j] - top) / scale
        own[1] = (full[j] - mean) / deviation
        own[2] = -log_ranks[i] if best >= 0 else 0.0
        own[3] = 1.0 if best >= 0 and i == 0 else 0.0
        own[4] = 1.0 if room.missing[j] and known[j] else 0.0
    return best


cdef bint make_room(Room *room, Py_ssize_t k) noexcept nogil:
    """Room for k candidates; False where memory is short.  `drop_room` in any case."""
    room.full = <double *>malloc(max(k, 1) * sizeof(double))
    room.squares = <double *>malloc(max(k, 1) * sizeof(double))
    room.missing = <uint8_t *>malloc(max(k, 1))
    room.order = <Py_ssize_t *>malloc(max(k, 1) * sizeof(Py_ssize_t))
    room.merged = <Py_ssize_t *>malloc(max(k, 1) * sizeof(Py_ssize_t))
    return (
        room.full != NULL and room.squares != NULL and room.missing != NULL
        and room.order != NULL and room.merged != NULL
    )


cdef void drop_room(Room *room) noexcept nogil:
    free(room.full)
    free(room.squares)
    free(room.missing)
    free(room.order)
    free(room.merged)


cdef void sort_falling(const double *values, Py_ssize_t k, Room *room) noexcept nogil:
    """room.order becomes the numbers of the values, which are finite, by falling values.

    Equals stay as they are: merged from the bottom up.
    """
    cdef Py_ssize_t i, j, to, start, middle, stop, length = 1
    cdef Py_ssize_t *old
    for i in range(k):
        room.order[i] = i
    while length < k:
        start = 0
        while start < k:
            middle, stop = min(start + length, k), min(start + 2 * length, k)
            i, j = start, middle
            for to in range(start, stop):
                if j == stop or (i < middle and values[room.order[i]] >= values[room.order[j]]):
                    room.merged[to] = room.order[i]
                    i += 1
                else:
                    room.merged[to] = room.order[j]
                    j += 1
            start = stop
        old = room.order
        room.order, room.merged = room.merged, old
        length *= 2


cdef void normalize(double *values, Py_ssize_t k) noexcept nogil:
    """Divides k numbers by their sum."""
    cdef double total = pairwise_sum(values, k)
    cdef Py_ssize_t j
    for j in range(k):
        values[j] /= total
