"""A stream in batches that are worth sharing, cut in the same places whoever does them.

The last digits of a network's numbers depend on which sentences it is given at once, so that the
results are the same to the last byte only where the batches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

FIRST = 16
"""Items of the first batch, which is done before others are shared: it loads what all need."""
MOST = 128
"""Items of the others: more take no less time each, fewer take more."""
MOST_WORDS = 1500
"""Words of a batch of more than one item: some dozens of long sentences are enough to share."""


def in_parts(
    items: Iterable[T], words: Callable[[T], int], *, most: int = MOST, most_words: int = MOST_WORDS
) -> Iterator[list[T]]:
    """Consecutive items as batches, each given as soon as it is full.

    words: of an item.  most: items of a batch.  most_words: words of one of more than one item.
    """
    batch: list[T] = []
    total, size = 0, min(FIRST, most)
    for item in items:
        own = words(item)
        if batch and total + own > most_words:
            yield batch
            batch, total, size = [], 0, most
        batch.append(item)
        total += own
        if len(batch) == size:
            yield batch
            batch, total, size = [], 0, most
    if batch:
        yield batch
