"""Candidate lists made from arrays, many sentences at once: checked, joined, cut and ordered.

The trees of all lists are *flat*: heads and labels int32[cells], the words of one tree after the
other, list by list.  A list may come in several *parts*, one from each source.  There is no thread
but the caller's: a list of eight trees takes a microsecond, less than it costs to wake another.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport NAN
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from tk_spacy.trees.tree_rows cimport group_rows, is_single_rooted, known_trees
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.index_checks cimport all_within

cdef enum:
    RUN = 16   # groups that are sorted by insertion


cdef struct Lists:
    Py_ssize_t n_lists
    Py_ssize_t n_parts          # of each list
    const int32_t *heads        # flat
    const int32_t *labels
    const double *scores        # part by part [trees, its columns]
    const Py_ssize_t *starts    # [n_lists * n_parts + 1], the trees of each part
    const Py_ssize_t *lengths   # [n_lists], words
    const Py_ssize_t *columns   # [n_parts + 1], the score columns of each part
    const Py_ssize_t *own       # rows of each list that are the sources' own, the main one first
    const Py_ssize_t *own_starts  # [n_lists + 1]
    Py_ssize_t n_labels
    Py_ssize_t k                # trees of a list, at most
    bint known                  # whether these are distinct trees with labels that there are
    bint in_turn                # whether lists are cut by rank among their part, not by main score
    # Made from them:
    Py_ssize_t *place           # [trees], the new row of each tree, -1 where it is cut
    Py_ssize_t *picked          # [trees], the old row of each new one, from the list's start on
    Py_ssize_t *counts          # [n_lists], trees


cdef struct Scratch:
    # For lists of m trees and n words at most:
    Py_ssize_t *seen            # [n + 1]
    Py_ssize_t walks
    Py_ssize_t *table           # a power of two, 2m at least
    Py_ssize_t *group           # [m], of each tree
    Py_ssize_t *first           # [m], a group's first tree
    Py_ssize_t *order           # [m], groups, best first
    Py_ssize_t *merged          # [m]
    double *main                # [m], a group's main score
    uint8_t *kept               # [m], whether a group stays
    uint8_t *is_own             # [m], of each tree


cdef bint is_before(double score, double other) noexcept nogil:
    """Whether a score comes before another; NaN comes last."""
    return score > other or (other != other and score == score)


cdef void sort(Scratch *s, Py_ssize_t n) noexcept nogil:
    """The groups by falling main score, NaN last, otherwise in their order: runs, then merged."""
    cdef Py_ssize_t *at = s.order
    cdef Py_ssize_t *to = s.merged
    cdef Py_ssize_t *swap
    cdef Py_ssize_t start, middle, stop = 0, i, j, item, width = RUN
    while stop < n:
        start = stop
        stop = min(start + RUN, n)
        at[start] = start
        for i in range(start + 1, stop):
            j = i
            while j > start and is_before(s.main[i], s.main[at[j - 1]]):
                at[j] = at[j - 1]
                j -= 1
            at[j] = i
    while width < n:
        stop = 0
        while stop < n:
            start = stop
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for item in range(start, stop):
                if j < stop and (i == middle or is_before(s.main[at[j]], s.main[at[i]])):
                    to[item] = at[j]
                    j += 1
                else:
                    to[item] = at[i]
                    i += 1
        swap = at
        at, to = to, swap
        width *= 2
    s.order, s.merged = at, to


cdef Py_ssize_t keep(Scratch *s, Py_ssize_t row, Py_ssize_t left) noexcept nogil:
    """A tree stays; returns how many more may."""
    cdef Py_ssize_t group = s.group[row]
    if left and not s.kept[group]:
        s.kept[group] = True
        return left - 1
    return left


cdef void keep_by_score(
    const Lists *x, Scratch *s, const Py_ssize_t *own, Py_ssize_t n_own, Py_ssize_t n_groups
) noexcept nogil:
    """The own trees stay, and those with the best main scores."""
    cdef Py_ssize_t i, left = x.k
    for i in range(n_own):
        left = keep(s, own[i], left)
    for i in range(n_groups):
        left = keep(s, s.first[s.order[i]], left)


cdef void keep_in_turn(
    const Lists *x, Scratch *s, const Py_ssize_t *starts, const Py_ssize_t *own, Py_ssize_t n_own,
) noexcept nogil:
    """The own trees stay, part by part, of all the main one first; then the next best of each."""
    cdef Py_ssize_t p, i, row, left = x.k, longest = 0, first = starts[0]
    for i in range(starts[x.n_parts] - first):
        s.is_own[i] = False
    for i in range(n_own):
        s.is_own[own[i]] = True
    for p in range(x.n_parts):
        longest = max(longest, starts[p + 1] - starts[p])
        if n_own and starts[p] - first <= own[0] < starts[p + 1] - first:
            left = keep(s, own[0], left)
        for row in range(starts[p] - first, starts[p + 1] - first):
            if s.is_own[row]:
                left = keep(s, row, left)
    for i in range(longest):
        for p in range(x.n_parts):
            row = starts[p] - first + i
            if row < starts[p + 1] - first and not s.is_own[row]:
                left = keep(s, row, left)
        if not left:
            return


cdef bint arrange_list(
    Lists *x, Scratch *s, Py_ssize_t number, const int32_t *heads, const int32_t *labels,
    const double *scores,
) noexcept nogil:
    """Fill place, picked and counts of a list; False where it is none."""
    cdef const Py_ssize_t *starts = x.starts + number * x.n_parts
    cdef const Py_ssize_t *own = x.own + x.own_starts[number]
    cdef Py_ssize_t first = starts[0], m = starts[x.n_parts] - first, n = x.lengths[number]
    cdef Py_ssize_t n_own = x.own_starts[number + 1] - x.own_starts[number]
    cdef Py_ssize_t width = x.columns[1] - x.columns[0], n_groups, mask, i, group, n_new = 0
    cdef double score
    if m < 1 or n < 1:
        return False
    for i in range(n_own):
        if own[i] < 0 or own[i] >= m:
            return False
    if x.known:
        for i in range(m):
            s.group[i] = s.first[i] = i
        n_groups = m
    else:
        for i in range(m):
            if not is_single_rooted(heads + i * n, n, s.seen, &s.walks):
                return False
        if not all_within(labels, m * n, 0, <int32_t>(x.n_labels - 1)):
            return False
        mask = 16
        while mask < 2 * m:
            mask *= 2
        n_groups = group_rows(heads, labels, m, n, s.table, mask - 1, s.group, s.first)
    for i in range(n_groups):
        s.main[i] = NAN
    for i in range(starts[1] - first):  # the first part alone has the main source's scores
        group, score = s.group[i], scores[i * width]
        if not (s.main[group] >= score or score != score):
            s.main[group] = score
    sort(s, n_groups)
    for i in range(n_groups):
        s.kept[i] = x.k >= n_groups
    if x.k < n_groups:
        if x.in_turn:
            keep_in_turn(x, s, starts, own, n_own)
        else:
            keep_by_score(x, s, own, n_own, n_groups)
    # From here on `merged` is the new row of each group.
    for i in range(n_groups):
        group = s.order[i]
        s.merged[group] = -1
        if s.kept[group]:
            s.merged[group] = n_new
            x.picked[first + n_new] = s.first[group]
            n_new += 1
    for i in range(m):
        x.place[first + i] = s.merged[s.group[i]]
    x.counts[number] = n_new
    return True


cdef Py_ssize_t arrange(Lists *x, Scratch *s) noexcept nogil:
    """Arrange all lists; returns how many were done before one that is none."""
    cdef Py_ssize_t number, p, cells = 0, values = 0, part
    for number in range(x.n_lists):
        if not arrange_list(x, s, number, x.heads + cells, x.labels + cells, x.scores + values):
            return number
        part = number * x.n_parts
        cells += (x.starts[part + x.n_parts] - x.starts[part]) * x.lengths[number]
        for p in range(x.n_parts):
            values += (x.starts[part + p + 1] - x.starts[part + p]) \
                * (x.columns[p + 1] - x.columns[p])
    return x.n_lists


cdef void write_trees(const Lists *x, int32_t *heads, int32_t *labels) noexcept nogil:
    """The new lists' trees, flat."""
    cdef Py_ssize_t number, i, n, old, first, cells = 0, done = 0
    for number in range(x.n_lists):
        n, first = x.lengths[number], x.starts[number * x.n_parts]
        for i in range(x.counts[number]):
            old = cells + x.picked[first + i] * n
            memcpy(heads + done, x.heads + old, n * sizeof(int32_t))
            memcpy(labels + done, x.labels + old, n * sizeof(int32_t))
            done += n
        cells += (x.starts[(number + 1) * x.n_parts] - first) * n


