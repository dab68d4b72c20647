"""The trees of many sentences between lists and the flat arrays of parsers that decide in C.

Such a parser may read a sentence from its end: then its trees are turned round.  In *flat* lists
the words of one tree stand after the other, list by list.
"""

from libc.stdint cimport int32_t

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range


def listed_trees(heads, labels, starts, lengths, counts, *, bint backward=False):
    """The trees that a parser found, as flat lists.

    heads, labels: int32[rows, k], a tree in each column.
    starts, lengths: int32[S], the rows of each sentence: its words, one row before and one after.
    counts: int32[S], trees of each sentence.  backward: whether it was read from its end.
    Returns heads and labels int32[cells].  Raises TypeError or ValueError for arrays that do not
    fit each other.
    """
    heads = checked("heads", heads, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *heads.shape)
    starts = checked("starts", starts, np.int32, None)
    lengths = checked("lengths", lengths, np.int32, len(starts))
    counts = checked("counts", counts, np.int32, len(starts))
    checked_range("lengths", lengths, 2, len(heads))
    checked_range("starts", starts, 0, len(heads))
    checked_range("counts", counts, 0, heads.shape[1])
    ends = starts.astype(np.int64) + lengths
    if len(ends) and int(ends.max()) > len(heads):
        raise ValueError(f"a sentence ends beyond the {len(heads)} rows that there are")
    cells = int(((lengths.astype(np.int64) - 2) * counts).sum())
    out_heads = np.empty(cells, dtype=np.int32)
    out_labels = np.empty(cells, dtype=np.int32)
    if not cells:
        return out_heads, out_labels
    cdef const int32_t[:, ::1] given = heads
    cdef const int32_t[:, ::1] given_labels = labels
    cdef const int32_t[::1] first = starts
    cdef const int32_t[::1] rows = lengths
    cdef const int32_t[::1] trees = counts
    cdef int32_t[::1] to = out_heads
    cdef int32_t[::1] to_labels = out_labels
    cdef Py_ssize_t i, j, m, at = 0, row
    cdef int32_t n, head
    with nogil:
        for i in range(first.shape[0]):
            n = rows[i] - 2
            for j in range(trees[i]):
                for m in range(n):
                    row = first[i] + (n - m if backward else m + 1)
                    head = given[row, j]
                    to[at] = n + 1 - head if backward and head else head
                    to_labels[at] = given_labels[row, j]
                    at += 1
    return out_heads, out_labels


def padded_trees(heads, labels, counts, lengths, *, bint backward=False):
    """The trees of flat lists as a parser takes them: with a cell for the root before each tree.

    heads, labels: int32[cells].  counts, lengths: intp[S], trees and words of each list.
    backward: whether the parser reads a sentence from its end.
    Returns two int32[cells + trees]; the root's head is 0 and its label -1.  Raises TypeError or
    ValueError for arrays that do not fit each other.
    """
    heads = checked("heads", heads, np.int32, None)
    labels = checked("labels", labels, np.int32, len(heads))
    counts = checked("counts", counts, np.intp, None)
    lengths = checked("lengths", lengths, np.intp, len(counts))
    checked_range("counts", counts, 0, len(heads))
    checked_range("lengths", lengths, 1, max(1, len(heads)))
    if int((counts * lengths).sum()) != len(heads):
        raise ValueError(f"there are {len(heads)} heads, not as many as counts and lengths say")
    trees = int(counts.sum())
    out_heads = np.empty(len(heads) + trees, dtype=np.int32)
    out_labels = np.empty(len(heads) + trees, dtype=np.int32)
    if not trees:
        return out_heads, out_labels
    cdef const int32_t[::1] given = heads
    cdef const int32_t[::1] given_labels = labels
    cdef const Py_ssize_t[::1] many = counts
    cdef const Py_ssize_t[::1] words = lengths
    cdef int32_t[::1] to = out_heads
    cdef int32_t[::1] to_labels = out_labels
    cdef Py_ssize_t i, _, m, n, at = 0, start = 0, cell
    cdef int32_t head
    with nogil:
        for i in range(many.shape[0]):
            n = words[i]
            for _ in range(many[i]):
                to[at], to_labels[at] = 0, -1
                for m in range(n):
                    cell = start + (n - 1 - m if backward else m)
                    head = given[cell]
                    to[at + m + 1] = <int32_t>n + 1 - head if backward and head else head
                    to_labels[at + m + 1] = given_labels[cell]
                at += n + 1
                start += n
    return out_heads, out_labels
