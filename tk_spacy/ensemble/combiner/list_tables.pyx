"""What the combiner sees of the arcs of many lists, in compiled loops over lists.

Exponentials and logarithms are numpy's, as C's might differ in the last bit.  All sums go from the
first candidate, or arc, to the last, one after the other.
"""

from libc.math cimport INFINITY, isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from tk_spacy.ensemble.combiner.arc_table cimport find_arcs
from tk_spacy.features.score_features cimport normalize
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport check_table

cdef enum:
    N_HASHED = 10        # hashed features of an arc
    MOST_VOTERS = 64     # sources that a set of them tells apart

cdef uint64_t MULTIPLIER = 0x9E3779B97F4A7C15ULL


def list_weights(scores, columns, own, scales, temperatures):
    """What each source weighs the candidates of l lists: of each list float64[s * (t + 1), k].

    scores: of each list float64[k, c], k 1 at least, NaN or infinite where there are none.
    columns: int32[l, s], the column of each of s sources in each list, -1 where it has none.
    own: int32[l, s], the row of each source's own tree, -1 for its best-scored one.
    scales: float64[s], positive.  temperatures: float64[t], positive.

    Of each source the softmax at every temperature, then all the weight on its own tree; a source
    that has no column, or neither an own tree nor scores, weighs all alike.
    Raises TypeError or ValueError for other arrays.
    """
    scales = checked("scales", scales, np.float64, None)
    temperatures = checked("temperatures", temperatures, np.float64, None)
    columns = checked("columns", columns, np.int32, len(scores), len(scales))
    own = checked("own", own, np.int32, *columns.shape)
    cdef Py_ssize_t i, s, j, t, _t, k, c, at = 0
    cdef Py_ssize_t n_sources = len(scales), each = len(temperatures) + 1
    cdef Py_ssize_t best
    cdef const int32_t[:, ::1] places = columns, rows = own
    cdef const double[::1] widths = scales, factors = temperatures
    cdef const double[:, ::1] given
    cdef double top, value
    scores = [checked("scores", item, np.float64, None, None) for item in scores]
    sizes = [len(item) for item in scores]
    powers_array = np.zeros(sum(sizes) * n_sources * each)
    cdef double[::1] powers = powers_array
    # Of each list and source the row of the own tree, -1 where it weighs all alike.
    own_array = np.full(columns.shape, -1, dtype=np.int32)
    cdef int32_t[:, ::1] own_rows = own_array
    for i in range(len(sizes)):
        given = scores[i]
        k = given.shape[0]
        for s in range(n_sources):
            c = places[i, s]
            if not -1 <= c < given.shape[1] or not -1 <= rows[i, s] < k:
                raise ValueError(f"source {s} of list {i}: column {c}, row {rows[i, s]}")
            if c >= 0:
                best, top = -1, -INFINITY
                for j in range(k):
                    if isfinite(given[j, c]) and given[j, c] > top:
                        top = given[j, c]
                own_rows[i, s] = rows[i, s] if rows[i, s] >= 0 else best_scored(given, c)
                if own_rows[i, s] >= 0 and top > -INFINITY:
                    for t in range(each - 1):
                        for j in range(k):
                            value = given[j, c] if isfinite(given[j, c]) else -INFINITY
                            powers[at + t * k + j] = (value - top) / (widths[s] * factors[t])
            at += each * k
    np.exp(powers_array, out=powers_array)
    at = 0
    for i in range(len(sizes)):
        k = sizes[i]
        for s in range(n_sources):
            for _t in range(each - 1):
                normalize(&powers[at], k)
                at += k
            best = own_rows[i, s]
            for j in range(k):
                powers[at + j] = 1.0 / k if best < 0 else (1.0 if j == best else 0.0)
            at += k
    ends = np.cumsum(sizes).tolist()
    each *= n_sources
    return [
        powers_array[(stop - size) * each : stop * each].reshape(each, size)
        for stop, size in zip(ends, sizes, strict=True)
    ]


cdef int32_t best_scored(const double[:, ::1] scores, Py_ssize_t column) noexcept nogil:
    """The row of the highest score, of equals the first; -1 where all are NaN.

    As numpy's nanargmax: where none is above minus infinity, NaN is as good.
    """
    cdef Py_ssize_t j, best = 0
    cdef double top = -INFINITY
    cdef bint is_any = False
    for j in range(scores.shape[0]):
        if not isnan(scores[j, column]):
            is_any = True
            if scores[j, column] > top:
                best, top = j, scores[j, column]
    return <int32_t>best if is_any else -1


