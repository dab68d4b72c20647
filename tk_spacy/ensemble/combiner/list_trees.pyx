"""The trees that the combiner adds to many lists, and its score of all: a loop over lists."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from tk_spacy.parallel.stopping cimport Listener
from tk_spacy.trees.spanning cimport (
    SpanningScratch, free_spanning, init_spanning, k_best_trees,
)
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table, check_values
from tk_spacy.utils.numpy_sums cimport pairwise_sum

cdef double MOST_SCORE = 1e300


def extended_rows(arcs, scores, lists, added, int most):
    """The trees of l lists and after them those that are added, with the sums of arcs' scores.

    arcs: of each list the heads, labels and numbers of word and head of its arcs, int32[a] each,
    and the arc of each word in each tree, int32[k, n]: see `distinct_arcs`.
    scores: float64[_], of all lists' arcs, one list after the other.
    lists: of each list heads int32[k, n], labels int32[k, n] and scores float64[k, c].
    added: of each list trees to add, int32[k', n], the arc of each word; or None for the `most`
    best trees of its arcs: those with the largest sums of scores, each pair of words with its best
    label, of equals the first.

    Returns of each list heads and labels int32[k + k', n] and scores float64[k + k', c + 1], NaN of
    added trees in the first c columns.  Raises TypeError or ValueError for other arrays.
    """
    cdef Py_ssize_t i, at = 0
    cdef const double[::1] all_scores = checked("scores", scores, np.float64, None)
    cdef Listener listener = Listener()
    cdef SpanningScratch scratch
    found = []
    init_spanning(&scratch)
    scratch.watch = &listener.watch
    try:
        for own, given, trees in zip(arcs, lists, added, strict=True):
            own, given = tuple(own), tuple(given)
            if len(own) != 4 or len(given) != 3:
                raise ValueError(
                    f"{len(own)} arrays of arcs and {len(given)} of a list, expected 4 and 3"
                )
            i = len(own[0])
            if at + i > len(scores):
                raise ValueError(f"{len(scores)} scores, expected more")
            found.append(
                _extended(own, all_scores[at : at + i], given, trees, most, &scratch, listener)
            )
            at += i
    finally:
        free_spanning(&scratch)
    if at != len(scores):
        raise ValueError(f"{len(scores)} scores of {at} arcs")
    return found


cdef object _extended(
    tuple own, const double[::1] scores, tuple given, trees, int most, SpanningScratch *scratch,
    Listener listener,
):
    cdef const int32_t[::1] arc_heads = checked("arcs", own[0], np.int32, None)
    cdef const int32_t[::1] arc_labels = checked("arcs", own[1], np.int32, len(own[0]))
    cdef const int32_t[::1] with_head = checked("arcs", own[2], np.int32, len(own[0]))
    cdef const int32_t[:, ::1] of_tree = checked("of_tree", own[3], np.int32, None, None)
    cdef Py_ssize_t k = of_tree.shape[0], n = of_tree.shape[1], n_arcs = arc_heads.shape[0]
    cdef Py_ssize_t j, m, c, arc, more
    cdef const int32_t[:, ::1] heads = checked("heads", given[0], np.int32, k, n)
    cdef const int32_t[:, ::1] labels = checked("labels", given[1], np.int32, k, n)
    cdef const double[:, ::1] known = checked("scores", given[2], np.float64, k, None)
    cdef Py_ssize_t n_columns = known.shape[1]
    cdef int32_t[:, ::1] extra
    cdef int code
    if k < 1 or n < 1 or most < 1:
        raise ValueError(f"{k} trees over {n} words, {most} to add")
    check_table(of_tree, 0, <int32_t>n_arcs - 1, "of_tree")
    check_values(arc_heads, 0, <int32_t>n, "arcs")
    check_values(with_head, 0, <int32_t>n_arcs - 1, "arcs")
    if trees is None:
        extra = np.empty((most, n), dtype=np.int32)
        with nogil:
            code = best_of(
                &arc_heads[0], &with_head[0], &scores[0], n_arcs, &of_tree[0, 0], k, <int>n, most,
                &extra[0, 0], scratch,
            )
        listener.check()
        if code == -1:
            raise MemoryError(f"{most} spanning trees of {n} words")
        if code <= 0:
            raise ValueError(
                f"scores of arcs hold what is no number up to {MOST_SCORE:g}, or the arcs contain "
                "no tree"
            )
        more = code
    else:
        extra = np.array(checked("added", trees, np.int32, None, n))
        check_table(extra, 0, <int32_t>n_arcs - 1, "added")
        more = extra.shape[0]
    out_heads_array = np.empty((k + more, n), dtype=np.int32)
    out_labels_array = np.empty((k + more, n), dtype=np.int32)
    out_scores_array = np.full((k + more, n_columns + 1), np.nan)
    cdef int32_t[:, ::1] out_heads = out_heads_array, out_labels = out_labels_array
    cdef double[:, ::1] out_scores = out_scores_array
    cdef double *row = <double *>malloc(n * sizeof(double))
    if row == NULL:
        raise MemoryError(f"no memory for the scores of {n} arcs")
    with nogil:
        for j in range(k + more):
            for m in range(n):
                arc = of_tree[j, m] if j < k else extra[j - k, m]
                out_heads[j, m] = heads[j, m] if j < k else arc_heads[arc]
                out_labels[j, m] = labels[j, m] if j < k else arc_labels[arc]
                row[m] = scores[arc]
            if j < k:
                for c in range(n_columns):
                    out_scores[j, c] = known[j, c]
            out_scores[j, n_columns] = 0.0 + pairwise_sum(row, n)  # never minus 0
        free(row)
    return out_heads_array, out_labels_array, out_scores_array


cdef int best_of(
    const int32_t *heads,            # IN: [n_arcs]
    const int32_t *with_head,        # IN: [n_arcs]
    const double *scores,            # IN: [n_arcs]
    Py_ssize_t n_arcs,
    const int32_t *of_tree,          # IN: [k, n]
    Py_ssize_t k,
    int n,
    int most,
    int32_t *trees,                  # OUT: [most, n], the arc of each word
    SpanningScratch *scratch,
) noexcept nogil:
    """How many trees there are; -1 where memory is short, -2 where a score is no number."""
    cdef Py_ssize_t a, i, size = n + 1
    cdef int j, m, found
    cdef int32_t *best = <int32_t *>malloc(n_arcs * sizeof(int32_t))
    cdef int32_t *words = <int32_t *>malloc(n_arcs * sizeof(int32_t))
    cdef int32_t *numbers = <int32_t *>malloc(size * size * sizeof(int32_t))
    cdef int32_t *found_heads = <int32_t *>malloc(most * size * sizeof(int32_t))
    cdef double *table = <double *>malloc(size * size * sizeof(double))
    cdef double *totals = <double *>malloc(most * sizeof(double))
    if (
        best == NULL or words == NULL or numbers == NULL or found_heads == NULL or table == NULL
        or totals == NULL
    ):
        found = -1
    else:
        found = 0
        for a in range(n_arcs):
            best[a] = -1
            words[a] = 0
            if not fabs(scores[a]) <= MOST_SCORE:
                found = -2
    if found == 0:
        for i in range(k):
            for m in range(n):
                words[of_tree[i * n + m]] = m + 1
        for a in range(n_arcs):
            i = with_head[a]
            if best[i] < 0 or scores[a] > scores[best[i]]:
                best[i] = <int32_t>a
        for i in range(size * size):
            table[i] = -INFINITY
        memset(numbers, 0, size * size * sizeof(int32_t))
        for i in range(n_arcs):
            a = best[i]
            if a >= 0:
                table[heads[a] * size + words[a]] = scores[a]
                numbers[heads[a] * size + words[a]] = <int32_t>a
        found = k_best_trees(table, n, True, most, found_heads, totals, scratch)
        for j in range(found):
            for m in range(1, n + 1):
                trees[j * n + m - 1] = numbers[found_heads[j * size + m] * size + m]
    free(best)
    free(words)
    free(numbers)
    free(found_heads)
    free(table)
    free(totals)
    return found
