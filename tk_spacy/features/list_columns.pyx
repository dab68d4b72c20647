"""The features of the candidates of many lists within their list, in compiled loops over lists.

Exponentials are numpy's, as C's might differ in the last bit, and logarithms of ranks too; a
column's mean goes from the first candidate to the last, as numpy's does.
"""

from libc.math cimport isnan
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc

import numpy as np

from tk_spacy.features.consensus cimport N_SHARE_FEATURES, add_share_features
from tk_spacy.features.score_features cimport (
    N_SCORE_FEATURES, Room, drop_room, make_room, normalize, source_features,
)
from tk_spacy.utils.array_checks import checked


def list_columns(
    heads, labels, scores, columns, bases, scales, temperatures, double factor, *, bint of_scores,
    bint of_shares,
):
    """The features of the candidates of l lists: of each list float64[k, d].

    heads, labels: of each list int32[k, n], k and n 1 at least.  scores: of each list
    float64[k, c], NaN or infinite where there are none.  columns: int32[l, s], the column of each
    of s sources in each list, -1 where it has none.  bases: int32[l], the row of each list's base.
    scales: float64[s], positive.  temperatures: float64[t], positive.  factor: on all features.
    of_scores: with SCORE_FEATURES of each source, then 1 for the base; a tree that no column has a
    score of is not marked as unscored.
    of_shares: with the SHARE_FEATURES under the weights of each source, which are the softmax of
    its scores, divided by its scale and each temperature, then all the weight on its best tree;
    then under equal weights, and all the weight on the base.  A source that scored nothing weighs
    all alike.

    Each column of a list has the mean 0.  Raises TypeError or ValueError for other arrays.
    """
    scales = checked("scales", scales, np.float64, None)
    temperatures = checked("temperatures", temperatures, np.float64, None)
    columns = checked("columns", columns, np.int32, len(heads), len(scales))
    bases = checked("bases", bases, np.int32, len(heads))
    if not len(heads) == len(labels) == len(scores):
        raise ValueError(
            f"heads of {len(heads)} lists, labels of {len(labels)} and scores of {len(scores)}"
        )
    cdef Py_ssize_t i, j, k, n_lists = len(heads), n_sources = len(scales), most = 0, row = 0
    cdef Py_ssize_t n_temperatures = len(temperatures)
    cdef Py_ssize_t n_score = (N_SCORE_FEATURES * n_sources + 1) if of_scores else 0
    cdef Py_ssize_t n_weights = (n_sources * (n_temperatures + 1) + 2) if of_shares else 0
    heads = [checked("heads", own, np.int32, None, None) for own in heads]
    labels = [
        checked("labels", own, np.int32, *trees.shape)
        for own, trees in zip(labels, heads, strict=True)
    ]
    scores = [
        checked("scores", own, np.float64, len(trees), None)
        for own, trees in zip(scores, heads, strict=True)
    ]
    cdef int32_t[:, ::1] sizes = np.array(
        [(*own.shape, by.shape[1]) for own, by in zip(heads, scores, strict=True)], dtype=np.int32
    ).reshape(n_lists, 3)
    cdef const int32_t[:, ::1] places = columns
    cdef const int32_t[::1] base_rows = bases
    for i in range(n_lists):
        if sizes[i, 0] < 1 or sizes[i, 1] < 1:
            raise ValueError(f"list {i} has {sizes[i, 0]} trees over {sizes[i, 1]} words")
        if not 0 <= base_rows[i] < sizes[i, 0]:
            raise ValueError(f"base {base_rows[i]} of {sizes[i, 0]} trees")
        for j in range(n_sources):
            if not -1 <= places[i, j] < sizes[i, 2]:
                raise ValueError(f"column {places[i, j]} of {sizes[i, 2]}")
        row += sizes[i, 0]
        most = max(most, <Py_ssize_t>sizes[i, 0])
    features_array = np.zeros((row, n_score + N_SHARE_FEATURES * n_weights))
    gaps_array = np.empty(row * n_sources * n_temperatures)
    best_array = np.empty((n_lists, max(n_sources, 1)), dtype=np.int32)
    if not n_lists:
        return []
    cdef Batch batch
    cdef double[:, ::1] features = features_array
    # One cell more, so that there is a first one.
    cdef double[::1] gaps = gaps_array if gaps_array.size else np.empty(1)
    cdef int32_t[:, ::1] best = best_array
    cdef const double[::1] own_scales = scales if n_sources else np.ones(1)
    cdef const double[::1] own_temperatures = temperatures if n_temperatures else np.ones(1)
    cdef const double[::1] log_ranks = np.log1p(np.arange(most, dtype=np.float64))
    batch.n_sources, batch.n_temperatures = n_sources, n_temperatures
    batch.n_score, batch.n_weights = n_score, n_weights
    batch.width = features.shape[1]
    batch.factor = factor
    batch.scales, batch.temperatures = &own_scales[0], &own_temperatures[0]
    batch.log_ranks = &log_ranks[0]
    cdef const int32_t[:, ::1] own_heads, own_labels
    cdef const double[:, ::1] own_scores
    cdef bint is_done
    row = 0
    for i in range(n_lists):
        own_scores = scores[i]
        k = own_scores.shape[0]
        with nogil:
            is_done = read_scores(
                &batch, k, own_scores.shape[1],
                &own_scores[0, 0] if own_scores.shape[1] else NULL, &places[i, 0], base_rows[i],
                &features[row, 0], &gaps[row * n_sources * n_temperatures], &best[i, 0],
            )
        if not is_done:
            raise MemoryError("no memory for the scores of a list")
        row += k
    np.exp(gaps_array, out=gaps_array)
    row = 0
    for i in range(n_lists):
        own_heads, own_labels = heads[i], labels[i]
        k = own_heads.shape[0]
        with nogil:
            is_done = not of_shares or read_shares(
                &batch, k, own_heads.shape[1], &own_heads[0, 0], &own_labels[0, 0], base_rows[i],
                &gaps[row * n_sources * n_temperatures], &best[i, 0], &features[row, 0],
            )
            if is_done:
                centre(&features[row, 0], k, batch.width, factor)
        if not is_done:
            raise MemoryError("no memory for the shares of a list")
        row += k
    ends = np.cumsum(np.asarray(sizes)[:, 0]).tolist()
    return [
        features_array[stop - own.shape[0] : stop] for stop, own in zip(ends, heads, strict=True)
    ]