def arc_tables(
    heads, labels, weights, label_codes, tag_codes, *, int every, int nearest, int bits,
    double floor,
):
    """The arcs of l lists and their features.

    heads, labels: of each list int32[k, n], k and n 1 at least, heads 0..n.
    weights: of each list float64[q, k], `every` rows for each source.
    label_codes: of each list uint64[labels].  tag_codes: uint64[_], of the root and the words of
    each list.  nearest: longer distances count as this one.  bits: ids of hashed features are below
    2 ** bits.  floor: on shares, under a logarithm.

    Returns of each list a tuple: words, heads and labels of the arcs, the arc of each word in each
    tree, the numbers of word and head and where each word's arcs begin, all as of `distinct_arcs`;
    float32[a, 4 * q + 2], the shares of arcs, those of all arcs with their head, the logarithms of
    both, and how many sources hold the arc, and its head; int32[a, N_HASHED], who holds the arc,
    and who its head, with label, tags and distance.  A source holds an arc that has a share in the
    last of its rows.  Raises TypeError or ValueError for other arrays.
    """
    cdef Py_ssize_t n_lists = len(heads), i, k, n, q = 0, cells = 0, words = 0, most = 1, at, word
    if not n_lists == len(labels) == len(weights) == len(label_codes):
        raise ValueError(
            f"heads of {n_lists} lists, labels of {len(labels)}, weights of {len(weights)} and "
            f"codes of {len(label_codes)}"
        )
    heads = [checked("heads", item, np.int32, None, None) for item in heads]
    labels = [
        checked("labels", item, np.int32, *trees.shape)
        for item, trees in zip(labels, heads, strict=True)
    ]
    if n_lists:
        q = len(weights[0])
    weights = [
        checked("weights", item, np.float64, q, len(trees))
        for item, trees in zip(weights, heads, strict=True)
    ]
    if every < 1 or q % every or not 0 < bits < 32:
        raise ValueError(f"every is {every} of {q} rows, bits are {bits}")
    cdef const int32_t[:, ::1] own_heads, own_labels
    cdef const double[:, ::1] own_weights
    cdef const uint64_t[::1] codes, tags = checked("tag_codes", tag_codes, np.uint64, None)
    for i in range(n_lists):
        own_heads, own_labels, codes = heads[i], labels[i], label_codes[i]
        k, n = own_heads.shape[0], own_heads.shape[1]
        if k < 1 or n < 1:
            raise ValueError(f"list {i} has {k} trees over {n} words")
        check_table(own_heads, 0, <int32_t>n, "heads")
        check_table(own_labels, 0, <int32_t>codes.shape[0] - 1, "labels")
        cells += k * n
        words += n
        most = max(most, k)
    if tags.shape[0] != words + n_lists:
        raise ValueError(f"{tags.shape[0]} codes of tags, expected {words + n_lists}")
    arcs_array = np.empty((4, cells), dtype=np.int32)
    of_tree_array = np.empty(cells, dtype=np.int32)
    starts_array = np.empty(words + n_lists, dtype=np.int32)
    counts_array = np.empty(n_lists, dtype=np.intp)
    if not n_lists:
        return []
    cdef int32_t[:, ::1] arcs = arcs_array
    cdef int32_t[::1] of_tree = of_tree_array, starts = starts_array
    cdef Py_ssize_t[::1] counts = counts_array
    cdef int64_t[::1] keys = np.empty(most, dtype=np.int64)
    cells = words = at = 0
    for i in range(n_lists):
        own_heads, own_labels = heads[i], labels[i]
        with nogil:
            counts[i] = find_arcs(
                &own_heads[0, 0], &own_labels[0, 0], own_heads.shape[0], own_heads.shape[1],
                &arcs[0, at], &arcs[1, at], &arcs[2, at], &arcs[3, at], &of_tree[cells],
                &starts[words], &keys[0],
            )
        at += counts[i]
        cells += own_heads.shape[0] * own_heads.shape[1]
        words += own_heads.shape[1] + 1
    shares_array = np.zeros((at, 2 * q))
    dense_array = np.empty((at, 4 * q + 2), dtype=np.float32)
    hashed_array = np.empty((at, N_HASHED), dtype=np.int32)
    arcs_array = arcs_array[:, :at].copy()
    cdef double[:, ::1] shares = shares_array
    cdef float[:, ::1] dense = dense_array
    cdef int32_t[:, ::1] hashed = hashed_array
    arcs = arcs_array
    cells = word = at = 0
    for i in range(n_lists):
        own_weights, codes, own_heads = weights[i], label_codes[i], heads[i]
        k, n = own_heads.shape[0], own_heads.shape[1]
        with nogil:
            add_shares(
                &of_tree[cells], k, n, &own_weights[0, 0] if q else NULL, q, &arcs[3, at],
                counts[i], &shares[at, 0] if q else NULL,
            )
            mix_arcs(
                &arcs[0, at], &arcs[1, at], &arcs[2, at], counts[i],
                &shares[at, 0] if q else NULL, q, every, &codes[0], &tags[word], nearest,
                64 - bits, &hashed[at, 0], &dense[at, 0],
            )
        at += counts[i]
        cells += k * n
        word += n + 1
    dense_array[:, : 2 * q] = shares_array
    shares_array += floor
    np.log(shares_array, out=shares_array)
    dense_array[:, 2 * q : 4 * q] = shares_array
    found = []
    cells = words = at = 0
    for trees, count in zip(heads, counts_array.tolist()):
        k, n = trees.shape
        own = slice(at, at + count)
        found.append(
            (
                arcs_array[0, own], arcs_array[1, own], arcs_array[2, own],
                of_tree_array[cells : cells + k * n].reshape(k, n), arcs_array[3, own],
                starts_array[words : words + n + 1], dense_array[own], hashed_array[own],
            )
        )
        at += count
        cells += k * n
        words += n + 1
    return found


