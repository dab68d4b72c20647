"""Sentences of about the same length side by side, and where their words stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the rows of a batch stand; a sentence of n words has n + 1 rows, the root's first.

    lengths: int64[S], rows of each sentence.  owner: int64[rows], a row's sentence.
    time, reverse: int64[rows], a row's place from the left and from the right.
    words: int64[words], the rows that are no roots.
    """

    lengths: Int
    owner: Int
    time: Int
    reverse: Int
    words: Int

    @classmethod
    def of(cls, lengths: Sequence[int] | Int, ops: Any = None) -> Layout:
        """The layout of sentences with so many rows (words and root).

        ops: thinc's, on whose device all but the lengths are to be; None for numpy arrays.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        time = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        reverse = sizes[owner] - 1 - time
        words = np.flatnonzero(time)
        if ops is not None and ops.xp is not np:
            owner, time, reverse, words = map(ops.xp.asarray, (owner, time, reverse, words))
        return cls(sizes, owner, time, reverse, words)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.lengths)

    @property
    def steps(self) -> int:
        """Rows of the longest sentence."""
        return int(self.lengths.max())


def make_batches(
    lengths: Sequence[int], size: int, *, rng: np.random.Generator | None = None
) -> list[list[int]]:
    """Sentences in batches of at most `size` rows, padding included (or of one sentence).

    rng: shuffles the batches, and sentences of nearly the same length among batches; None sorts by
    length and place, so that the batches of the same sentences are always the same.
    """
    keys = np.asarray(lengths, dtype=np.float64)
    if rng is not None:
        keys = keys * rng.uniform(0.85, 1.15, len(keys))
    batches: list[list[int]] = []
    longest = 0
    for i in np.argsort(keys, kind="stable").tolist():
        longest = max(longest, lengths[i])
        if not batches or (len(batches[-1]) + 1) * longest > size:
            batches.append([])
            longest = lengths[i]
        batches[-1].append(i)
    if rng is not None:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches
