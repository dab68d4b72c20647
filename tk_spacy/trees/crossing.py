"""Arcs that cross others."""

from __future__ import annotations

from collections.abc import Sequence


def crossing_arcs(heads: Sequence[int]) -> list[bool]:
    """Of each word, whether its arc crosses another one: exactly one end lies between its ends.

    heads: of a tree (see `validity.check_tree`).  The root's arc starts at place 0, so that a tree
    has crossing arcs where, and only where, it is not projective.
    """
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads, 1)]
    # The farthest ends of arcs at each place tell whether any of them leaves a stretch of words.
    first, last = list(range(len(heads) + 1)), list(range(len(heads) + 1))
    for low, high in arcs:
        last[low] = max(last[low], high)
        first[high] = min(first[high], low)
    return [
        high - low > 1
        and (max(last[low + 1 : high]) > high or min(first[low + 1 : high]) < low)
        for low, high in arcs
    ]  # fmt: skip