cdef struct Batch:
    # What all lists have in common.
    Py_ssize_t n_sources
    Py_ssize_t n_temperatures
    Py_ssize_t n_score           # columns of scores, the base's among them
    Py_ssize_t n_weights         # weightings of the candidates
    Py_ssize_t width
    double factor
    const double *scales
    const double *temperatures
    const double *log_ranks


cdef bint read_scores(
    const Batch *batch, Py_ssize_t k, Py_ssize_t n_columns,
    const double *scores,            # IN: [k, n_columns]
    const int32_t *places,           # IN: [n_sources]
    int32_t base,
    double *features,                # OUT: [k, width]
    double *gaps,                    # OUT: [n_sources, n_temperatures, k]
    int32_t *best,                   # OUT: [n_sources]
) noexcept nogil:
    """The features of the scores of one list; False where memory is short."""
    cdef Room room
    cdef Py_ssize_t s, j, c
    cdef uint8_t *known = <uint8_t *>malloc(k)
    cdef bint is_room = make_room(&room, k) and known != NULL
    if is_room:
        for j in range(k):
            known[j] = False
            for c in range(n_columns):
                known[j] = known[j] or not isnan(scores[j * n_columns + c])
        for s in range(batch.n_sources):
            best[s] = <int32_t>source_features(
                scores + places[s] if places[s] >= 0 else NULL, n_columns, k, known,
                batch.scales[s], batch.temperatures, batch.n_temperatures, batch.log_ranks,
                features + N_SCORE_FEATURES * s if batch.n_score else NULL, batch.width,
                gaps + s * batch.n_temperatures * k, &room,
            )
        if batch.n_score:
            features[base * batch.width + batch.n_score - 1] = 1.0
    drop_room(&room)
    free(known)
    return is_room


cdef bint read_shares(
    const Batch *batch, Py_ssize_t k, Py_ssize_t n,
    const int32_t *heads,            # IN: [k, n]
    const int32_t *labels,           # IN: [k, n]
    int32_t base,
    const double *powers,            # IN: [n_sources, n_temperatures, k]
    const int32_t *best,             # IN: [n_sources]
    double *features,                # IN, OUT: [k, width]
) noexcept nogil:
    """The features of the shares of one list; False where memory is short."""
    cdef Py_ssize_t s, t, j
    cdef double *weights = <double *>malloc(batch.n_weights * k * sizeof(double))
    cdef double *row = weights
    cdef bint is_done
    if weights == NULL:
        return False
    for s in range(batch.n_sources):
        for t in range(batch.n_temperatures):
            for j in range(k):
                row[j] = powers[(s * batch.n_temperatures + t) * k + j]
            normalize(row, k)
            row += k
        for j in range(k):
            row[j] = 1.0 / k if best[s] < 0 else (1.0 if j == best[s] else 0.0)
        row += k
    for j in range(k):
        row[j] = 1.0 / k
        row[k + j] = 1.0 if j == base else 0.0
    is_done = add_share_features(
        heads, labels, k, n, weights, batch.n_weights, features + batch.n_score, batch.width
    )
    free(weights)
    return is_done


cdef void centre(double *features, Py_ssize_t k, Py_ssize_t width, double factor) noexcept nogil:
    """Takes from each column its mean, and multiplies what is left."""
    cdef Py_ssize_t j, c
    cdef double mean
    for c in range(width):
        mean = 0.0
        for j in range(k):
            mean += features[j * width + c]
        mean /= k
        for j in range(k):
            features[j * width + c] = (features[j * width + c] - mean) * factor
