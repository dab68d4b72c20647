"""Support parts that come while training, compiled block by block as they come."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from tk_spacy.kernels.compiled.blocks import SIZE, block_bounds
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.scoring import CompiledParts
from tk_spacy.kernels.scorer import LEAST_ROWS, frequent_values
from tk_spacy.kernels.support import node_rows
from tk_spacy.utils.array_types import Float64, Int32

KEPT_ROWS = 2048
"""Rows that a block keeps, as long as there are few blocks."""

NO_VALUES: Int32 = np.zeros(0, dtype=np.int32)


class Columns:
    """A growing int32 table kept column by column: appending rows is cheap, and so are slices."""

    def __init__(self, width: int) -> None:
        self._table: Int32 = np.empty((width, 256), dtype=np.int32)
        self.size = 0

    def append(self, rows: Int32) -> None:
        """Append rows, int32[r, width]."""
        needed = self.size + len(rows)
        if needed > self._table.shape[1]:
            grown = np.empty((len(self._table), 2 * needed), dtype=np.int32)
            grown[:, : self.size] = self._table[:, : self.size]
            self._table = grown
        self._table[:, self.size : needed] = rows.T
        self.size = needed

    def slice(self, start: int, stop: int | None = None) -> Int32:
        """Columns start..stop of the table: int32[width, stop - start]."""
        return self._table[:, start : self.size if stop is None else stop]


class Values:
    """A growing float64 vector."""

    def __init__(self) -> None:
        self._values: Float64 = np.empty(256)
        self.size = 0

    def append(self, values: Float64) -> None:
        """Append values, float64[r]."""
        needed = self.size + len(values)
        if needed > len(self._values):
            self._values = np.concatenate([self._values[: self.size], np.empty(needed)])
        self._values[self.size : needed] = values
        self.size = needed

    def slice(self, start: int, stop: int | None = None) -> Float64:
        """Values start..stop."""
        return self._values[start : self.size if stop is None else stop]


class GrowingParts:
    """The compiled form of one part type's log: blocks that are full, and one that is not yet.

    kinds, skips: int32 per slot.  groups: of node properties.  memory: bytes that kept rows may
    take.
    """

    def __init__(self, kinds: Int32, skips: Int32, groups: NodeGroups, *, memory: int) -> None:
        self._kinds, self._skips, self._groups = kinds, skips, groups
        self._memory = memory
        self._rows = node_rows(kinds)
        self._compiled: CompiledParts | None = None
        self._starts: list[int] = []
        self._weights: list[Float64] = []
        self._size = 0
        """Parts compiled, forgotten ones too; the last block may be replaced by a fuller one."""

    @property
    def compiled(self) -> CompiledParts:
        """The blocks; valid after `follow`.  None of them where no part has come yet."""
        if self._compiled is None:
            return self._without_blocks([NO_VALUES] * (len(self._rows) * len(self._groups.singles)))
        return self._compiled

    def _without_blocks(self, frequent: list[Int32]) -> CompiledParts:
        return CompiledParts(self._kinds, self._skips, self._groups, frequent, KEPT_ROWS)

    def follow(self, parts: Columns, weights: Values, nodes: Columns) -> None:
        """Compile what came since the last call."""
        if parts.size == self._size:
            return
        start = self._size
        if self._starts and self._size - self._starts[-1] < SIZE:
            start = self._starts.pop()
            self._weights.pop()
            self.compiled.blocks.pop()
        columns = parts.slice(start).copy()
        first = int(columns[self._rows].min())
        columns[self._rows] -= first
        last = int(columns[self._rows].max()) + 1
        ids, singles = self._groups.encode(np.ascontiguousarray(nodes.slice(first, first + last).T))
        if self._compiled is None:
            self._compiled = self._without_blocks(frequent_values(columns[self._rows], singles))
        bounds = block_bounds(columns, self._kinds)
        for low, high in pairwise(bounds):
            own = weights.slice(start + low, start + high).copy()
            self._compiled.append(np.ascontiguousarray(columns[:, low:high]), own, ids, singles)
            self._starts.append(start + low)
            self._weights.append(own)
        self._size = parts.size
        limit = self._compiled.keeper.limit
        while limit > LEAST_ROWS and len(self._starts) * limit * SIZE > self._memory:
            limit //= 2
        self._compiled.keeper.shrink(limit)

    @contextmanager
    def since(self, start: int) -> Iterator[int]:
        """The first block with parts from `start` on; earlier ones count nothing meanwhile."""
        i = bisect_right(self._starts, start) - 1
        if i < 0 and self._starts:
            raise ValueError(f"part {start} is forgotten, expected {self._starts[0]} or later")
        masked = bool(self._starts) and start > self._starts[i]
        if masked:
            weights = self._weights[i].copy()
            weights[: start - self._starts[i]] = 0.0
            self.compiled.blocks[i].weigh(weights)
        try:
            yield max(i, 0)
        finally:
            if masked:
                self.compiled.blocks[i].weigh(self._weights[i])

    def forget(self, before: int) -> None:
        """Drop the blocks whose parts all came before."""
        n = max(0, bisect_right(self._starts, before) - 1)
        if n:
            del self._starts[:n], self._weights[:n], self.compiled.blocks[:n]
