"""The keys of the basic features of arcs; what they are is declared in templates.py."""

from libc.stdint cimport int32_t, uint64_t

import numpy as np

from tk_spacy.features.columns cimport POS
from tk_spacy.kernels.template_kernel cimport length_bin
from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.selection.templates import (
    BETWEEN as _BETWEEN, LABEL_BITS, LABELLED as _LABELLED, PLACE_BITS, TEMPLATE_BITS, VALUE_BITS,
    template_table,
)

cdef int BETWEEN = _BETWEEN, LABELLED = _LABELLED
cdef int PLACE_AT = TEMPLATE_BITS
cdef int LABEL_AT = PLACE_AT + PLACE_BITS
cdef int VALUES_AT = LABEL_AT + LABEL_BITS
cdef int TWO = VALUE_BITS[2], THREE = VALUE_BITS[3]
cdef const int32_t[:, :, ::1] TABLE = template_table()

MAX_KINDS = 64
"""Different tags between two words that are features, from the left: a bound for long arcs."""

cdef int MOST_KINDS = MAX_KINDS


def arc_keys(fields, heads, modifiers, labels):
    """The keys of the basic features of arcs of one sentence, each arc's in ascending order.

    fields: int32[n + 2, F], see schema.EncodedSentence.  heads: int32[a], 0..n.  modifiers:
    int32[a], 1..n.  labels: int32[a], ids of DEPREL; 0 for arcs that have none.

    Returns (starts, keys): those of arc i are keys[starts[i]:starts[i + 1]]; int32[a + 1] and
    uint64[_].  What has a value that training never saw (id 0) is left out, and of the root's
    neighbours there is nothing.  Raises TypeError or ValueError for arrays that do not fit.
    """
    fields = checked("fields", fields, np.int32, None, None)
    heads = checked("heads", heads, np.int32, None)
    cdef Py_ssize_t n_arcs = heads.shape[0], i, used = 0
    modifiers = checked("modifiers", modifiers, np.int32, n_arcs)
    labels = checked("labels", labels, np.int32, n_arcs)
    n = len(fields) - 2
    checked_range("heads", heads, 0, n)
    checked_range("modifiers", modifiers, 1, n)
    checked_range("labels", labels, 0, (1 << LABEL_BITS) - 1)
    cdef Py_ssize_t most = 2 * BETWEEN + LABELLED + MAX_KINDS
    starts = np.zeros(n_arcs + 1, dtype=np.int32)
    keys = np.empty(n_arcs * most, dtype=np.uint64)
    cdef const int32_t[:, ::1] words = fields
    cdef const int32_t[::1] h = heads, m = modifiers, deprels = labels
    cdef int32_t[::1] begins = starts
    cdef uint64_t[::1] out = keys
    with nogil:
        for i in range(n_arcs):
            used += keys_of_arc(words, h[i], m[i], deprels[i], &out[used])
            begins[i + 1] = <int32_t>used
    return starts, keys[:used].copy()


cdef int keys_of_arc(
    const int32_t[:, ::1] fields, int32_t h, int32_t m, int32_t label, uint64_t *out
) noexcept nogil:
    """Writes an arc's keys in ascending order; returns their number."""
    cdef int n = 0, t
    cdef uint64_t key
    cdef uint64_t place = 1 + 2 * length_bin(m - h) + (1 if h < m else 0)
    for t in range(BETWEEN):
        key = over_words(fields, h, m, t)
        if key == 0:
            continue
        out[n] = key
        out[n + 1] = key | place << PLACE_AT
        n += 2
        if t < LABELLED and label > 0:
            out[n] = key | <uint64_t>label << LABEL_AT
            n += 1
    n += over_between(fields, h, m, out + n)
    sort_keys(out, n)
    return n


cdef uint64_t over_words(
    const int32_t[:, ::1] fields, int32_t h, int32_t m, int t
) noexcept nogil:
    """The key of a template over words, without place and label; 0 where a value is missing."""
    cdef uint64_t key = <uint64_t>(t + 1), value
    cdef int i, at = VALUES_AT, bits = TWO if TABLE[t, 2, 2] < 0 else THREE
    for i in range(3):
        if TABLE[t, i, 2] < 0:
            break
        value = value_beside(fields, m if TABLE[t, i, 0] else h, TABLE[t, i, 1], TABLE[t, i, 2])
        if value == 0:
            return 0
        key |= value << at
        at += bits
    return key


cdef uint64_t value_beside(
    const int32_t[:, ::1] fields, int32_t word, int32_t offset, int32_t column
) noexcept nogil:
    """A column of a word or its neighbour, 0 where there is none; beyond the ends stands the
    boundary, and the root has no neighbours."""
    cdef int32_t last = <int32_t>fields.shape[0] - 2
    if offset != 0:
        if word == 0:
            return 0
        word += offset
        if word < 1 or word > last:
            word = last + 1
    return <uint64_t>fields[word, column]


cdef int over_between(
    const int32_t[:, ::1] fields, int32_t h, int32_t m, uint64_t *out
) noexcept nogil:
    """A key for each different tag between an arc's ends; their number."""
    cdef int32_t low = min(h, m), high = max(h, m), b
    cdef uint64_t head = fields[h, POS], modifier = fields[m, POS], key
    cdef int n = 0, i
    if head == 0 or modifier == 0:
        return 0
    for b in range(low + 1, high):
        if fields[b, POS] == 0:
            continue
        key = <uint64_t>(BETWEEN + 1) | head << VALUES_AT | modifier << (VALUES_AT + 2 * THREE)
        key |= <uint64_t>fields[b, POS] << (VALUES_AT + THREE)
        for i in range(n):
            if out[i] == key:
                break
        else:
            if n == MOST_KINDS:
                break
            out[n] = key
            n += 1
    return n


cdef void sort_keys(uint64_t *keys, int n) noexcept nogil:
    """By insertion: there are some 40."""
    cdef int i, j
    cdef uint64_t key
    for i in range(1, n):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key
