"""The parts of candidate trees, each distinct part of a list once.

A part row is int32[9]: the positions of the words in the roles g, h, t, s, m (see part_types), -1
where a type has no such role, then the labels of the arcs into h, t, s and m, 0 where the type does
not read them.  Position n + 1 is the boundary node: the sibling that a first modifier lacks.

Source: the paper's section 4, "caching": candidates of a list share most of their parts, so each is
found once and every candidate is a set of indices.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from functools import cache

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.features.columns cimport G, H, LABEL_H, LABEL_M, LABEL_S, LABEL_T, M, POS, S, T, WIDTH
from tk_spacy.features.hashing cimport mix
from tk_spacy.utils.index_checks cimport check_starts, check_table, check_values
from tk_spacy.trees.tree_rows cimport CheckedTrees
from tk_spacy.features.part_types import DEPENDENTS, ROLES, ROW_WIDTH

assert WIDTH == ROW_WIDTH

cdef enum:
    SUMS = 7             # of a frame

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
    cdef const int32_t[:, ::1] ids = checked(
        "labels", labels, np.int32, trees.rows.shape[0], trees.rows.shape[1]
    )
    cdef const int32_t[::1] wanted = wanted_columns(part_type)
    cdef int k = <int>ids.shape[0], n = <int>ids.shape[1]
    cdef Found found
    find_parts(
        &trees.rows[0, 0] if k and n else NULL, &ids[0, 0] if k and n else NULL, k, n, &wanted[0],
        &found,
    )
    return _taken(&found, k)


cdef object _taken(Found *found, int k):
    """What was found in k trees as arrays."""
    if found.rows == NULL:
        raise MemoryError("no memory for the parts of trees")
    rows = np.empty((found.n_rows, WIDTH), dtype=np.int32)
    starts = np.empty(k + 1, dtype=np.int32)
    members = np.empty(found.n_members, dtype=np.int32)
    cdef int32_t[:, ::1] row_cells = rows
    cdef int32_t[::1] start_cells = starts, member_cells = members
    if found.n_rows:
        memcpy(&row_cells[0, 0], found.rows, found.n_rows * WIDTH * sizeof(int32_t))
    memcpy(&start_cells[0], found.starts, (k + 1) * sizeof(int32_t))
    if found.n_members:
        memcpy(&member_cells[0], found.members, found.n_members * sizeof(int32_t))
    forget(found)
    return rows, starts, members


cdef bint make_room(
    Found *found, Py_ssize_t k, Py_ssize_t most_rows, Py_ssize_t n_slots
) noexcept nogil:
    """Room for what there is in k trees; False, and found.rows NULL, where memory is short.

    n_slots: of the hash table, which becomes empty.
    """
    cdef Py_ssize_t i
    found.n_rows = found.n_members = 0
    found.rows = <int32_t *>malloc(max(most_rows, 1) * WIDTH * sizeof(int32_t))
    found.starts = <int32_t *>malloc((k + 1) * sizeof(int32_t))
    found.members = <int32_t *>malloc(max(most_rows, 1) * sizeof(int32_t))
    found.table = <int32_t *>malloc(max(n_slots, 1) * sizeof(int32_t))
    if (
        found.rows == NULL or found.starts == NULL or found.members == NULL or found.table == NULL
    ):
        forget(found)
        return False
    found.starts[0] = 0
    for i in range(n_slots):
        found.table[i] = -1
    return True


cdef void drop_table(Found *found) noexcept nogil:
    """Gives back the room that only the search needed."""
    free(found.table)
    found.table = NULL
    cdef int32_t *less = <int32_t *>realloc(
        found.rows, max(found.n_rows, 1) * WIDTH * sizeof(int32_t)
    )
    if less != NULL:
        found.rows = less


cdef void forget(Found *found) noexcept nogil:
    """Gives back all memory; there are no rows then."""
    free(found.rows)
    free(found.starts)
    free(found.members)
    free(found.table)
    found.rows = found.starts = found.members = found.table = NULL


cdef CheckedTrees _trees(heads):
    return heads if isinstance(heads, CheckedTrees) else CheckedTrees(heads)


@cache
def wanted_columns(part_type):
    """Whether a type reads each column of a part row: int32[9]."""
    roles = part_type.roles
    edges = {slot.role for slot in part_type.slots if slot.kind == "edge"}
    return np.array(
        [role in roles for role in ROLES] + [role in edges for role in DEPENDENTS], dtype=np.int32
    )


cdef void find_parts(
    const int32_t *all_heads,        # IN: [k, n]
    const int32_t *all_labels,       # IN: [k, n]
    int k, int n,
    const int32_t *wanted,           # IN: [WIDTH]
    Found *found,                    # OUT: rows NULL where memory is short
) noexcept nogil:
    """The distinct parts of a type in the trees over a sentence; see extract_parts."""
    cdef int n_rows = 0, n_members = 0, j, m, h, s, row
    cdef const int32_t *heads
    cdef const int32_t *labels
    cdef int n_slots = 16
    while n_slots < 2 * k * n:
        n_slots *= 2
    cdef int32_t *sibling = <int32_t *>malloc(2 * (n + 2) * sizeof(int32_t))
    if sibling == NULL:
        found.rows = found.starts = found.members = found.table = NULL
        return
    cdef int32_t *last = sibling + n + 2
    cdef int32_t part[WIDTH]
    if not make_room(found, k, k * n, n_slots):
        free(sibling)
        return
    for j in range(k):
        heads, labels = all_heads + j * n, all_labels + j * n
        # The nearest earlier modifier on the same side: scan away from every head.
        for m in range(n + 2):
            last[m] = n + 1
        for m in range(1, n + 1):
            h = heads[m - 1]
            if m > h:
                sibling[m] = last[h]
                last[h] = m
        for m in range(n + 2):
            last[m] = n + 1
        for m in range(n, 0, -1):
            h = heads[m - 1]
            if m < h:
                sibling[m] = last[h]
                last[h] = m
        for m in range(1, n + 1):
            h = heads[m - 1]
            s = sibling[m]
            if wanted[G] and h == 0:
                continue
            if wanted[T] and s > n:
                continue
            part[M] = m
            part[H] = h
            part[G] = heads[h - 1] if wanted[G] else -1
            part[S] = s if wanted[S] else -1
            part[T] = sibling[s] if wanted[T] else -1
            part[LABEL_M] = labels[m - 1] if wanted[LABEL_M] else 0
            part[LABEL_H] = labels[h - 1] if wanted[LABEL_H] else 0
            part[LABEL_S] = _label(labels, part[S], n) if wanted[LABEL_S] else 0
            part[LABEL_T] = _label(labels, part[T], n) if wanted[LABEL_T] else 0
            row = _find(found.table, n_slots - 1, found.rows, n_rows, part)
            if row == n_rows:
                n_rows += 1
            found.members[n_members] = row
            n_members += 1
        found.starts[j + 1] = n_members
    free(sibling)
    found.n_rows, found.n_members = n_rows, n_members
    drop_table(found)


cdef inline int32_t _label(const int32_t *labels, int32_t word, int n) noexcept nogil:
    return BOUNDARY_LABEL_ID if word > n else labels[word - 1]


cdef int32_t BOUNDARY_LABEL_ID = 1


cdef inline int _find(
    int32_t *table, uint32_t mask, int32_t *rows, int n_rows, const int32_t *part
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
            if rows[row * WIDTH + i] != part[i]:
                same = False
                break
        if same:
            return row
        slot = (slot + 1) & mask
    table[slot] = n_rows
    for i in range(WIDTH):
        rows[n_rows * WIDTH + i] = part[i]
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
    cdef const int32_t[:, ::1] ids = labels, values = fields
    cdef int k = <int>ids.shape[0], n = <int>ids.shape[1]
    cdef Found found
    find_frames(
        &values[0, 0], values.shape[1], &trees.rows[0, 0] if k and n else NULL,
        &ids[0, 0] if k and n else NULL, k, n, &found,
    )
    return _taken(&found, k)


cdef void find_frames(
    const int32_t *fields,           # IN: [n + 2, n_fields]
    Py_ssize_t n_fields,
    const int32_t *all_heads,        # IN: [k, n]
    const int32_t *all_labels,       # IN: [k, n], up to MAX_LABEL
    int k, int n,
    Found *found,                    # OUT: rows NULL where memory is short
) noexcept nogil:
    """The distinct frames in the trees over a sentence; see extract_frames."""
    cdef int n_rows = 0, n_labels = 1, j, h, m, i, row
    cdef int n_slots = 16
    cdef const int32_t *heads
    cdef const int32_t *labels
    cdef int32_t part[WIDTH]
    cdef uint64_t label
    cdef uint64_t *sum
    cdef uint8_t *often
    while n_slots < 2 * k * (n + 1):
        n_slots *= 2
    for i in range(k * n):
        n_labels = max(n_labels, all_labels[i] + 1)
    # For each head: running hashes of left labels, right labels, tags, bag, repeated; two counts.
    # And of each label, how often it was seen below it.
    cdef uint64_t *sums = <uint64_t *>malloc((n + 1) * SUMS * sizeof(uint64_t))
    cdef uint8_t *seen = <uint8_t *>malloc(<size_t>(n + 1) * n_labels)
    if sums == NULL or seen == NULL or not make_room(found, k, k * (n + 1), n_slots):
        free(sums)
        free(seen)
        found.rows = found.starts = found.members = found.table = NULL
        return
    for j in range(k):
        heads, labels = all_heads + j * n, all_labels + j * n
        memset(sums, 0, (n + 1) * SUMS * sizeof(uint64_t))
        memset(seen, 0, <size_t>(n + 1) * n_labels)
        for m in range(1, n + 1):
            h = heads[m - 1]
            sum = sums + h * SUMS
            i = m > h
            label = mix(mix(labels[m - 1], 7), 77)  # small numbers need two rounds
            sum[i] = mix(mix(sum[i], 1), label)
            # The head's own place among its modifiers is known by the change of side.
            sum[2] = mix(mix(sum[2], 1 + i), fields[m * n_fields + POS])
            sum[3] += label
            often = seen + <size_t>h * n_labels + labels[m - 1]
            if often[0] == 1:
                sum[4] += label
            if often[0] < 2:
                often[0] += 1
            sum[5 + (m > h)] += 1
        for h in range(n + 1):
            sum = sums + h * SUMS
            part[G] = cut(sum[0])
            part[H] = h
            part[T] = cut(sum[1])
            part[S] = cut(sum[2])
            part[M] = cut(sum[3])
            part[LABEL_H] = labels[h - 1] if h > 0 else 0
            part[LABEL_S] = cut(sum[4])
            part[LABEL_T] = <int32_t>(min(sum[5], <uint64_t>7) * 8 + min(sum[6], <uint64_t>7))
            part[LABEL_M] = cut(mix(mix(sum[0], 1), sum[1]))
            row = _find(found.table, n_slots - 1, found.rows, n_rows, part)
            if row == n_rows:
                n_rows += 1
            found.members[j * (n + 1) + h] = row
        found.starts[j + 1] = (j + 1) * (n + 1)
    free(sums)
    free(seen)
    found.n_rows, found.n_members = n_rows, k * (n + 1)
    drop_table(found)


def extract_spans(heads, labels):
    """The distinct spans in the candidate trees of one sentence: a word with all that is below it.

    Arguments and result as those of extract_parts, with a row for each word: H the word, LABEL_M
    the label of the arc into it, G and M the first and the last word below it or itself, LABEL_H
    how many words there are, itself included, which is less than M - G + 1 where others come
    between; 0 elsewhere.
    """
    cdef CheckedTrees trees = _trees(heads)
    labels = checked("labels", labels, np.int32, trees.rows.shape[0], trees.rows.shape[1])
    cdef const int32_t[:, ::1] ids = labels
    cdef int k = <int>ids.shape[0], n = <int>ids.shape[1]
    cdef Found found
    find_spans(
        &trees.rows[0, 0] if k and n else NULL, &ids[0, 0] if k and n else NULL, k, n, &found
    )
    return _taken(&found, k)


cdef void find_spans(
    const int32_t *all_heads,        # IN: [k, n]
    const int32_t *all_labels,       # IN: [k, n]
    int k, int n,
    Found *found,                    # OUT: rows NULL where memory is short
) noexcept nogil:
    """The distinct spans in the trees over a sentence; see extract_spans."""
    cdef int n_rows = 0, j, m, h, row
    cdef int n_slots = 16
    cdef const int32_t *heads
    cdef int32_t *span
    cdef int32_t part[WIDTH]
    while n_slots < 2 * k * n:
        n_slots *= 2
    # For each word: the first and the last below it, and their number.
    cdef int32_t *reach = <int32_t *>malloc(3 * (n + 1) * sizeof(int32_t))
    if reach == NULL or not make_room(found, k, k * n, n_slots):
        free(reach)
        found.rows = found.starts = found.members = found.table = NULL
        return
    for j in range(WIDTH):
        part[j] = 0
    for j in range(k):
        heads = all_heads + j * n
        for m in range(1, n + 1):
            span = reach + 3 * m
            span[0] = span[1] = m
            span[2] = 0
        for m in range(1, n + 1):
            h = m
            while h > 0:
                span = reach + 3 * h
                span[0] = min(span[0], m)
                span[1] = max(span[1], m)
                span[2] += 1
                h = heads[h - 1]
        for m in range(1, n + 1):
            span = reach + 3 * m
            part[G] = span[0]
            part[H] = m
            part[M] = span[1]
            part[LABEL_H] = span[2]
            part[LABEL_M] = all_labels[j * n + m - 1]
            row = _find(found.table, n_slots - 1, found.rows, n_rows, part)
            if row == n_rows:
                n_rows += 1
            found.members[j * n + m - 1] = row
        found.starts[j + 1] = (j + 1) * n
    free(reach)
    found.n_rows, found.n_members = n_rows, k * n
    drop_table(found)


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
    cdef int k = starts.shape[0] - 1
    rows, new_starts, new_members = rows.copy(), np.array(starts), np.array(members)
    cdef int32_t[:, ::1] row_cells = rows
    cdef int32_t[::1] start_cells = new_starts, member_cells = new_members
    cdef int32_t[::1] room = np.empty(max(len(rows), 1), dtype=np.int32)
    cdef Found found
    found.n_rows, found.n_members = len(rows), len(new_members)
    found.rows = &row_cells[0, 0] if found.n_rows else NULL
    found.starts = &start_cells[0]
    found.members = &member_cells[0] if found.n_members else NULL
    keep_contested(&found, k, &room[0])
    return rows[: found.n_rows].copy(), new_starts, new_members[: found.n_members].copy()


cdef void keep_contested(
    Found *found,                    # IN, OUT
    int k,
    int32_t *room,                   # [found.n_rows]
) noexcept nogil:
    """Leaves out the parts that all of k trees have, in place."""
    cdef int i, j, kept = 0, n_members = 0, stop, start = found.starts[0]
    cdef int32_t *new = room
    for i in range(found.n_rows):
        room[i] = 0
    for i in range(found.n_members):
        room[found.members[i]] += 1
    for i in range(found.n_rows):
        if room[i] < k:
            if kept < i:
                memcpy(
                    found.rows + kept * WIDTH, found.rows + i * WIDTH, WIDTH * sizeof(int32_t)
                )
            new[i] = kept
            kept += 1
        else:
            new[i] = -1
    found.starts[0] = 0
    for j in range(k):
        stop = found.starts[j + 1]
        for i in range(start, stop):
            if new[found.members[i]] >= 0:
                found.members[n_members] = new[found.members[i]]
                n_members += 1
        found.starts[j + 1] = n_members
        start = stop
    found.n_rows, found.n_members = kept, n_members


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