cdef void add_shares(
    const int32_t *of_tree,          # IN: [k, n]
    Py_ssize_t k, Py_ssize_t n,
    const double *weights,           # IN: [q, k]
    Py_ssize_t q,
    const int32_t *with_head,        # IN: [n_arcs], ascending
    Py_ssize_t n_arcs,
    double *shares,                  # IN, OUT: [n_arcs, 2 * q], zeros: of arcs, and of their heads
) noexcept nogil:
    cdef Py_ssize_t i, j, m, a, first = 0, last
    cdef double total
    cdef double *own
    for j in range(k):
        for m in range(n):
            own = shares + of_tree[j * n + m] * 2 * q
            for i in range(q):
                own[i] += weights[i * k + j]
    while first < n_arcs:
        last = first
        while last < n_arcs and with_head[last] == with_head[first]:
            last += 1
        for i in range(q):
            total = 0.0
            for a in range(first, last):
                total += shares[a * 2 * q + i]
            for a in range(first, last):
                shares[a * 2 * q + q + i] = total
        first = last


cdef void mix_arcs(
    const int32_t *words, const int32_t *heads, const int32_t *labels,  # IN: [n_arcs]
    Py_ssize_t n_arcs,
    const double *shares,            # IN: [n_arcs, 2 * q]
    Py_ssize_t q,
    int every,
    const uint64_t *label_codes, const uint64_t *tag_codes,
    int nearest,
    int shift,
    int32_t *hashed,                 # OUT: [n_arcs, N_HASHED]
    float *dense,                    # OUT: [n_arcs, 4 * q + 2], the last two columns
) noexcept nogil:
    cdef Py_ssize_t a, source, row
    cdef int distance, n_voters, n_head_voters
    cdef uint64_t voters, head_voters, label, modifier, head, far
    cdef int32_t *out
    for a in range(n_arcs):
        voters = head_voters = 0
        n_voters = n_head_voters = 0
        for source in range(q // every):
            row = a * 2 * q + source * every + every - 1
            if shares[row] > 0:
                voters |= <uint64_t>1 << (source & (MOST_VOTERS - 1))
                n_voters += 1
            if shares[row + q] > 0:
                head_voters |= <uint64_t>1 << (source & (MOST_VOTERS - 1))
                n_head_voters += 1
        dense[a * (4 * q + 2) + 4 * q] = n_voters
        dense[a * (4 * q + 2) + 4 * q + 1] = n_head_voters
        label, head = label_codes[labels[a]], tag_codes[heads[a]]
        modifier = tag_codes[words[a] + 1]
        distance = max(-nearest, min(nearest, heads[a] - 1 - words[a]))
        if heads[a] == 0:
            distance = nearest + 1
        far = <uint64_t>(distance + nearest)
        out = hashed + a * N_HASHED
        out[0] = cut(mixed(1, voters), shift)
        out[1] = cut(mixed(mixed(2, voters), label), shift)
        out[2] = cut(mixed(mixed(3, voters), modifier), shift)
        out[3] = cut(mixed(mixed(4, voters), far), shift)
        out[4] = cut(mixed(mixed(mixed(5, voters), label), modifier), shift)
        out[5] = cut(mixed(mixed(6, head_voters), modifier), shift)
        out[6] = cut(mixed(mixed(mixed(7, head_voters), modifier), head), shift)
        out[7] = cut(mixed(mixed(mixed(8, head_voters), far), modifier), shift)
        out[8] = cut(mixed(mixed(9, label), modifier), shift)
        out[9] = cut(mixed(mixed(mixed(10, label), modifier), head), shift)


cdef inline uint64_t mixed(uint64_t key, uint64_t part) noexcept nogil:
    """A number with one more value in it: multiplicative hashing."""
    key = (key ^ part) * MULTIPLIER
    return key ^ (key >> 29)


cdef inline int32_t cut(uint64_t key, int shift) noexcept nogil:
    return <int32_t>(key >> shift)
