"""The candidate lines of a compact k-best file, fast where they are as `writer` does.

Most arcs of a candidate stand in the candidate before it, at the same word: their text is compared,
not read again.  What is unusual in any way (labels with spaces or beyond ASCII, sources in another
order, whatever is an error) is left to the plain code of `reader`, which alone knows the
errors.
"""

from libc.math cimport isinf
from libc.stdint cimport int32_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp

import numpy as np


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1.0


cdef enum:
    MAX_DIGITS = 9  # of a HEAD, as in reader
    MAX_SOURCES = 8
    UNUSUAL = -1

PREFIX = "# tk_candidate_"


cdef struct Names:
    const char *starts[MAX_SOURCES]
    Py_ssize_t lengths[MAX_SOURCES]  # with the colon
    int count


def read_lines(tuple comments not None, Py_ssize_t n, add):
    """The candidates in the comments of a sentence of n words, n >= 1.

    add: gives the id of a label.  Returns (first, heads, labels, scores, sources): the place of the
    first candidate's line, which all others follow, int32[k, n], int32[k, n], float64[k, s] and a
    list of s names; None where a line is unusual or there is none.
    """
    cdef Py_ssize_t first = 0, k = 0, size = 0, at, j
    cdef const char *text
    cdef const char *before = NULL
    cdef char prefix[48]
    cdef int length
    cdef Names names
    if n < 1:
        raise ValueError(f"a sentence of {n} words, expected at least one")
    names.count = 0
    while first < len(comments) and not (<str?>comments[first]).startswith(PREFIX):
        first += 1
    while first + k < len(comments) and (<str?>comments[first + k]).startswith(PREFIX):
        k += 1
    if k == 0:
        return None
    heads_array = np.empty((k, n), dtype=np.int32)
    labels_array = np.empty((k, n), dtype=np.int32)
    # Where the text of each arc stood in the line before, and how long it was.
    starts_array = np.empty(n, dtype=np.intp)
    lengths_array = np.empty(n, dtype=np.intp)
    cdef int32_t[:, ::1] heads = heads_array, labels = labels_array
    cdef Py_ssize_t[::1] starts = starts_array, lengths = lengths_array
    cdef double[:, ::1] scores
    scores_array = None
    for j in range(k):
        line = <str>comments[first + j]
        if not line.isascii():
            return None
        text = PyUnicode_AsUTF8AndSize(line, &size)
        length = snprintf(prefix, sizeof(prefix), "# tk_candidate_%zd = ", j + 1)
        if size < length or memcmp(text, prefix, length):
            return None
        if j == 0:
            if _find_names(text, length, size, &names) == UNUSUAL:
                return None
            scores_array = np.empty((k, names.count))
            scores = scores_array
        at = _read_scores(text, length, size, &names, &scores[j, 0])
        if at == UNUSUAL:
            return None
        if _read_arcs(line, text, at, size, before, starts, lengths, heads, labels, j, add):
            return None
        before = text
    sources = [names.starts[j][: names.lengths[j] - 1].decode() for j in range(names.count)]
    if len(set(sources)) < len(sources):
        return None
    return first, heads_array, labels_array, scores_array, sources


cdef Py_ssize_t _find_names(
    const char *text, Py_ssize_t at, Py_ssize_t size, Names *names
) noexcept nogil:
    """Where the sources' names stand: NAME:SCORE,NAME:SCORE and a space."""
    cdef Py_ssize_t start
    while True:
        start = at
        while at < size and text[at] > 32 and text[at] != c":" and text[at] != c",":
            at += 1
        if at == start or at == size or text[at] != c":" or names.count == MAX_SOURCES:
            return UNUSUAL
        at += 1
        names.starts[names.count] = text + start
        names.lengths[names.count] = at - start
        names.count += 1
        while at < size and text[at] != c"," and text[at] != c" ":
            at += 1
        if at == size:
            return UNUSUAL
        if text[at] == c" ":
            return 0
        at += 1


cdef Py_ssize_t _read_scores(
    const char *text, Py_ssize_t at, Py_ssize_t size, Names *names, double *out
) noexcept:
    """Reads a score of each source; returns the place behind the space that follows."""
    cdef char *end
    cdef int i
    for i in range(names.count):
        if size - at < names.lengths[i] or memcmp(text + at, names.starts[i], names.lengths[i]):
            return UNUSUAL
        at += names.lengths[i]
        try:
            out[i] = PyOS_string_to_double(text + at, &end, NULL)
        except ValueError:
            return UNUSUAL
        at = end - text
        if isinf(out[i]) or at >= size or text[at] != (c"," if i < names.count - 1 else c" "):
            return UNUSUAL
        at += 1
    return at


cdef int _read_arcs(
    str line,
    const char *text,
    Py_ssize_t at,
    Py_ssize_t size,
    const char *before,        # IN, the text of the line before; NULL if there is none
    Py_ssize_t[::1] starts,    # IN, OUT
    Py_ssize_t[::1] lengths,   # IN, OUT
    int32_t[:, ::1] heads,     # IN, OUT, rows up to j
    int32_t[:, ::1] labels,    # IN, OUT
    Py_ssize_t j,
    add,
) except -2:
    """Reads HEAD:DEPREL of each word into row j; returns 0, or UNUSUAL."""
    cdef Py_ssize_t n = starts.shape[0], i, end, colon
    cdef int32_t head
    for i in range(n):
        if i > 0:
            if at >= size or text[at] != c" ":
                return UNUSUAL
            at += 1
        if before != NULL:
            end = at + lengths[i]
            if (
                end <= size
                and (end == size or text[end] == c" ")
                and not memcmp(text + at, before + starts[i], lengths[i])
            ):
                heads[j, i] = heads[j - 1, i]
                labels[j, i] = labels[j - 1, i]
                starts[i] = at
                at = end
                continue
        end = at
        head = 0
        while end < size and end - at < MAX_DIGITS and c"0" <= text[end] <= c"9":
            head = 10 * head + (text[end] - c"0")
            end += 1
        if end == at or end >= size or text[end] != c":":
            return UNUSUAL
        colon = end
        end += 1
        while end < size and text[end] > 32:
            end += 1
        if end == colon + 1:
            return UNUSUAL
        heads[j, i] = head
        labels[j, i] = add(line[colon + 1 : end])
        starts[i] = at
        lengths[i] = end - at
        at = end
    return 0 if at == size else UNUSUAL
