"""The support: the parts that the kernel compares with, and their weights.

Source: the paper's section 4, "our implementation maintains its support as a set of parts rather
than a set of instances".  While training, parts are appended to a log, so that a sentence seen
before needs scoring against the entries since then only; afterwards equal parts are merged and
zero weights dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernel import node_columns, slot_layout
from tk_spacy.part_types import PartType, part_type
from tk_spacy.scoring import add_part_scores, count_matches, length_bins

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]

MAX_COUNTS = 16_000_000
"""Cells of the table of match counts that are held at a time, two bytes each."""


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
                    node_rows=_node_rows(kinds),
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
        _add_batch_scores(nodes, slots, out, columns, types, n_threads)

    def freeze(self, *, tolerance: float = 0.0) -> Support:
        """The set of distinct parts with their averaged weights."""
        nodes = np.ascontiguousarray(self._nodes.slice(0).T)
        table, node_ids = _distinct(nodes)
        types = {}
        for log in self._logs:
            columns = np.ascontiguousarray(log.parts.slice(0).T)
            for column in log.node_rows:
                columns[:, column] = node_ids[columns[:, column]]
            counts = np.array(log.origins, dtype=np.int32).reshape(-1, 3)
            origins = np.repeat(counts[:, 1:], counts[:, 0], axis=0)
            types[log.type.name] = _merge(columns, log.averaged.slice(0), origins, tolerance)
        return Support(
            nodes=table, types=types, skips={g.type.name: g.skips for g in self._logs}
        ).compact()


def _node_rows(kinds: Int32) -> NDArray[np.intp]:
    # As node_columns, but in support columns an edge slot takes three places.
    starts = np.concatenate(([0], np.cumsum(2 * kinds + 1)[:-1]))
    return starts[kinds == 0]


def _distinct(rows: Int32) -> tuple[Int32, NDArray[np.intp]]:
    """Distinct rows in the order of their first occurrence, and which of them each row is."""
    if not len(rows):
        return rows, np.zeros(0, dtype=np.intp)
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first, inverse = np.unique(keys.ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rows[first[order]], rank[inverse]


@dataclass(frozen=True, slots=True, eq=False)
class SupportParts:
    """The support parts of one type.

    columns: int32[v, q], the parts column by column (edge slots: label, distance, binned length).
    weights: float64[q], averaged.
    origins: int32[u, 3], ascending by part: (part, training sentence, update); origin_weights:
    float64[u], what each of them gave.
    """

    columns: Int32
    weights: Float64
    origins: Int32
    origin_weights: Float64

    def __len__(self) -> int:
        return len(self.weights)


def _merge(columns: Int32, weights: Float64, origins: Int32, tolerance: float) -> SupportParts:
    rows, ids = _distinct(columns)
    total = np.zeros(len(rows))
    np.add.at(total, ids, weights)
    keep = np.abs(total) > tolerance
    new = np.cumsum(keep) - 1
    entries = np.flatnonzero(keep[ids])
    entries = entries[np.argsort(ids[entries], kind="stable")]
    named = np.column_stack([new[ids[entries]], origins[entries]]).astype(np.int32)
    return SupportParts(
        columns=np.ascontiguousarray(rows[keep].T),
        weights=total[keep],
        origins=named,
        origin_weights=weights[entries],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """A trained support set: node rows int32[P, s] by column in `columns()`, parts by type."""

    nodes: Int32
    types: Mapping[str, SupportParts]
    skips: Mapping[str, Int32]

    def __len__(self) -> int:
        """The number of support parts of all types."""
        return sum(len(parts) for parts in self.types.values())

    def compact(self) -> Support:
        """The same without node rows that no part names."""
        used = np.zeros(len(self.nodes), dtype=bool)
        for name, parts in self.types.items():
            used[parts.columns[_node_rows(slot_layout(part_type(name)))].ravel()] = True
        new = (np.cumsum(used) - 1).astype(np.int32)
        types = {}
        for name, parts in self.types.items():
            columns = parts.columns.copy()
            rows = _node_rows(slot_layout(part_type(name)))
            columns[rows] = new[columns[rows]]
            types[name] = SupportParts(columns, parts.weights, parts.origins, parts.origin_weights)
        return Support(np.ascontiguousarray(self.nodes[used]), types, self.skips)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        arrays: dict[str, NDArray[Any]] = {"nodes": self.nodes}
        for name, parts in self.types.items():
            arrays[f"{name}.columns"] = parts.columns
            arrays[f"{name}.weights"] = parts.weights
            arrays[f"{name}.origins"] = parts.origins
            arrays[f"{name}.origin_weights"] = parts.origin_weights
            arrays[f"{name}.skips"] = self.skips[name]
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], types: tuple[str, ...], *, n_properties: int
    ) -> Support:
        """The inverse of `to_arrays`.

        n_properties: width of the node rows that are to be compared with these.  Raises KeyError
        where an array is missing, ValueError where one has the wrong type or shape or names what is
        not there: the compiled loops trust them.
        """
        support = cls(
            nodes=arrays["nodes"],
            types={
                name: SupportParts(
                    columns=arrays[f"{name}.columns"],
                    weights=arrays[f"{name}.weights"],
                    origins=arrays[f"{name}.origins"],
                    origin_weights=arrays[f"{name}.origin_weights"],
                )
                for name in types
            },
            skips={name: arrays[f"{name}.skips"] for name in types},
        )
        support._check(n_properties)
        return support

    def _check(self, n_properties: int) -> None:
        _check_array("nodes", self.nodes, np.int32, (None, n_properties))
        for name, parts in self.types.items():
            kinds = slot_layout(part_type(name))
            rows = _node_rows(kinds)
            columns, weights, origins = parts.columns, parts.weights, parts.origins
            _check_array(f"{name}.columns", columns, np.int32, (len(kinds) + 2 * kinds.sum(), None))
            _check_array(f"{name}.weights", weights, np.float64, (columns.shape[1],))
            _check_array(f"{name}.skips", self.skips[name], np.int32, (len(kinds),))
            _check_array(f"{name}.origins", origins, np.int32, (None, 3))
            _check_array(
                f"{name}.origin_weights", parts.origin_weights, np.float64, (len(origins),)
            )
            _check_ids(f"{name}.columns", columns[rows], len(self.nodes))
            _check_ids(f"{name}.skips", self.skips[name], 2)
            _check_ids(f"{name}.origins", origins[:, 0], len(weights))


def _check_array(
    name: str, array: NDArray[Any], dtype: type, shape: tuple[int | None, ...]
) -> None:
    """Raises ValueError unless the array has that type and shape (None: any) and is finite."""
    fits = array.ndim == len(shape) and all(
        wanted is None or given == wanted for given, wanted in zip(array.shape, shape, strict=True)
    )
    if array.dtype != dtype or not fits or not array.flags.c_contiguous:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} is {array.dtype}{list(array.shape)}, expected {np.dtype(dtype)}[{wanted}]"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds values that are not finite")


def _check_ids(name: str, ids: NDArray[Any], n: int) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= n):
        raise ValueError(f"{name} holds {ids.min()} to {ids.max()}, expected 0 to {n - 1}")


class SupportScorer:
    """Scores parts against a frozen support."""

    def __init__(self, support: Support) -> None:
        self._columns = np.ascontiguousarray(support.nodes.T)
        self._types = [
            (slot_layout(part_type(name)), support.skips[name], parts.columns, parts.weights)
            for name, parts in support.types.items()
        ]

    def add_scores(
        self,
        nodes: Sequence[Int32],
        slots: Sequence[Sequence[Int32]],
        out: Sequence[Sequence[Float64]],
        *,
        n_threads: int | None = None,
    ) -> None:
        """Add to out the weighted kernel of parts; arguments as SupportLog.add_scores."""
        _add_batch_scores(nodes, slots, out, self._columns, self._types, n_threads)


def _add_batch_scores(
    nodes: Sequence[Int32],
    slots: Sequence[Sequence[Int32]],
    out: Sequence[Sequence[Float64]],
    columns: Int32,
    types: Sequence[tuple[Int32, Int32, Int32, Float64]],
    n_threads: int | None,
) -> None:
    # One parallel pass over many sentences, as many at a time as keeps the counts small.
    start = 0
    while start < len(nodes):
        stop, n_rows = start, 0
        while stop < len(nodes) and (
            stop == start or (n_rows + len(nodes[stop])) * columns.shape[1] <= MAX_COUNTS
        ):
            n_rows += len(nodes[stop])
            stop += 1
        counts = count_matches(np.concatenate(nodes[start:stop]), columns, n_threads=n_threads)
        first_rows = np.cumsum([0] + [len(rows) for rows in nodes[start : stop - 1]])
        for i, (kinds, skips, parts, weights) in enumerate(types):
            moved = [
                _shifted(item[i], kinds, int(first))
                for item, first in zip(slots[start:stop], first_rows, strict=True)
            ]
            together = moved[0] if len(moved) == 1 else np.concatenate(moved)
            scores = np.zeros(len(together))
            add_part_scores(
                counts, together, parts, weights, kinds, skips, scores, n_threads=n_threads
            )
            done = 0
            for item in out[start:stop]:
                item[i][:] += scores[done : done + len(item[i])]
                done += len(item[i])
        start = stop


def _shifted(slots: Int32, kinds: Int32, first: int) -> Int32:
    if not first:
        return slots
    moved = slots.copy()
    moved[:, node_columns(kinds)] += first
    return moved
