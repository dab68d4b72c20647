# Sums of numbers that stand one after the other, as numpy makes them to the last bit.
#
# numpy adds in an order of its own, which keeps rounding small: up to 128 numbers in eight sums
# side by side, more in halves.

from cython cimport floating

cdef enum:
    PAIRWISE_BLOCK = 128
    PAIRWISE_SUMS = 8


cdef inline floating pairwise_sum(const floating *values, Py_ssize_t n) noexcept nogil:
    """The sum of n numbers, 0 for none."""
    cdef floating[PAIRWISE_SUMS] side
    cdef floating total = 0.0
    cdef Py_ssize_t i = 0, half
    cdef int j
    if n > PAIRWISE_BLOCK:
        half = n // 2
        half -= half % PAIRWISE_SUMS
        return pairwise_sum(values, half) + pairwise_sum(values + half, n - half)
    if n >= PAIRWISE_SUMS:
        for j in range(PAIRWISE_SUMS):
            side[j] = values[j]
        i = PAIRWISE_SUMS
        while i + PAIRWISE_SUMS <= n:
            for j in range(PAIRWISE_SUMS):
                side[j] += values[i + j]
            i += PAIRWISE_SUMS
        total = ((side[0] + side[1]) + (side[2] + side[3])) + (
            (side[4] + side[5]) + (side[6] + side[7])
        )
    while i < n:
        total += values[i]
        i += 1
    return total
