"""The log of support parts while training: appended to by updates, read since a mark.

Source: the paper's section 4, "reducing training runtime": a sentence seen before needs scoring
against the entries since then only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernel import node_columns, slot_layout
from tk_spacy.part_types import PartType, part_type
from tk_spacy.scoring import length_bins
from tk_spacy.support import Support, add_batch_scores, distinct, merge, node_rows

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]


class _Columns:
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


class _Values:
    """A growing float64 vector."""

    def __init__(self) -> None:
        self._values: Float64 = np.empty(256)
        self.size = 0

    def append(self, values: Float64) -> None:
        needed = self.size + len(values)
        if needed > len(self._values):
            self._values = np.concatenate([self._values[: self.size], np.empty(needed)])
        self._values[self.size : needed] = values
        self.size = needed

    def slice(self, start: int, stop: int | None = None) -> Float64:
        return self._values[start : self.size if stop is None else stop]


def _support_columns(slots: Int32, kinds: Int32) -> Int32:
    """Slot form with the binned length beside each distance: int32[p, w + edges]."""
    columns = []
    column = 0
    for kind in kinds:
        columns.append(slots[:, column])
        column += 1
        if kind:
            distances = np.ascontiguousarray(slots[:, column])
            columns += [distances, length_bins(distances)]
            column += 1
    return np.stack(columns, axis=1).astype(np.int32, copy=False)


@dataclass(slots=True)
class _TypeLog:
    type: PartType
    kinds: Int32
    skips: Int32
    parts: _Columns
    node_columns: NDArray[np.intp]
    """Columns of the node slots in slot form; node_rows: the same in support columns."""
    node_rows: NDArray[np.intp]
    weights: _Values
    averaged: _Values
    origins: list[tuple[int, int, int]]
    """For each update the number of its parts, its training sentence and its own number."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the log: numbers of nodes, of parts of each type, and of updates before it."""

    nodes: int
    parts: tuple[int, ...]
    updates: int


class SupportLog:
    """Support parts in the order in which training adds them.

    types: names of the part types that the kernel compares.  n_properties: width of node rows.
    skip: names of node slots that may be skipped.
    """

    def __init__(
        self, types: tuple[str, ...], n_properties: int, *, skip: tuple[str, ...] = ()
    ) -> None:
        self.skip = skip
        self._nodes = _Columns(n_properties)
        self._logs = []
        for name in types:
            kind = part_type(name)
            kinds = slot_layout(kind)
            self._logs.append(
                _TypeLog(
                    type=kind,
                    kinds=kinds,
                    skips=np.array(kind.skips(skip), dtype=np.int32),
                    parts=_Columns(int(len(kinds) + 2 * kinds.sum())),
                    node_columns=node_columns(kinds),
                    node_rows=node_rows(kinds),
                    weights=_Values(),
                    averaged=_Values(),
                    origins=[],
                )
            )
        self._updates = 0

    @property
    def types(self) -> tuple[str, ...]:
        """The names of the part types."""
        return tuple(log.type.name for log in self._logs)

    def mark(self) -> Mark:
        """Where the log ends now."""
        return Mark(self._nodes.size, tuple(log.parts.size for log in self._logs), self._updates)

    def append(
        self,
        nodes: Int32,
        slots: tuple[Int32, ...],
        signs: tuple[Int32, ...],
        *,
        weight: float,
        averaged: float,
        origin: tuple[int, int],
    ) -> None:
        """Add the exclusive parts of one update.

        nodes: int32[n + 2, P], the sentence's node rows.  slots, signs: for each type the parts in
        slot form, int32[p, w], and +1 or -1 for each.  weight, averaged: this update's tau, and its
        share in the averaged weights.  origin: number of the training sentence and of the update.
        """
        used = np.zeros(len(nodes), dtype=bool)
        for log, rows in zip(self._logs, slots, strict=True):
            used[rows[:, log.node_columns]] = True
        first = self._nodes.size
        self._nodes.append(nodes[used])
        places = (first - 1 + np.cumsum(used)).astype(np.int32)
        for log, rows, sign in zip(self._logs, slots, signs, strict=True):
            moved = rows.copy()
            moved[:, log.node_columns] = places[rows[:, log.node_columns]]
            log.parts.append(_support_columns(moved, log.kinds))
            log.weights.append(weight * sign.astype(np.float64))
            log.averaged.append(averaged * sign.astype(np.float64))
            log.origins.append((len(rows), *origin))
        self._updates += 1

    def add_scores(
        self,
        nodes: Sequence[Int32],
        slots: Sequence[Sequence[Int32]],
        out: Sequence[Sequence[Float64]],
        *,
        since: Mark,
        n_threads: int | None = None,
    ) -> None:
        """Add to out the weighted kernel of parts with the entries since a mark.

        For each sentence: nodes int32[n + 2, P]; for each type slots int32[p, w], and out
        float64[p].
        """
        if self._updates == since.updates:
            return
        columns = self._nodes.slice(since.nodes)
        types = []
        for i, log in enumerate(self._logs):
            start, stop = since.parts[i], log.parts.size
            parts = log.parts.slice(start, stop).copy()
            parts[log.node_rows] -= since.nodes
            types.append((log.kinds, log.skips, parts, log.weights.slice(start, stop)))
        add_batch_scores(nodes, slots, out, columns, types, n_threads)

    def freeze(self, *, tolerance: float = 0.0) -> Support:
        """The set of distinct parts with their averaged weights."""
        nodes = np.ascontiguousarray(self._nodes.slice(0).T)
        table, node_ids = distinct(nodes)
        types = {}
        for log in self._logs:
            columns = np.ascontiguousarray(log.parts.slice(0).T)
            for column in log.node_rows:
                columns[:, column] = node_ids[columns[:, column]]
            counts = np.array(log.origins, dtype=np.int32).reshape(-1, 3)
            origins = np.repeat(counts[:, 1:], counts[:, 0], axis=0)
            types[log.type.name] = merge(columns, log.averaged.slice(0), origins, tolerance)
        return Support(
            nodes=table, types=types, skips={g.type.name: g.skips for g in self._logs}
        ).compact()
