"""The tags whose parts are most probable together, found without looking at most of them."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

import numpy as np

from tk_spacy.utils.array_checks import checked, checked_range


def choose_tags(logs, parts):
    """The tag of each word whose parts' log-probabilities sum to the most, the first of equal ones.

    logs: float32[words, values], 0 or less: of each task's values.
    parts: int64[tags, tasks], the columns of `logs` of each tag's values; that of the second task
        differs more than others among tags, and a tag is passed over where it alone has less than
        the best sum so far: no sum exceeds its parts.
    Sums are of float32, in the order of the tasks.  Returns int64[words]; 0 where all sums are NaN.
    Raises TypeError or ValueError for other arrays.
    """
    logs = checked("logs", logs, np.float32, None, None)
    parts = checked("parts", parts, np.int64, None, None)
    if not parts.shape[0] or parts.shape[1] < 2:
        raise ValueError(f"parts are {parts.shape}, expected tags of two tasks at least")
    checked_range("parts", parts, 0, logs.shape[1] - 1)
    out = np.zeros(len(logs), dtype=np.int64)
    _choose_tags(logs, parts, out)
    return out


cdef void _choose_tags(
    const float[:, ::1] logs, const int64_t[:, ::1] parts, int64_t[::1] out
) noexcept:
    cdef Py_ssize_t word, tag, likely, n_tags = parts.shape[0]
    cdef float best, total, least
    with nogil:
        for word in range(logs.shape[0]):
            likely = 0
            for tag in range(1, n_tags):
                if logs[word, parts[tag, 1]] > logs[word, parts[likely, 1]]:
                    likely = tag
            least = _total(&logs[word, 0], &parts[likely, 0], parts.shape[1])
            best = -INFINITY
            for tag in range(n_tags):
                if logs[word, parts[tag, 1]] >= least:
                    total = _total(&logs[word, 0], &parts[tag, 0], parts.shape[1])
                    if total > best:
                        best = total
                        out[word] = tag
                        if total > least:
                            least = total


cdef inline float _total(const float *logs, const int64_t *parts, Py_ssize_t n) noexcept nogil:
    cdef float total = 0.0
    cdef Py_ssize_t task
    for task in range(n):
        total += logs[parts[task]]
    return total