cdef void write_scores(const Lists *x, double *scores) noexcept nogil:
    """The new lists' scores [trees, all columns]: of equal trees each column's best."""
    cdef Py_ssize_t number, p, row, i, first, start, width, place, done = 0
    cdef Py_ssize_t columns = x.columns[x.n_parts]
    cdef const double *given = x.scores
    cdef double *to
    for number in range(x.n_lists):
        first = x.starts[number * x.n_parts]
        for p in range(x.n_parts):
            start, width = x.columns[p], x.columns[p + 1] - x.columns[p]
            for row in range(
                x.starts[number * x.n_parts + p], x.starts[number * x.n_parts + p + 1]
            ):
                place = x.place[row]
                if place >= 0:
                    to = scores + (done + place) * columns
                    if x.picked[first + place] == row - first:
                        for i in range(columns):
                            to[i] = NAN
                        memcpy(to + start, given, width * sizeof(double))
                    else:
                        for i in range(width):
                            # NaN is passed over: a tree that one list scored keeps that score.
                            if not (to[start + i] >= given[i] or given[i] != given[i]):
                                to[start + i] = given[i]
                given += width
        done += x.counts[number]


cdef list arranged_lists(Lists *x):
    """(trees, labels, scores, own rows) of each list; None where one is none."""
    cdef Py_ssize_t total = x.starts[x.n_lists * x.n_parts], columns = x.columns[x.n_parts]
    cdef Py_ssize_t most_trees = 0, most_words = 0, slots = 16, number, first, n, k, i
    cdef Py_ssize_t trees = 0, cells = 0
    for number in range(x.n_lists):
        first = x.starts[number * x.n_parts]
        most_trees = max(most_trees, x.starts[(number + 1) * x.n_parts] - first)
        most_words = max(most_words, x.lengths[number])
    while slots < 2 * most_trees:
        slots *= 2
    cdef Scratch scratch
    # One block: three rows of numbers for all trees, then the scratch.
    cdef Py_ssize_t *block = <Py_ssize_t *>calloc(
        2 * total + x.n_lists + most_words + 1 + slots + 5 * most_trees
        + 2 * (most_trees // sizeof(Py_ssize_t) + 1), sizeof(Py_ssize_t)
    )
    cdef double[:, ::1] new_scores
    cdef int32_t[::1] new_labels
    cdef int32_t *new_heads
    if block == NULL:
        raise MemoryError(f"no memory to arrange {total} trees")
    try:
        x.place, x.picked, x.counts = block, block + total, block + 2 * total
        scratch.seen = x.counts + x.n_lists
        scratch.walks = 0
        scratch.table = scratch.seen + most_words + 1
        scratch.group = scratch.table + slots
        scratch.first = scratch.group + most_trees
        scratch.order = scratch.first + most_trees
        scratch.merged = scratch.order + most_trees
        scratch.main = <double *>(scratch.merged + most_trees)
        scratch.kept = <uint8_t *>(scratch.main + most_trees)
        scratch.is_own = scratch.kept + sizeof(Py_ssize_t) * (
            most_trees // <Py_ssize_t>sizeof(Py_ssize_t) + 1
        )
        with nogil:
            number = arrange(x, &scratch)
        if number < x.n_lists:
            return None
        for number in range(x.n_lists):
            trees += x.counts[number]
            cells += x.counts[number] * x.lengths[number]
        # In the memory of a bytes object, which numpy lets no one write to.
        memory = PyBytes_FromStringAndSize(NULL, cells * sizeof(int32_t))
        labels = np.empty(cells, dtype=np.int32)
        scores = np.empty((trees, columns))
        if cells:  # there may be no lists
            new_labels, new_scores = labels, scores
            new_heads = <int32_t *>PyBytes_AS_STRING(memory)
            with nogil:
                write_trees(x, new_heads, &new_labels[0])
                write_scores(x, &new_scores[0, 0])
        heads = np.frombuffer(memory, dtype=np.int32) if cells else labels
        labels.setflags(write=False)
        scores.setflags(write=False)
        found = []
        trees = cells = 0
        for number in range(x.n_lists):
            k, n, first = x.counts[number], x.lengths[number], x.starts[number * x.n_parts]
            shape = (k, n)
            places = []
            for i in range(x.own_starts[number], x.own_starts[number + 1]):
                places.append(x.place[first + x.own[i]])
            found.append((
                known_trees(heads[cells : cells + k * n].reshape(shape)),
                labels[cells : cells + k * n].reshape(shape),
                scores[trees : trees + k],
                places,
            ))
            trees += k
            cells += k * n
        return found
    finally:
        free(block)


def arrange_one(
    given_heads, given_labels, given_scores, rows, *, Py_ssize_t n_labels, k=None, bint known=False
):
    """The trees of one sentence as a list is made of them: see `CandidateList.from_arrays`.

    given_heads, given_labels: int32[m, n].  given_scores: float64[m, n_sources], one source at
    least.  rows: of the sources' own trees, the main one first.  n_labels: labels that there are.
    k: trees that stay, at most; None for all.
    known: whether these are distinct trees, each with one root, that were checked before.

    Returns (trees, labels, scores, places): CheckedTrees, int32[k, n] and float64[k, n_sources],
    and the new rows of the own trees, -1 for one that was cut.  None where there is no tree, one
    with another number of roots than one, a label or row beyond what there is, or no score.
    Raises TypeError or ValueError for arrays of other kinds and shapes.
    """
    given_heads = checked("heads", given_heads, np.int32, None, None)
    cdef const int32_t[:, ::1] heads = given_heads
    cdef Py_ssize_t m = heads.shape[0], n = heads.shape[1], i
    cdef const int32_t[:, ::1] labels = checked("labels", given_labels, np.int32, m, n)
    cdef const double[:, ::1] scores = checked("scores", given_scores, np.float64, m, None)
    cdef Py_ssize_t[2] starts
    cdef Py_ssize_t[2] columns
    cdef Py_ssize_t[2] own_starts
    cdef Py_ssize_t *own
    cdef Lists x
    if m < 1 or n < 1 or scores.shape[1] < 1:
        return None
    starts[0] = columns[0] = own_starts[0] = 0
    starts[1], columns[1], own_starts[1] = m, scores.shape[1], len(rows)
    own = <Py_ssize_t *>calloc(len(rows) + 1, sizeof(Py_ssize_t))
    if own == NULL:
        raise MemoryError("no memory for the own trees")
    try:
        for i in range(own_starts[1]):
            own[i] = rows[i]
        x.n_lists = x.n_parts = 1
        x.heads, x.labels, x.scores = &heads[0, 0], &labels[0, 0], &scores[0, 0]
        x.starts, x.lengths, x.columns = starts, &n, columns
        x.own, x.own_starts = own, own_starts
        x.n_labels = n_labels
        x.k = m if k is None else k
        x.known, x.in_turn = known, False
        found = arranged_lists(&x)
        return None if found is None else found[0]
    finally:
        free(own)


def arrange_lists(
    given_heads, given_labels, given_scores, given_starts, given_lengths, *, columns=None,
    own=None, Py_ssize_t n_labels, k=None, bint known=False, bint in_turn=False,
):
    """As `arrange_one`, for many sentences, and the union of several parts of each.

    given_heads, given_labels: int32[cells], flat.
    given_scores: float64[values], part by part [trees, columns of that part].
    given_starts: intp[S * P + 1], where the trees of each part begin, the P parts of a list one
        after the other, and their number.
    given_lengths: intp[S], the words of each sentence.
    columns: how many score columns each of the P parts has; None for one part with all.
    own: for each list the rows of the sources' own trees, counted through its parts, the main one
        first; None for the first row alone.
    in_turn: a list is cut to k trees by rank: first the own trees, part by part and of all the main
        one first, then the next best of each part, in turn.

    Returns a list of what `arrange_one` returns; None where `arrange_one` returns None for one.
    Raises TypeError or ValueError for arrays of other kinds, and for such that do not fit.
    """
    heads_array = checked("heads", given_heads, np.int32, None)
    cdef const int32_t[::1] heads = heads_array
    cdef const int32_t[::1] labels = checked("labels", given_labels, np.int32, len(heads_array))
    cdef const double[::1] scores = checked("scores", given_scores, np.float64, None)
    cdef const Py_ssize_t[::1] starts = checked("starts", given_starts, np.intp, None)
    cdef const Py_ssize_t[::1] lengths = checked("lengths", given_lengths, np.intp, None)
    cdef Py_ssize_t n_lists = lengths.shape[0], n_parts = 1 if columns is None else len(columns)
    if n_parts < 1 or starts.shape[0] != n_lists * n_parts + 1:
        raise ValueError(
            f"starts hold {starts.shape[0]} numbers, expected {n_lists * n_parts + 1}: one more "
            f"than the {n_parts} parts of {n_lists} lists"
        )
    counts = np.diff(starts)
    if starts[0] or (counts < 0).any():
        raise ValueError("starts must ascend from 0")
    if not n_lists:
        return []
    counts = counts.reshape(n_lists, n_parts)
    trees = counts.sum(axis=1)
    if int(trees.min()) < 1 or int(np.min(lengths)) < 1:
        return None
    if columns is None:
        columns = [scores.shape[0] // starts[n_lists]]
    columns = checked("columns", columns, np.intp, n_parts)
    if int(columns.min()) < 1:
        return None
    # None of the factors is larger than the memory that there is, so no product is too large.
    fit = max(int(np.max(lengths)), starts[n_lists * n_parts]) <= heads.shape[0] \
        and int(columns.max()) <= scores.shape[0]
    cells = int((trees * lengths).sum()) if fit else None
    values = int((counts * columns).sum()) if fit else None
    if cells != heads.shape[0] or values != scores.shape[0]:
        raise ValueError(
            f"there are {heads.shape[0]} heads and {scores.shape[0]} scores, not as many as "
            "starts, lengths and columns say"
        )
    cdef const Py_ssize_t[::1] ends = np.concatenate([[0], np.cumsum(columns)]).astype(np.intp)
    if own is None:
        own_array = np.zeros(n_lists, dtype=np.intp)
        own_starts_array = np.arange(n_lists + 1, dtype=np.intp)
    else:
        if len(own) != n_lists:
            raise ValueError(f"own holds rows of {len(own)} lists, expected {n_lists}")
        own_array = np.array([row for rows in own for row in rows] or [0], dtype=np.intp)
        own_starts_array = np.zeros(n_lists + 1, dtype=np.intp)
        np.cumsum([len(rows) for rows in own], out=own_starts_array[1:])
    cdef const Py_ssize_t[::1] own_rows = own_array
    cdef const Py_ssize_t[::1] own_starts = own_starts_array
    cdef Lists x
    x.n_lists, x.n_parts = n_lists, n_parts
    x.heads, x.labels, x.scores = &heads[0], &labels[0], &scores[0]
    x.starts, x.lengths, x.columns = &starts[0], &lengths[0], &ends[0]
    x.own, x.own_starts = &own_rows[0], &own_starts[0]
    x.n_labels = n_labels
    x.k = heads.shape[0] if k is None else k
    x.known, x.in_turn = known, in_turn
    return arranged_lists(&x)
