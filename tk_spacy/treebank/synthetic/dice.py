"""Random draws that come out the same on every platform and in every Python version.

Only ``random.Random.random()`` is used: of that module's methods it is the one whose sequence
Python promises to keep.  Everything here needs no more than additions, products and quotients,
which IEEE 754 rounds alike everywhere; ``log`` and ``pow`` may differ in the last bit.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Table(Generic[T]):
    """Items with weights, for :meth:`Dice.draw`.

    Args:
        items: what may be drawn, at least one.
        weights: a positive number for each item; by default Zipf-Mandelbrot weights,
            1 / (rank + 2), so that the first items are much the most frequent.
    """

    __slots__ = ("bounds", "items")

    def __init__(self, items: Sequence[T], weights: Sequence[float] | None = None) -> None:
        if weights is None:
            weights = [1.0 / (rank + 2.0) for rank in range(1, len(items) + 1)]
        if not items or len(items) != len(weights):
            raise ValueError(f"{len(items)} items with {len(weights)} weights: expected as many")
        self.items = list(items)
        self.bounds = list(accumulate(weights))


class Dice:
    """A seeded source of choices.  ValueError for a negative seed, which Random would fold."""

    __slots__ = ("_random",)

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"seed is {seed}, expected 0 or more")
        self._random = Random(seed).random

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self._random() < probability

    def unit(self) -> float:
        """A number from [0, 1)."""
        return self._random()

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        return int(self._random() * n)

    def one_of(self, items: Sequence[T]) -> T:
        """One of the items, each as likely as the next."""
        return items[int(self._random() * len(items))]

    def draw(self, table: Table[T]) -> T:
        """One of the table's items, by its weights."""
        bounds = table.bounds
        place = bisect_right(bounds, self._random() * bounds[-1])
        return table.items[min(place, len(bounds) - 1)]
