# Checks of public functions' arguments, where numpy's would take too long.

from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free, malloc


cdef inline bint all_within(
    const int32_t *values, Py_ssize_t n, int32_t low, int32_t high
) noexcept nogil:
    """Whether all of n values lie in low..high: without a branch, so several at a time."""
    cdef Py_ssize_t i
    cdef uint32_t first = <uint32_t>low, most = <uint32_t>high - first, outside = 0
    if high < low:
        return n == 0
    for i in range(n):
        outside |= <uint32_t>values[i] - first > most
    return outside == 0


cdef inline int check_values(
    const int32_t[::1] values, int32_t low, int32_t high, str name
) except -1:
    """Raises ValueError unless all values lie in low..high."""
    cdef Py_ssize_t i
    if values.shape[0] == 0 or all_within(&values[0], values.shape[0], low, high):
        return 0
    for i in range(values.shape[0]):
        if values[i] < low or values[i] > high:
            raise ValueError(f"{name}[{i}] is {values[i]}, expected {low} to {high}")
    return 0


cdef inline int check_starts(const int32_t[::1] starts, Py_ssize_t total, str name) except -1:
    """Raises ValueError unless starts ascend within 0..total; there is one at least."""
    cdef Py_ssize_t i
    if starts.shape[0] == 0:
        raise ValueError(f"{name} are empty, expected one more than there are ranges")
    for i in range(starts.shape[0]):
        if starts[i] < (starts[i - 1] if i else 0) or starts[i] > total:
            raise ValueError(
                f"{name}[{i}] is {starts[i]}, expected numbers from 0 to {total} that do not fall"
            )
    return 0


cdef inline int check_trees(const int32_t[:, ::1] heads) except -1:
    """Raises ValueError unless each row holds heads 0..n that lead to the root."""
    cdef Py_ssize_t k = heads.shape[0], n = heads.shape[1], j, m, walk = 0, before
    cdef Py_ssize_t bad = -1
    cdef int32_t h
    cdef bint cycle = False
    # The walk in which a word was met last, counted on through all rows.
    cdef Py_ssize_t *seen = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    if seen == NULL:
        raise MemoryError(f"no memory to check trees over {n} words")
    with nogil:
        for m in range(n + 1):
            seen[m] = 0
        for j in range(k):
            for m in range(n):
                if heads[j, m] < 0 or heads[j, m] > n:
                    bad = m
                    break
            before = walk
            if bad < 0:
                for m in range(1, n + 1):
                    walk += 1
                    h = <int32_t>m
                    while h > 0 and seen[h] <= before:
                        seen[h] = walk
                        h = heads[j, h - 1]
                    if h > 0 and seen[h] == walk:
                        cycle = True
                        bad = h - 1
                        break
            if bad >= 0:
                break
    free(seen)
    if cycle:
        raise ValueError(
            f"heads of tree {j} are no tree: they lead from word {bad + 1} back to it, expected to "
            "the root, 0"
        )
    if bad >= 0:
        raise ValueError(f"heads[{j}, {bad}] is {heads[j, bad]}, expected 0 to {n}")
    return 0


cdef inline int check_table(
    const int32_t[:, ::1] values, int32_t low, int32_t high, str name
) except -1:
    """Raises ValueError unless all values lie in low..high."""
    cdef Py_ssize_t i, j, n = values.shape[0] * values.shape[1]
    if n == 0 or all_within(&values[0, 0], n, low, high):
        return 0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if values[i, j] < low or values[i, j] > high:
                raise ValueError(
                    f"{name}[{i}, {j}] is {values[i, j]}, expected {low} to {high}"
                )
    return 0


cdef inline int check_power(Py_ssize_t size, str name) except -1:
    """Raises ValueError unless a table's size is a power of two."""
    if size < 1 or size & (size - 1):
        raise ValueError(f"{name} has {size} cells, expected a power of two")
    return 0
