"""The parts in the trees of many lists, each list's apart: one compiled loop over the lists.

What a list's parts are says `parts`; here nothing depends on the other lists.
"""

from cython cimport final
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from tk_spacy.features.columns cimport POS, WIDTH
from tk_spacy.features.parts cimport (
    Found, find_frames, find_parts, find_spans, forget, keep_contested,
)
from tk_spacy.trees.tree_rows cimport CheckedTrees
from tk_spacy.utils.index_checks cimport check_table, check_values
from tk_spacy.features.parts import MAX_LABEL, wanted_columns
from tk_spacy.utils.array_checks import checked

cdef enum:
    PARTS = 0
    FRAMES = 1
    SPANS = 2


@final
cdef class ListTrees:
    """The trees of some lists, and their labels.

    trees: CheckedTrees of each list, k trees over n words.  labels: int32[k, n] of each, places in
    its table.  tables: int32[_] of each list, other ids of labels.
    Raises TypeError or ValueError for other arrays, for labels that are no places, and where there
    are not as many.
    """

    cdef readonly int n_lists
    cdef Py_ssize_t n_words
    cdef int32_t[:, ::1] sizes       # of each list k and n
    cdef int32_t[::1] heads          # of all trees, one after the other
    cdef int32_t[::1] labels

    def __init__(self, trees, labels, tables):
        cdef Py_ssize_t i, j, m, total = 0, n_words = 0
        cdef CheckedTrees own
        cdef const int32_t[:, ::1] ids
        cdef const int32_t[::1] table
        cdef int32_t[:, ::1] sizes
        cdef int32_t[::1] all_heads, all_labels
        if not len(trees) == len(labels) == len(tables):
            raise ValueError(
                f"trees of {len(trees)} lists, labels of {len(labels)} and {len(tables)} tables"
            )
        sizes = np.empty((len(trees), 2), dtype=np.int32)
        for i in range(sizes.shape[0]):
            own = trees[i]
            if own is None:
                raise TypeError(f"trees of list {i} must be CheckedTrees, got None")
            sizes[i, 0], sizes[i, 1] = own.rows.shape[0], own.rows.shape[1]
            n_words += own.rows.shape[1]
            total += own.rows.shape[0] * own.rows.shape[1]
        all_heads = np.empty(total, dtype=np.int32)
        all_labels = np.empty(total, dtype=np.int32)
        total = 0
        for i in range(sizes.shape[0]):
            own = trees[i]
            ids = checked("labels", labels[i], np.int32, sizes[i, 0], sizes[i, 1])
            table = tables[i]
            check_table(ids, 0, <int32_t>table.shape[0] - 1, "labels")
            for j in range(ids.shape[0]):
                for m in range(ids.shape[1]):
                    all_heads[total] = own.rows[j, m]
                    all_labels[total] = table[ids[j, m]]
                    total += 1
        # All at once: where something was wrong before, nothing is half made.
        self.n_lists, self.n_words, self.sizes = sizes.shape[0], n_words, sizes
        self.heads, self.labels = all_heads, all_labels

    def parts(self, part_type, *, contested=False):
        """The distinct parts of a PartType: see `parts.extract_parts`.

        contested: without the parts that all trees of a list share.
        Returns rows int32[p, 9] and members int32[_] of all lists, one list after the other; their
        numbers of each list, int64[l, 2]; and starts int32[_], k + 1 numbers of each list, in its
        own members.
        """
        return self._found(PARTS, wanted_columns(part_type), None, contested)

    def frames(self, fields, *, contested=False):
        """The distinct frames, as `parts`: see `parts.extract_frames`.

        fields: int32[_, F], those of all sentences, n + 2 rows of each.
        """
        fields = checked("fields", fields, np.int32, self.n_words + 2 * self.n_lists, None)
        if fields.shape[1] <= POS:
            raise ValueError(f"fields must have more than {POS} columns, got {fields.shape[1]}")
        check_values(self.labels, 0, MAX_LABEL, "labels")
        return self._found(FRAMES, None, fields, contested)

    def spans(self, *, contested=False):
        """The distinct spans, as `parts`: see `parts.extract_spans`."""
        return self._found(SPANS, None, None, contested)

    cdef object _found(
        self, int kind, const int32_t[::1] wanted, const int32_t[:, ::1] fields, bint contested
    ):
        cdef Py_ssize_t i, n_starts = self.n_lists
        cdef Found *found = <Found *>calloc(max(self.n_lists, 1), sizeof(Found))
        if found == NULL:
            raise MemoryError("no memory for the parts of lists")
        try:
            if self.n_lists and not self._find(kind, wanted, fields, contested, found):
                raise MemoryError("no memory for the parts of lists")
            counts_array = np.empty((self.n_lists, 2), dtype=np.int64)
            for i in range(self.n_lists):
                counts_array[i] = found[i].n_rows, found[i].n_members
                n_starts += self.sizes[i, 0]
            n_rows, n_members = counts_array.sum(axis=0).tolist()
            rows = np.empty((n_rows, WIDTH), dtype=np.int32)
            members = np.empty(n_members, dtype=np.int32)
            starts = np.empty(n_starts, dtype=np.int32)
            _gather(found, self.sizes, rows, members, starts)
        finally:
            for i in range(self.n_lists):
                forget(&found[i])
            free(found)
        return rows, members, counts_array, starts

    cdef bint _find(
        self, int kind, const int32_t[::1] wanted, const int32_t[:, ::1] fields, bint contested,
        Found *found,
    ) noexcept:
        """False where memory is short."""
        cdef Py_ssize_t i, at = 0, row = 0
        cdef int k, n
        cdef const int32_t *heads
        cdef const int32_t *labels
        cdef int32_t *room
        with nogil:
            for i in range(self.n_lists):
                k, n = self.sizes[i, 0], self.sizes[i, 1]
                heads = labels = NULL
                if k and n:
                    heads, labels = &self.heads[at], &self.labels[at]
                if kind == FRAMES:
                    find_frames(
                        &fields[row, 0], fields.shape[1], heads, labels, k, n, &found[i]
                    )
                elif kind == SPANS:
                    find_spans(heads, labels, k, n, &found[i])
                else:
                    find_parts(heads, labels, k, n, &wanted[0], &found[i])
                if found[i].rows == NULL:
                    return False
                if contested:
                    room = <int32_t *>malloc(max(found[i].n_rows, 1) * sizeof(int32_t))
                    if room == NULL:
                        return False
                    keep_contested(&found[i], k, room)
                    free(room)
                at += k * n
                row += n + 2
        return True


cdef void _gather(
    const Found *found, const int32_t[:, ::1] sizes, int32_t[:, ::1] rows, int32_t[::1] members,
    int32_t[::1] starts,
) noexcept:
    """Copies what was found in each list to its place among that of all."""
    cdef Py_ssize_t i, row = 0, member = 0, start = 0
    with nogil:
        for i in range(sizes.shape[0]):
            if found[i].n_rows:
                memcpy(&rows[row, 0], found[i].rows, found[i].n_rows * WIDTH * sizeof(int32_t))
            if found[i].n_members:
                memcpy(&members[member], found[i].members, found[i].n_members * sizeof(int32_t))
            memcpy(&starts[start], found[i].starts, (sizes[i, 0] + 1) * sizeof(int32_t))
            row += found[i].n_rows
            member += found[i].n_members
            start += sizes[i, 0] + 1
