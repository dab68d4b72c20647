"""The ids of the properties of nodes from those of their fields (see `schema`)."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked

cdef enum:
    FIRST = 0
    FIRST_OFFSET = 1
    SECOND = 2
    SECOND_OFFSET = 3
    FACTOR = 4
    N_COLUMNS = 5


def node_ids(fields, lengths, properties):
    """The property ids of the rows of some sentences: int32[r, P].

    fields: int32[r, F], field ids from 0 on, n + 2 rows of each sentence, the root's first and the
    boundary node's last.  lengths: int32[l], rows of each sentence, 2 at least.
    properties: int32[P, 5], of each the first field and where it is, the second field, -1 for none,
    and where it is, and the number of that one's ids.  Where: -1 is the word to the left, 1 to the
    right; the root and the boundary node have neither, and beyond the words lies the boundary node.

    A pair's id is that of the first field times the number of ids, plus that of the second, or 0
    where either is 0.  Raises TypeError or ValueError for other arrays.
    """
    fields = checked("fields", fields, np.int32, None, None)
    lengths = checked("lengths", lengths, np.int32, None)
    properties = checked("properties", properties, np.int32, None, N_COLUMNS)
    if (len(lengths) and lengths.min() < 2) or lengths.sum() != len(fields):
        raise ValueError(f"lengths are no numbers from 2 on that sum to {len(fields)} rows")
    for places in (FIRST, SECOND):
        own = properties[:, places]
        low = 0 if places == FIRST else -1
        if len(own) and not low <= own.min() <= own.max() < fields.shape[1]:
            raise ValueError(
                f"properties are of fields {own.min()} to {own.max()}, expected {low} to "
                f"{fields.shape[1] - 1}"
            )
    offsets = properties[:, [FIRST_OFFSET, SECOND_OFFSET]]
    if len(properties) and not -1 <= offsets.min() <= offsets.max() <= 1:
        raise ValueError("properties are of words beyond the neighbours")
    out = np.empty((len(fields), len(properties)), dtype=np.int32)
    if out.size:
        _node_ids(fields, lengths, properties, out)
    return out


cdef void _node_ids(
    const int32_t[:, ::1] fields,        # IN
    const int32_t[::1] lengths,          # IN
    const int32_t[:, ::1] properties,    # IN
    int32_t[:, ::1] out,                 # OUT
) noexcept:
    cdef Py_ssize_t i, m, p, start = 0, last
    cdef int64_t first, second
    # The row to the left, the own one, the one to the right; NULL where there is none.
    cdef const int32_t *rows[3]
    with nogil:
        for i in range(lengths.shape[0]):
            last = lengths[i] - 1
            for m in range(lengths[i]):
                rows[0] = rows[2] = NULL
                rows[1] = &fields[start + m, 0]
                if 0 < m < last:
                    rows[0] = &fields[start + (m - 1 if m > 1 else last), 0]
                    rows[2] = &fields[start + m + 1, 0]
                for p in range(properties.shape[0]):
                    first = value(rows, properties[p, FIRST], properties[p, FIRST_OFFSET])
                    if properties[p, SECOND] >= 0:
                        second = value(rows, properties[p, SECOND], properties[p, SECOND_OFFSET])
                        if first > 0 and second > 0:
                            first = first * properties[p, FACTOR] + second
                        else:
                            first = 0
                    out[start + m, p] = <int32_t>first
            start += lengths[i]


cdef inline int32_t value(const int32_t **rows, int32_t place, int32_t offset) noexcept nogil:
    return 0 if rows[offset + 1] == NULL else rows[offset + 1][place]
