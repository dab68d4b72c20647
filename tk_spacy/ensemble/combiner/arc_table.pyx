"""The arcs of a list of candidates, and what share of the list holds each, in compiled loops.

All sums go from the first candidate, or arc, to the last, one after the other.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table
from tk_spacy.utils.sorted_values cimport place_of


def distinct_arcs(heads, labels):
    """The distinct arcs of trees, by word, head and label.

    heads, labels: int32[k, n], heads 0..n, labels from 0 on.  Returns words, heads and labels of
    the arcs, int32[a]; the arc of each word in each tree, int32[k, n]; int32[a], a number for each
    word and head; and where the arcs of each word begin, and their number, int32[n + 1].
    Raises TypeError or ValueError for other arrays.
    """
    heads = checked("heads", heads, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *heads.shape)
    check_table(heads, 0, <int32_t>heads.shape[1], "heads")
    check_table(labels, 0, 2**31 - 1, "labels")
    k, n = heads.shape
    arcs = np.empty((4, k * n), dtype=np.int32)
    of_tree = np.empty((k, n), dtype=np.int32)
    starts = np.zeros(n + 1, dtype=np.int32)
    cdef const int32_t[:, ::1] own_heads = heads, own_labels = labels
    cdef int32_t[:, ::1] cells = arcs, places = of_tree
    cdef int32_t[::1] begins = starts
    cdef int64_t[::1] keys = np.empty(k, dtype=np.int64)
    cdef Py_ssize_t count = 0
    if places.shape[0] and places.shape[1]:
        count = find_arcs(
            &own_heads[0, 0], &own_labels[0, 0], places.shape[0], places.shape[1], &cells[0, 0],
            &cells[1, 0], &cells[2, 0], &cells[3, 0], &places[0, 0], &begins[0], &keys[0],
        )
    words, own_heads_of, own_labels_of, with_head = (row[:count].copy() for row in arcs)
    return words, own_heads_of, own_labels_of, of_tree, with_head, starts


cdef Py_ssize_t find_arcs(
    const int32_t *heads,            # IN: [k, n]
    const int32_t *labels,           # IN: [k, n]
    Py_ssize_t k, Py_ssize_t n,
    int32_t *words,                  # OUT: [k * n] at most, as the next three
    int32_t *arc_heads,
    int32_t *arc_labels,
    int32_t *with_head,              # OUT: numbers of word and head
    int32_t *of_tree,                # OUT: [k, n]
    int32_t *starts,                 # OUT: [n + 1]
    int64_t *keys,                   # room: [k]
) noexcept nogil:
    """The number of distinct arcs; see distinct_arcs."""
    cdef Py_ssize_t m, j, i, place, count = 0, found
    cdef int32_t pairs = -1
    cdef int64_t key
    for m in range(n):
        starts[m] = <int32_t>count
        found = 0
        for j in range(k):
            key = (<int64_t>heads[j * n + m] << 32) | labels[j * n + m]
            place = place_of(<const int64_t *>keys, found, key)
            if place < found and keys[place] == key:
                continue
            for i in range(found, place, -1):
                keys[i] = keys[i - 1]
            keys[place] = key
            found += 1
        for i in range(found):
            if i == 0 or keys[i] >> 32 != keys[i - 1] >> 32:
                pairs += 1
            words[count + i] = <int32_t>m
            arc_heads[count + i] = <int32_t>(keys[i] >> 32)
            arc_labels[count + i] = <int32_t>(keys[i] & 0x7FFFFFFF)
            with_head[count + i] = pairs
        for j in range(k):
            key = (<int64_t>heads[j * n + m] << 32) | labels[j * n + m]
            of_tree[j * n + m] = <int32_t>(count + place_of(<const int64_t *>keys, found, key))
        count += found
    starts[n] = <int32_t>count
    return count


def arc_shares(of_tree, with_head, weights):
    """The shares of arcs under weights of the candidates, and those of all with their head.

    of_tree: int32[k, n], the arc of each word in each candidate.  with_head: int32[a], ascending.
    weights: float64[q, k].  Returns two of float64[q, a].
    """
    of_tree = checked("of_tree", of_tree, np.int32, None, None)
    with_head = checked("with_head", with_head, np.int32, None)
    weights = checked("weights", weights, np.float64, None, len(of_tree))
    check_table(of_tree, 0, <int32_t>len(with_head) - 1, "of_tree")
    labelled = np.zeros((len(weights), len(with_head)))
    heads = np.empty((len(weights), len(with_head)))
    _arc_shares(of_tree, with_head, weights, labelled, heads)
    return labelled, heads


cdef void _arc_shares(
    const int32_t[:, ::1] of_tree,   # IN
    const int32_t[::1] with_head,    # IN
    const double[:, ::1] weights,    # IN
    double[:, ::1] labelled,         # IN, OUT
    double[:, ::1] heads,            # OUT
) noexcept:
    cdef Py_ssize_t q, j, m, a, first, last, n_arcs = with_head.shape[0]
    cdef double total
    with nogil:
        for q in range(weights.shape[0]):
            for j in range(of_tree.shape[0]):
                for m in range(of_tree.shape[1]):
                    labelled[q, of_tree[j, m]] += weights[q, j]
            first = 0
            while first < n_arcs:
                total = 0.0
                last = first
                while last < n_arcs and with_head[last] == with_head[first]:
                    total += labelled[q, last]
                    last += 1
                for a in range(first, last):
                    heads[q, a] = total
                first = last
