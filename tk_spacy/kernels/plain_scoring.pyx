"""Scores of parts against weighted support parts: the sum of weight * k(support part, part).

Source: the paper's equation 3, f-hat.  Ours differs in how the sum is taken.  Property rows of the
support lie column by column; for each word of a sentence one pass counts how many of its properties
agree with each support node; a part's kernel is then a product of looked-up counts.  So a word's
properties are compared once per support node, not once per part that the word takes part in.

Every output cell is one thread's own and sums in a fixed order: results do not depend on the number
of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint16_t

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.kernels.template_kernel cimport NODE, length_bin

from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parallel.threads import effective_n_threads

cdef extern from "simd.h":
    void tk_add_equal(
        const int32_t *column, Py_ssize_t n, int32_t value, uint16_t *out
    ) noexcept nogil

cdef enum:
    BLOCK = 2048   # support nodes or parts at a time: their running values stay in L1
    PAIRS_AT_A_TIME = 1 << 26   # between two looks for signals, a small part of a second


def count_matches(nodes, columns, *, n_threads=None):
    """How many properties each node shares with each support node.

    nodes: int32[r, P].  columns: int32[P, s], support nodes, one property a row.
    Returns uint16[r, s].  Raises TypeError or ValueError for other arrays.
    """
    nodes = checked("nodes", nodes, np.int32, None, None)
    columns = _rows_contiguous(columns)
    if columns.shape[0] != nodes.shape[1]:
        raise ValueError(f"columns have {columns.shape[0]} rows, expected {nodes.shape[1]}")
    out = np.zeros((nodes.shape[0], columns.shape[1]), dtype=np.uint16)
    if out.size:
        _count_matches(nodes, columns, out, effective_n_threads(n_threads))
    return out


cdef void _count_matches(
    const int32_t[:, ::1] nodes,      # IN
    const int32_t[:, :] columns,      # IN, each row contiguous
    uint16_t[:, ::1] out,             # OUT, zeros
    int n_threads,
) noexcept:
    cdef Py_ssize_t r
    cdef Py_ssize_t n_support = columns.shape[1], stride = columns.strides[0] // sizeof(int32_t)
    for r in prange(
        nodes.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads
    ):
        _count_row(&nodes[r, 0], nodes.shape[1], &columns[0, 0], stride, n_support, &out[r, 0])


cdef void _count_row(
    const int32_t *node, Py_ssize_t n_properties,
    const int32_t *columns, Py_ssize_t stride, Py_ssize_t n_support, uint16_t *out,
) noexcept nogil:
    cdef Py_ssize_t start = 0, width, p
    while start < n_support:
        width = min(<Py_ssize_t>BLOCK, n_support - start)
        for p in range(n_properties):
            if node[p] != 0:
                tk_add_equal(columns + p * stride + start, width, node[p], out + start)
        start += BLOCK


def add_part_scores(counts, parts, columns, weights, kinds, skips, out, *, n_threads=None):
    """Adds to out[i] the weighted kernel of part i with every support part.

    counts: uint16[r, s], from count_matches.  parts: int32[p, w], slot form.
    columns: int32[v, q], the support parts, one column of slot form a row, an edge slot three
    (label, distance, binned length); node slots name columns of `counts`.
    weights: float64[q].  kinds, skips: int32 per slot.  out: float64[p].
    Raises TypeError or ValueError for other arrays, and for nodes that are not there.
    """
    kinds = checked("kinds", kinds, np.int32, None)
    skips = checked("skips", skips, np.int32, len(kinds))
    n_edges = int((kinds != NODE).sum())
    parts = checked("parts", parts, np.int32, None, len(kinds) + n_edges)
    columns = _rows_contiguous(columns)
    if len(columns) != len(kinds) + 2 * n_edges:
        raise ValueError(f"columns have {len(columns)} rows, expected {len(kinds) + 2 * n_edges}")
    weights = checked("weights", weights, np.float64, columns.shape[1])
    counts = checked("counts", counts, np.uint16, None, None)
    if out.shape != (len(parts),):
        raise ValueError(f"out has shape {out.shape}, expected ({len(parts)},)")
    node = kinds == NODE
    in_parts = np.cumsum(2 - node) - (2 - node)
    in_columns = np.cumsum(3 - 2 * node) - (3 - 2 * node)
    checked_range("parts", parts[:, in_parts[node]], 0, counts.shape[0] - 1)
    checked_range("columns", columns[in_columns[node]], 0, counts.shape[1] - 1)
    n_threads = effective_n_threads(n_threads)
    step = max(1, PAIRS_AT_A_TIME // max(1, columns.shape[1]))
    for first in range(0, parts.shape[0] if columns.shape[1] else 0, step):
        raise_if_stopped()
        some = slice(first, first + step)
        _add_part_scores(
            counts, parts[some], columns, weights, kinds, skips, out[some], n_threads
        )


def _rows_contiguous(columns):
    """The columns as int32[v, q] whose rows are contiguous, though not one behind the other."""
    if columns.ndim != 2 or columns.dtype != np.int32:
        raise ValueError(f"columns must be int32[_, _], got {columns.dtype} of {columns.shape}")
    if columns.shape[1] > 1 and columns.strides[1] != columns.itemsize:
        return np.ascontiguousarray(columns)
    return columns


cdef void _add_part_scores(
    const uint16_t[:, ::1] counts,    # IN
    const int32_t[:, ::1] parts,      # IN
    const int32_t[:, :] columns,      # IN, each row contiguous
    const double[::1] weights,        # IN
    const int32_t[::1] kinds,         # IN
    const int32_t[::1] skips,         # IN
    double[::1] out,                  # IN, OUT
    int n_threads,
) noexcept:
    cdef Py_ssize_t i
    cdef Py_ssize_t stride = columns.strides[0] // sizeof(int32_t)
    for i in prange(
        parts.shape[0], nogil=True, schedule="dynamic", chunksize=4, num_threads=n_threads
    ):
        out[i] += _part_score(
            counts, &parts[i, 0], &columns[0, 0], stride, &weights[0], columns.shape[1],
            &kinds[0], &skips[0], kinds.shape[0],
        )


cdef double _part_score(
    const uint16_t[:, ::1] counts, const int32_t *part, const int32_t *columns, Py_ssize_t stride,
    const double *weights, Py_ssize_t n_support, const int32_t *kinds, const int32_t *skips,
    Py_ssize_t n_slots,
) noexcept nogil:
    cdef double product[BLOCK]
    cdef double total = 0.0
    cdef Py_ssize_t start = 0, width, slot, column, support_column
    while start < n_support:
        width = min(<Py_ssize_t>BLOCK, n_support - start)
        for slot in range(width):
            product[slot] = weights[start + slot]
        column = 0
        support_column = 0
        for slot in range(n_slots):
            if kinds[slot] == NODE:
                _times_node(
                    product, &counts[part[column], 0],
                    columns + support_column * stride + start, skips[slot], width,
                )
                column += 1
                support_column += 1
            else:
                _times_edge(
                    product, part[column], part[column + 1],
                    columns + support_column * stride + start, stride, skips[slot], width,
                )
                column += 2
                support_column += 3
        for slot in range(width):
            total += product[slot]
        start += BLOCK
    return total


cdef void _times_node(
    double *product, const uint16_t *counts, const int32_t *nodes, int32_t skip, Py_ssize_t n
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        product[i] *= <double>(skip + counts[nodes[i]])


cdef void _times_edge(
    double *product, int32_t label, int32_t distance, const int32_t *columns, Py_ssize_t stride,
    int32_t skip, Py_ssize_t n,
) noexcept nogil:
    cdef Py_ssize_t i
    # No label and no distance (0) equal nothing: compare with a value that never occurs.
    cdef int32_t length = length_bin(distance) if distance != 0 else -1
    cdef const int32_t *labels = columns
    cdef const int32_t *distances = columns + stride
    cdef const int32_t *lengths = columns + 2 * stride
    if label == 0:
        label = -1
    if distance == 0:
        distance = 2147483647
    for i in range(n):
        product[i] *= <double>(
            skip + (labels[i] == label) + (distances[i] == distance) + (lengths[i] == length)
        )


def length_bins(const int32_t[::1] distances not None):
    """The binned length of each signed distance: int32[q], 0 where the distance is 0."""
    cdef Py_ssize_t i
    out = np.empty(distances.shape[0], dtype=np.int32)
    cdef int32_t[::1] view = out
    for i in range(distances.shape[0]):
        view[i] = length_bin(distances[i])
    return out
