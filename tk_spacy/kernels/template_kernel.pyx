"""The template kernel: how many property combinations two parts share.

Source: Taub-Tabib et al. 2015, section 2: k(p, p') is the product over slots of the number of
properties that agree, plus one where the slot may be skipped.  The edge slot's always-on property
is that same one.  A tree kernel is the sum over pairs of parts.

A part is in slot form (see parts.slot_rows): a node slot is a row of a node table, an edge slot a
label and a signed distance, from which the binned length follows.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked
from tk_spacy.parallel.threads import effective_n_threads


def slot_layout(part_type):
    """int32[s]: for each slot of a part type 0 for a node, 1 for an edge."""
    return np.array([EDGE if s.kind == "edge" else NODE for s in part_type.slots], dtype=np.int32)


def kernel_matrix(part_type, nodes_a, parts_a, nodes_b, parts_b, *, skips=None, n_threads=None):
    """The kernel of every part of one table with every part of another.

    nodes_a, nodes_b: int32[_, P], property ids.  parts_a: int32[a, w], parts_b: int32[b, w], in
    slot form, of the same type.  skips: 0 or 1 per slot, default part_type.skips().
    Returns int64[a, b].  Raises ValueError for shapes, positions or skips that do not fit.
    """
    kinds = slot_layout(part_type)
    skips = np.array(part_type.skips() if skips is None else skips, dtype=np.int32)
    if skips.shape != kinds.shape or not np.isin(skips, (0, 1)).all():
        raise ValueError(f"skips are {skips.tolist()}, expected {len(kinds)} values of 0 or 1")
    nodes_a, parts_a = check_parts(nodes_a, parts_a, kinds)
    nodes_b, parts_b = check_parts(nodes_b, parts_b, kinds)
    if nodes_a.shape[1] != nodes_b.shape[1]:
        raise ValueError(
            f"nodes have {nodes_a.shape[1]} and {nodes_b.shape[1]} properties, expected as many"
        )
    out = np.zeros((len(parts_a), len(parts_b)), dtype=np.int64)
    if out.size:
        _kernel_matrix(
            nodes_a, parts_a, nodes_b, parts_b, kinds, skips, out, effective_n_threads(n_threads)
        )
    return out


def tree_kernel(part_type, nodes_a, parts_a, nodes_b, parts_b, *, skips=None, n_threads=None):
    """The sum of the kernel over all pairs of parts of two trees (arguments as kernel_matrix)."""
    matrix = kernel_matrix(
        part_type, nodes_a, parts_a, nodes_b, parts_b, skips=skips, n_threads=n_threads
    )
    return int(matrix.sum())


def signed_kernel(
    const int32_t[:, ::1] nodes not None, const int32_t[:, ::1] parts not None,
    const int32_t[::1] signs not None, const int32_t[::1] kinds not None,
    const int32_t[::1] skips not None,
):
    """The squared norm of a difference of parts: the sum of sign * sign' * k over all pairs.

    nodes: int32[_, P].  parts: int32[e, w], slot form.  signs: int32[e].  kinds, skips: int32 per
    slot (see slot_layout).  Raises ValueError for parts that are none of these nodes'.
    """
    cdef Py_ssize_t i, j
    cdef int64_t pair
    cdef double total = 0.0
    if signs.shape[0] != parts.shape[0] or skips.shape[0] != kinds.shape[0]:
        raise ValueError(
            f"{signs.shape[0]} signs for {parts.shape[0]} parts, {skips.shape[0]} skips for "
            f"{kinds.shape[0]} slots, expected as many"
        )
    check_part_nodes(parts, kinds, nodes.shape[0])
    for i in range(parts.shape[0]):
        for j in range(i, parts.shape[0]):
            pair = part_kernel(
                &nodes[0, 0], &parts[i, 0], &nodes[0, 0], &parts[j, 0],
                &kinds[0], &skips[0], kinds.shape[0], nodes.shape[1],
            )
            total += (1.0 if i == j else 2.0) * signs[i] * signs[j] * pair
    return total


cdef int check_part_nodes(
    const int32_t[:, ::1] parts, const int32_t[::1] kinds, Py_ssize_t n_nodes
) except -1:
    """Raises ValueError unless parts are as wide as their slots, and name nodes that there are."""
    cdef Py_ssize_t i, slot, column, width = 0
    for slot in range(kinds.shape[0]):
        width += 1 if kinds[slot] == NODE else 2
    if parts.shape[1] != width:
        raise ValueError(f"parts have {parts.shape[1]} columns, expected {width}")
    for i in range(parts.shape[0]):
        column = 0
        for slot in range(kinds.shape[0]):
            if kinds[slot] != NODE:
                column += 2
                continue
            if parts[i, column] < 0 or parts[i, column] >= n_nodes:
                raise ValueError(
                    f"parts[{i}, {column}] names node {parts[i, column]}, expected 0 to "
                    f"{n_nodes - 1}"
                )
            column += 1
    return 0


def check_parts(nodes, parts, kinds):
    """Nodes and parts as contiguous int32, or ValueError where they cannot belong together."""
    nodes = checked("nodes", nodes, np.int32, None, None)
    parts = checked("parts", parts, np.int32, None, int(len(kinds) + kinds.sum()))
    columns = node_columns(kinds)
    if parts.size and (parts[:, columns].min() < 0 or parts[:, columns].max() >= len(nodes)):
        raise ValueError(f"a part names a node outside 0..{len(nodes) - 1}")
    return nodes, parts


def node_columns(kinds):
    """The columns of the node slots in slot form (an edge slot takes two columns)."""
    widths = kinds + 1
    return (np.cumsum(widths) - widths)[kinds == NODE]


cdef void _kernel_matrix(
    const int32_t[:, ::1] nodes_a,   # IN
    const int32_t[:, ::1] parts_a,   # IN
    const int32_t[:, ::1] nodes_b,   # IN
    const int32_t[:, ::1] parts_b,   # IN
    const int32_t[::1] kinds,        # IN
    const int32_t[::1] skips,        # IN
    int64_t[:, ::1] out,             # OUT
    int n_threads,
) noexcept:
    cdef Py_ssize_t i, j
    cdef Py_ssize_t n_properties = nodes_a.shape[1], n_slots = kinds.shape[0]
    for i in prange(
        parts_a.shape[0], nogil=True, schedule="dynamic", chunksize=8, num_threads=n_threads
    ):
        for j in range(parts_b.shape[0]):
            out[i, j] = part_kernel(
                &nodes_a[0, 0], &parts_a[i, 0], &nodes_b[0, 0], &parts_b[j, 0],
                &kinds[0], &skips[0], n_slots, n_properties,
            )
