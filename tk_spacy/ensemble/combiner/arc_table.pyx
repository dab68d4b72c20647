"""The arcs of a list of candidates and what the combiner sees of them, in compiled loops.

All sums go from the first candidate, or arc, to the last, one after the other.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table, check_values

cdef enum:
    N_MIXED = 10         # hashed features of an arc

N_HASHED = N_MIXED

cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ULL


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
    keys = np.empty(k, dtype=np.int64)
    cdef Py_ssize_t count = _distinct_arcs(heads, labels, arcs, of_tree, starts, keys)
    words, own_heads, own_labels, with_head = (row[:count].copy() for row in arcs)
    return words, own_heads, own_labels, of_tree, with_head, starts


cdef Py_ssize_t _distinct_arcs(
    const int32_t[:, ::1] heads,     # IN
    const int32_t[:, ::1] labels,    # IN
    int32_t[:, ::1] arcs,            # OUT: words, heads, labels, numbers of word and head
    int32_t[:, ::1] of_tree,         # OUT
    int32_t[::1] starts,             # OUT
    int64_t[::1] keys,               # room
) noexcept:
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], m, j, i, low, high, count = 0, found
    cdef int32_t pairs = -1
    cdef int64_t key
    with nogil:
        for m in range(n):
            starts[m] = <int32_t>count
            found = 0
            for j in range(k):
                key = (<int64_t>heads[j, m] << 32) | labels[j, m]
                # Its place among the sorted keys.
                low, high = 0, found
                while low < high:
                    i = (low + high) >> 1
                    if keys[i] < key:
                        low = i + 1
                    else:
                        high = i
                if low < found and keys[low] == key:
                    continue
                for i in range(found, low, -1):
                    keys[i] = keys[i - 1]
                keys[low] = key
                found += 1
            for i in range(found):
                if i == 0 or keys[i] >> 32 != keys[i - 1] >> 32:
                    pairs += 1
                arcs[0, count + i] = <int32_t>m
                arcs[1, count + i] = <int32_t>(keys[i] >> 32)
                arcs[2, count + i] = <int32_t>(keys[i] & 0x7FFFFFFF)
                arcs[3, count + i] = pairs
            for j in range(k):
                key = (<int64_t>heads[j, m] << 32) | labels[j, m]
                low, high = 0, found
                while low < high:
                    i = (low + high) >> 1
                    if keys[i] < key:
                        low = i + 1
                    else:
                        high = i
                of_tree[j, m] = <int32_t>(count + low)
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


def hashed_arcs(arcs, labelled, heads, int every, label_codes, tag_codes, *, int nearest, int bits):
    """Who holds each arc, and who its head, with label, tags and distance: int32[a, N_HASHED].

    arcs: words, heads and labels, int32[a] each, as of `distinct_arcs`.
    labelled, heads: float64[q, a], of `arc_shares`; a source holds an arc that has a share in the
    last of its `every` rows.  label_codes: uint64[labels].  tag_codes: uint64[n + 1], of the root
    and the words.  nearest: longer distances count as this one.  bits: ids are below 2 ** bits.
    """
    words, own_heads, labels = (checked("arcs", column, np.int32, None) for column in arcs)
    labelled = checked("labelled", labelled, np.float64, None, len(words))
    heads = checked("heads", heads, np.float64, *labelled.shape)
    label_codes = checked("label_codes", label_codes, np.uint64, None)
    tag_codes = checked("tag_codes", tag_codes, np.uint64, None)
    check_values(words, 0, <int32_t>len(tag_codes) - 2, "words")
    check_values(own_heads, 0, <int32_t>len(tag_codes) - 1, "heads")
    check_values(labels, 0, <int32_t>len(label_codes) - 1, "labels")
    if every < 1 or len(labelled) % every or not 0 < bits < 32:
        raise ValueError(f"every is {every} of {len(labelled)} rows, bits are {bits}")
    out = np.empty((len(words), N_MIXED), dtype=np.int32)
    _hashed_arcs(
        words, own_heads, labels, labelled, heads, every, label_codes, tag_codes, nearest,
        64 - bits, out,
    )
    return out


cdef void _hashed_arcs(
    const int32_t[::1] words, const int32_t[::1] own_heads, const int32_t[::1] labels,
    const double[:, ::1] labelled, const double[:, ::1] heads, int every,
    const uint64_t[::1] label_codes, const uint64_t[::1] tag_codes, int nearest, int shift,
    int32_t[:, ::1] out,             # OUT
) noexcept:
    cdef Py_ssize_t a, source, row
    cdef int distance
    cdef uint64_t voters, head_voters, label, modifier, head, far
    with nogil:
        for a in range(words.shape[0]):
            voters = head_voters = 0
            for source in range(labelled.shape[0] // every):
                row = source * every + every - 1
                voters |= <uint64_t>(labelled[row, a] > 0) << source
                head_voters |= <uint64_t>(heads[row, a] > 0) << source
            label, head = label_codes[labels[a]], tag_codes[own_heads[a]]
            modifier = tag_codes[words[a] + 1]
            distance = max(-nearest, min(nearest, own_heads[a] - 1 - words[a]))
            if own_heads[a] == 0:
                distance = nearest + 1
            far = <uint64_t>(distance + nearest)
            out[a, 0] = cut(mixed(1, voters), shift)
            out[a, 1] = cut(mixed(mixed(2, voters), label), shift)
            out[a, 2] = cut(mixed(mixed(3, voters), modifier), shift)
            out[a, 3] = cut(mixed(mixed(4, voters), far), shift)
            out[a, 4] = cut(mixed(mixed(mixed(5, voters), label), modifier), shift)
            out[a, 5] = cut(mixed(mixed(6, head_voters), modifier), shift)
            out[a, 6] = cut(mixed(mixed(mixed(7, head_voters), modifier), head), shift)
            out[a, 7] = cut(mixed(mixed(mixed(8, head_voters), far), modifier), shift)
            out[a, 8] = cut(mixed(mixed(9, label), modifier), shift)
            out[a, 9] = cut(mixed(mixed(mixed(10, label), modifier), head), shift)


cdef inline uint64_t mixed(uint64_t key, uint64_t part) noexcept nogil:
    """A number with one more value in it: multiplicative hashing."""
    key = (key ^ part) * MULTIPLIER
    return key ^ (key >> 29)


cdef inline int32_t cut(uint64_t key, int shift) noexcept nogil:
    return <int32_t>(key >> shift)
