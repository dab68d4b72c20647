"""The parts of candidate trees, each distinct part of a list once.

A part row is int32[9]: the positions of the words in the roles g, h, t, s, m (see part_types), -1
where a type has no such role, then the labels of the arcs into h, t, s and m, 0 where the type does
not read them.  Position n + 1 is the boundary node: the sibling that a first modifier lacks.

Source: the paper's section 4, "caching": candidates of a list share most of their parts, so each is
found once and every candidate is a set of indices.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from functools import cache

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.features.columns cimport G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, POS, S, T, WIDTH
from tk_spacy.features.hashing cimport mix
from tk_spacy.utils.index_checks cimport check_starts, check_table, check_values
from tk_spacy.trees.tree_rows cimport CheckedTrees
from tk_spacy.features.part_types import DEPENDENTS, ROLES, ROW_WIDTH

assert WIDTH == ROW_WIDTH

BOUNDARY_LABEL = 1
MAX_LABEL = 1 << 20
"""Largest label id of frames, whose labels are counted in a table of all."""


def extract_parts(heads, labels, part_type):
    """The distinct parts of one type in the candidate trees of one sentence.

    heads: int32[k, n], 0..n, valid trees; as CheckedTrees, which are not checked again.
    labels: int32[k, n], label ids > 0, 0 for unseen.  part_type: a PartType.

    Returns (rows, starts, members): rows int32[p, 9], the distinct parts in the order in which they
    are met; candidate j consists of the parts members[starts[j]:starts[j + 1]] (int32, in word
    order), starts int32[k + 1].  Raises TypeError or ValueError for other arrays, and for heads
    that are no trees.
    """
    cdef CheckedTrees trees = _trees(heads)
    cdef Py_ssize_t k = trees.rows.shape[0], n = trees.rows.shape[1]
    labels = checked("labels", labels, np.int32, k, n)
    wanted = _wanted(part_type)
    rows = np.empty((k * n, WIDTH), dtype=np.int32)
    members = np.empty(k * n, dtype=np.int32)
    starts = np.zeros(k + 1, dtype=np.int32)
    cdef int n_rows = _extract(trees.rows, labels, wanted, rows, starts, members)
    return rows[:n_rows].copy(), starts, members[: starts[k]].copy()


cdef CheckedTrees _trees(heads):
    return heads if isinstance(heads, CheckedTrees) else CheckedTrees(heads)


@cache
def _wanted(part_type):
    """Whether a type reads each column of a part row: int32[9]."""
    roles = part_type.roles
    edges = {slot.role for slot in part_type.slots if slot.kind == "edge"}
    return np.array(
        [role in roles for role in ROLES] + [role in edges for role in DEPENDENTS], dtype=np.int32
    )


cdef int _extract(
    const int32_t[:, ::1] heads,     # IN
    const int32_t[:, ::1] labels,    # IN
    const int32_t[::1] wanted,       # IN
    int32_t[:, ::1] rows,            # OUT
    int32_t[::1] starts,             # OUT
    int32_t[::1] members,            # OUT
) except -1:
    cdef int k = heads.shape[0], n = heads.shape[1], n_rows = 0, n_members = 0
    cdef int j, m, h, s, row
    cdef int n_slots = 16
    while n_slots < 2 * k * n:
        n_slots *= 2
    cdef int32_t *table = <int32_t *>malloc(n_slots * sizeof(int32_t))
    cdef int32_t *sibling = <int32_t *>malloc((n + 2) * sizeof(int32_t))
    cdef int32_t *last = <int32_t *>malloc((n + 2) * sizeof(int32_t))
    if table == NULL or sibling == NULL or last == NULL:
        free(table)
        free(sibling)
        free(last)
        raise MemoryError("no memory for the part table")
    cdef int32_t part[WIDTH]
    with nogil:
        for j in range(n_slots):
            table[j] = -1
        for j in range(k):
            # The nearest earlier modifier on the same side: scan away from every head.
            for m in range(n + 2):
                last[m] = n + 1
            for m in range(1, n + 1):
                h = heads[j, m - 1]
                if m > h:
                    sibling[m] = last[h]
                    last[h] = m
            for m in range(n + 2):
                last[m] = n + 1
            for m in range(n, 0, -1):
                h = heads[j, m - 1]
                if m < h:
                    sibling[m] = last[h]
                    last[h] = m
            for m in range(1, n + 1):
                h = heads[j, m - 1]
                s = sibling[m]
                if wanted[G] and h == 0:
                    continue
                if wanted[T] and s > n:
                    continue
                part[M] = m
                part[H] = h
                part[G] = heads[j, h - 1] if wanted[G] else -1
                part[S] = s if wanted[S] else -1
                part[T] = sibling[s] if wanted[T] else -1
                part[LABEL_M] = labels[j, m - 1] if wanted[LABEL_M] else 0
                part[LABEL_H] = labels[j, h - 1] if wanted[LABEL_H] else 0
                part[LABEL_S] = _label(labels[j], part[S], n) if wanted[LABEL_S] else 0
                part[LABEL_T] = _label(labels[j], part[T], n) if wanted[LABEL_T] else 0
                row = _find(table, n_slots - 1, rows, n_rows, part)
                if row == n_rows:
                    n_rows += 1
                members[n_members] = row
                n_members += 1
            starts[j + 1] = n_members
    free(table)
    free(sibling)
    free(last)
    return n_rows


cdef inline int32_t _label(const int32_t[::1] labels, int32_t word, int n) noexcept nogil:
    return BOUNDARY_LABEL_ID if word > n else labels[word - 1]


cdef int32_t BOUNDARY_LABEL_ID = 1


cdef inline int _find(
    int32_t *table, uint32_t mask, int32_t[:, ::1] rows, int n_rows, int32_t *part
) noexcept nogil:
    """Index of the part among the rows; appends it where it is new."""
    cdef uint64_t value = 0
    cdef int i, row
    cdef bint same
    for i in range(WIDTH):
        value = (value ^ <uint32_t>part[i]) * <uint64_t>0x9E3779B97F4A7C15ULL
        value ^= value >> 29
    cdef uint32_t slot = <uint32_t>value & mask
    while table[slot] >= 0:
        row = table[slot]
        same = True
        for i in range(WIDTH):
            if rows[row, i] != part[i]:
                same = False
                break
        if same:
            return row
        slot = (slot + 1) & mask
    table[slot] = n_rows
    for i in range(WIDTH):
        rows[n_rows, i] = part[i]
    return n_rows


def extract_frames(fields, heads, labels):
    """The distinct frames in the candidate trees of one sentence: a head and all its modifiers.

    fields: int32[n + 2, F].  heads, labels: as those of extract_parts, and so is the result, with a
    row for each word that is (root included) or may be a head.  A frame's row holds, by the names
    of its columns: H the head, LABEL_H its own label; G and T hashes of the labels on its left and
    right, in order; S of all modifiers' tags, in order; M of the labels in any order, LABEL_S of
    those that occur twice (0 for none); LABEL_T the numbers of modifiers, LABEL_M all of G and T.
    """
    cdef CheckedTrees trees = _trees(heads)
    labels = checked("labels", labels, np.int32, trees.rows.shape[0], trees.rows.shape[1])
    fields = checked("fields", fields, np.int32, trees.rows.shape[1] + 2, None)
    if fields.shape[1] <= POS:
        raise ValueError(f"fields must have more than {POS} columns, got {fields.shape[1]}")
    check_table(labels, 0, MAX_LABEL, "labels")
    return _extract_frames(fields, trees.rows, labels)


cdef object _extract_frames(
    const int32_t[:, ::1] fields, const int32_t[:, ::1] heads, const int32_t[:, ::1] labels
):
    cdef int k = <int>heads.shape[0], n = <int>heads.shape[1], n_rows = 0, j, h, m, i, row
    cdef int n_slots = 16
    while n_slots < 2 * k * (n + 1):
        n_slots *= 2
    table_array = np.full(n_slots, -1, dtype=np.int32)
    rows_array = np.zeros((k * (n + 1), WIDTH), dtype=np.int32)
    members_array = np.empty(k * (n + 1), dtype=np.int32)
    starts_array = np.arange(k + 1, dtype=np.int32) * np.int32(n + 1)
    # For each head: running hashes of left labels, right labels, tags, bag, repeated; two counts.
    sums_array = np.zeros((n + 1, 7), dtype=np.uint64)
    cdef int n_labels = np.max(labels, initial=0) + 1
    seen_array = np.zeros((n + 1, n_labels), dtype=np.uint8)
    cdef int32_t[::1] table = table_array
    cdef int32_t[:, ::1] rows = rows_array
    cdef int32_t[::1] members = members_array
    cdef uint64_t[:, ::1] sums = sums_array
    cdef uint8_t[:, ::1] seen = seen_array
    cdef int32_t part[WIDTH]
    cdef uint64_t label
    with nogil:
        for j in range(k):
            for h in range(n + 1):
                for i in range(7):
                    sums[h, i] = 0
                for i in range(n_labels):
                    seen[h, i] = 0
            for m in range(1, n + 1):
                h = heads[j, m - 1]
                i = m > h
                label = mix(mix(labels[j, m - 1], 7), 77)  # small numbers need two rounds
                sums[h, i] = mix(mix(sums[h, i], 1), label)
                # The head's own place among its modifiers is known by the change of side.
                sums[h, 2] = mix(mix(sums[h, 2], 1 + i), fields[m, POS])
                sums[h, 3] += label
                i = labels[j, m - 1]
                if seen[h, i] == 1:
                    sums[h, 4] += label
                if seen[h, i] < 2:
                    seen[h, i] += 1
                sums[h, 5 + (m > h)] += 1
            for h in range(n + 1):
                part[G] = cut(sums[h, 0])
                part[H] = h
                part[T] = cut(sums[h, 1])
                part[S] = cut(sums[h, 2])
                part[M] = cut(sums[h, 3])
                part[LABEL_H] = labels[j, h - 1] if h > 0 else 0
                part[LABEL_S] = cut(sums[h, 4])
                part[LABEL_T] = <int32_t>(min(sums[h, 5], 7) * 8 + min(sums[h, 6], 7))
                part[LABEL_M] = cut(mix(mix(sums[h, 0], 1), sums[h, 1]))
                row = _find(&table[0], n_slots - 1, rows, n_rows, part)
                if row == n_rows:
                    n_rows += 1
                members[j * (n + 1) + h] = row
    return rows_array[:n_rows].copy(), starts_array, members_array


def extract_spans(heads, labels):
    """The distinct spans in the candidate trees of one sentence: a word with all that is below it.

    Arguments and result as those of extract_parts, with a row for each word: H the word, LABEL_M
    the label of the arc into it, G and M the first and the last word below it or itself, LABEL_H
    how many words there are, itself included, which is less than M - G + 1 where others come
    between; 0 elsewhere.
    """
    cdef CheckedTrees trees = _trees(heads)
    labels = checked("labels", labels, np.int32, trees.rows.shape[0], trees.rows.shape[1])
    return _extract_spans(trees.rows, labels)


cdef object _extract_spans(const int32_t[:, ::1] heads, const int32_t[:, ::1] labels):
    cdef int k = <int>heads.shape[0], n = <int>heads.shape[1], n_rows = 0, j, m, h, row
    cdef int n_slots = 16
    while n_slots < 2 * k * n:
        n_slots *= 2
    table_array = np.full(n_slots, -1, dtype=np.int32)
    rows_array = np.zeros((k * n, WIDTH), dtype=np.int32)
    members_array = np.empty(k * n, dtype=np.int32)
    starts_array = np.arange(k + 1, dtype=np.int32) * np.int32(n)
    # For each word: the first and the last below it, and their number.
    reach_array = np.zeros((n + 1, 3), dtype=np.int32)
    cdef int32_t[::1] table = table_array
    cdef int32_t[:, ::1] rows = rows_array
    cdef int32_t[::1] members = members_array
    cdef int32_t[:, ::1] reach = reach_array
    cdef int32_t part[WIDTH]
    for j in range(WIDTH):
        part[j] = 0
    with nogil:
        for j in range(k):
            for m in range(1, n + 1):
                reach[m, 0] = reach[m, 1] = m
                reach[m, 2] = 0
            for m in range(1, n + 1):
                h = m
                while h > 0:
                    reach[h, 0] = min(reach[h, 0], m)
                    reach[h, 1] = max(reach[h, 1], m)
                    reach[h, 2] += 1
                    h = heads[j, h - 1]
            for m in range(1, n + 1):
                part[G] = reach[m, 0]
                part[H] = m
                part[M] = reach[m, 1]
                part[LABEL_H] = reach[m, 2]
                part[LABEL_M] = labels[j, m - 1]
                row = _find(&table[0], n_slots - 1, rows, n_rows, part)
                if row == n_rows:
                    n_rows += 1
                members[j * n + m - 1] = row
    return rows_array[:n_rows].copy(), starts_array, members_array


cdef inline int32_t cut(uint64_t value) noexcept nogil:
    """A hash as an id: 0 stays 0."""
    return <int32_t>((value ^ (value >> 32)) & 0x7FFFFFFF)


def contested_parts(
    rows, const int32_t[::1] starts not None, const int32_t[::1] members not None
):
    """The same without the parts that every candidate has.

    Such parts add the same to every candidate's score, so they never change which is best, nor a
    passive-aggressive update.  Arguments and result as those of extract_parts.
    Raises ValueError for members that are no rows.
    """
    rows = checked("rows", rows, np.int32, None, WIDTH)
    check_starts(starts, members.shape[0], "starts")
    check_values(members, 0, len(rows) - 1, "members")
    cdef int k = starts.shape[0] - 1, n_rows = len(rows), i, j, kept = 0, n_members = 0
    cdef const int32_t[:, ::1] old_rows = rows
    cdef int32_t[::1] count = np.zeros(n_rows, dtype=np.int32)
    cdef int32_t[::1] new = np.empty(n_rows, dtype=np.int32)
    starts_array = np.zeros(k + 1, dtype=np.int32)
    members_array = np.empty(members.shape[0], dtype=np.int32)
    cdef int32_t[::1] new_starts = starts_array, new_members = members_array
    for i in range(members.shape[0]):
        count[members[i]] += 1
    for i in range(n_rows):
        new[i] = kept if count[i] < k else -1
        kept += count[i] < k
    for j in range(k):
        for i in range(starts[j], starts[j + 1]):
            if new[members[i]] >= 0:
                new_members[n_members] = new[members[i]]
                n_members += 1
        new_starts[j + 1] = n_members
    rows_array = np.empty((kept, WIDTH), dtype=np.int32)
    cdef int32_t[:, ::1] new_rows = rows_array
    for i in range(n_rows):
        if new[i] >= 0:
            for j in range(WIDTH):
                new_rows[new[i], j] = old_rows[i, j]
    return rows_array, starts_array, members_array[:n_members].copy()


def slot_rows(rows, part_type):
    """Part rows in slot form, which no longer depends on the roles.

    rows: int32[p, 9].  Returns int32[p, w]: a node slot is one column, a position in the sentence's
    node rows; an edge slot two, the label id and the signed distance modifier - head (0, which
    equals nothing, where the arc's dependent is the boundary node, marked by label BOUNDARY_LABEL).
    """
    rows = checked("rows", rows, np.int32, None, WIDTH)
    cdef const int32_t[:, ::1] given = rows
    columns = _slot_columns(part_type)
    cdef const int32_t[:, ::1] sources = columns
    cdef Py_ssize_t i, c
    cdef int32_t value
    slots = np.empty((len(given), len(columns)), dtype=np.int32)
    cdef int32_t[:, ::1] out = slots
    for i in range(given.shape[0]):
        for c in range(sources.shape[0]):
            value = given[i, sources[c, 0]]
            if sources[c, 1] >= 0:  # a distance
                value -= given[i, sources[c, 1]]
                if given[i, sources[c, 2]] == BOUNDARY_LABEL_ID:
                    value = 0
            out[i, c] = value
    return slots


@cache
def _slot_columns(part_type):
    """Where each column of a slot row comes from: int32[w, 3], columns of part rows.

    For a distance the modifier, the head and the arc's label; for all else one column, and -1.
    """
    columns = []
    for slot in part_type.slots:
        word = ROLES.index(slot.role)
        if slot.kind == "node":
            columns.append((word, -1, -1))
            continue
        label = len(ROLES) + DEPENDENTS.index(slot.role)
        columns += [(label, -1, -1), (word, G if slot.role == "h" else H, label)]
    return np.array(columns, dtype=np.int32)


def exclusive_members(
    const int32_t[::1] starts not None, const int32_t[::1] members not None, int first, int second,
    int n_parts,
):
    """Parts that one of two candidates has and the other has not.

    Returns (parts, signs): int32[e], int32[e]; sign +1 for parts of `first` alone, -1 for parts of
    `second` alone, in ascending order of part.
    Raises ValueError for a candidate or a part that is none.
    """
    cdef int i, count = 0
    check_starts(starts, members.shape[0], "starts")
    for i in (first, second):
        if not 0 <= i < starts.shape[0] - 1:
            raise ValueError(f"candidate {i}, expected 0 to {starts.shape[0] - 2}")
        check_values(members[starts[i] : starts[i + 1]], 0, n_parts - 1, "members")
    cdef int32_t[::1] mark = np.zeros(n_parts, dtype=np.int32)
    for i in range(starts[first], starts[first + 1]):
        mark[members[i]] += 1
    for i in range(starts[second], starts[second + 1]):
        mark[members[i]] -= 1
    for i in range(n_parts):
        count += mark[i] != 0
    parts = np.empty(count, dtype=np.int32)
    signs = np.empty(count, dtype=np.int32)
    cdef int32_t[::1] out_parts = parts, out_signs = signs
    count = 0
    for i in range(n_parts):
        if mark[i]:
            out_parts[count] = i
            out_signs[count] = mark[i]
            count += 1
    return parts, signs
