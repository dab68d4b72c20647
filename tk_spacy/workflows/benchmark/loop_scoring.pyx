"""Straightforward loops, to compare the compiled form with: arc by support part by property.

Source: the paper's equation 3, f-hat, as it stands, in good C.  Once pair by pair: for each arc and
each support part all properties of heads and modifiers are compared, whose rows lie in memory as
the loop reads them.  And once by columns, which is quicker: the support's properties lie column by
column, so that a property of the arc is compared with those of many support parts in SIMD, and
those that the word lacks are passed over.  Sums are double precision.

Every output cell is one thread's own and sums in a fixed order: results do not depend on the number
of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint16_t
from libc.string cimport memset

import numpy as np

from tk_spacy.utils.array_checks import checked_range
from tk_spacy.kernels.template_kernel cimport length_bin
from tk_spacy.parallel.threads import effective_n_threads

cdef extern from "simd.h":
    void tk_add_equal(
        const int32_t *column, Py_ssize_t n, int32_t value, uint16_t *out
    ) noexcept nogil
    double tk_plain_arc_sum(
        const uint16_t *head, const uint16_t *modifier, int skip_head, int skip_modifier,
        const int32_t *label, const int32_t *distance, const int32_t *length, int32_t of_label,
        int32_t of_distance, int32_t of_length, const double *weight, Py_ssize_t n,
    ) noexcept nogil
    double tk_pair_sum(
        const int32_t *head, const int32_t *modifier, Py_ssize_t n_properties,
        const int32_t *heads, const int32_t *modifiers, int skip_head, int skip_modifier,
        const int32_t *label, const int32_t *distance, const int32_t *length, int32_t of_label,
        int32_t of_distance, int32_t of_length, const double *weight, Py_ssize_t n,
    ) noexcept nogil

cdef enum:
    BLOCK = 1024   # support parts at a time: their counts stay in the first-level cache


def add_pair_scores(nodes, parts, heads, modifiers, edges, weights, out, *, skips, n_threads=None):
    """Adds to out[i] the weighted kernel of arc i with every support part, pair by pair.

    nodes: int32[r, P], of the words.  parts: int32[p, 4], arcs in slot form: head's row, label,
    distance, modifier's row.  heads, modifiers: int32[q, P], the properties of the support parts'
    nodes, a node a row.  edges: int32[3, q], their labels, distances and binned lengths.  weights:
    float64[q].  out: float64[p].  skips: of head and modifier, 0 or 1.  Raises ValueError for
    shapes that do not fit.
    """
    shape = (weights.shape[0], nodes.shape[1])
    _check(nodes, parts, heads, modifiers, edges, weights, out, shape)
    _add_scores(
        nodes, parts, heads, modifiers, edges, weights, out, skips[0], skips[1], False,
        effective_n_threads(n_threads),
    )


def add_column_scores(
    nodes, parts, heads, modifiers, edges, weights, out, *, skips, n_threads=None
):
    """The same by columns: heads and modifiers are int32[P, q], a property a row."""
    shape = (nodes.shape[1], weights.shape[0])
    _check(nodes, parts, heads, modifiers, edges, weights, out, shape)
    _add_scores(
        nodes, parts, heads, modifiers, edges, weights, out, skips[0], skips[1], True,
        effective_n_threads(n_threads),
    )


def _check(nodes, parts, heads, modifiers, edges, weights, out, shape):
    shapes = (heads.shape, modifiers.shape, edges.shape)
    if shapes != (shape, shape, (3, weights.shape[0])) or parts.shape[1] != 4:
        raise ValueError(
            f"heads, modifiers and edges have shapes {shapes}, expected {shape} for the nodes and "
            f"(3, {weights.shape[0]}); parts have {parts.shape}, expected (_, 4)"
        )
    if out.shape != (parts.shape[0],):
        raise ValueError(f"out has shape {out.shape}, expected ({parts.shape[0]},)")
    checked_range("parts", np.asarray(parts)[:, [0, 3]], 0, nodes.shape[0] - 1)


cdef void _add_scores(
    const int32_t[:, ::1] nodes,      # IN
    const int32_t[:, ::1] parts,      # IN
    const int32_t[:, ::1] heads,      # IN
    const int32_t[:, ::1] modifiers,  # IN
    const int32_t[:, ::1] edges,      # IN
    const double[::1] weights,        # IN
    double[::1] out,                  # IN, OUT
    int skip_head,
    int skip_modifier,
    bint by_columns,
    int n_threads,
) noexcept:
    cdef Py_ssize_t i
    if weights.shape[0]:
        for i in prange(
            parts.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=n_threads
        ):
            out[i] += _score_arc(
                nodes, &parts[i, 0], heads, modifiers, edges, weights, skip_head, skip_modifier,
                by_columns,
            )


cdef double _score_arc(
    const int32_t[:, ::1] nodes, const int32_t *arc, const int32_t[:, ::1] heads,
    const int32_t[:, ::1] modifiers, const int32_t[:, ::1] edges, const double[::1] weights,
    int skip_head, int skip_modifier, bint by_columns,
) noexcept nogil:
    cdef uint16_t head[BLOCK]
    cdef uint16_t modifier[BLOCK]
    cdef Py_ssize_t start = 0, width, n = weights.shape[0]
    cdef double total = 0.0
    # No label and no distance (0) equal nothing: compare with what never occurs.
    cdef int32_t label = arc[1] if arc[1] != 0 else -1
    cdef int32_t distance = arc[2] if arc[2] != 0 else 2147483647
    cdef int32_t length = length_bin(arc[2]) if arc[2] != 0 else -1
    if not by_columns:
        return tk_pair_sum(
            &nodes[arc[0], 0], &nodes[arc[3], 0], nodes.shape[1], &heads[0, 0], &modifiers[0, 0],
            skip_head, skip_modifier, &edges[0, 0], &edges[1, 0], &edges[2, 0], label, distance,
            length, &weights[0], n,
        )
    while start < n:
        width = min(<Py_ssize_t>BLOCK, n - start)
        _count(&nodes[arc[0], 0], heads, start, width, head)
        _count(&nodes[arc[3], 0], modifiers, start, width, modifier)
        total += tk_plain_arc_sum(
            head, modifier, skip_head, skip_modifier, &edges[0, start], &edges[1, start],
            &edges[2, start], label, distance, length, &weights[start], width,
        )
        start += BLOCK
    return total


cdef void _count(
    const int32_t *node, const int32_t[:, ::1] columns, Py_ssize_t start, Py_ssize_t width,
    uint16_t *counts,
) noexcept nogil:
    """How many properties a word shares with each support node of a stretch."""
    cdef Py_ssize_t p
    memset(counts, 0, width * sizeof(uint16_t))
    for p in range(columns.shape[0]):
        if node[p] != 0:
            tk_add_equal(&columns[p, start], width, node[p], counts)
