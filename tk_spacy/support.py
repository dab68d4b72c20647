"""The support: the parts that the kernel compares with, and their weights.

Source: the paper's section 4, "our implementation maintains its support as a set of parts rather
than a set of instances": what remains of the log of a training (see support_log) once equal parts
are merged and zero weights dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernel import node_columns, slot_layout
from tk_spacy.part_types import part_type
from tk_spacy.scoring import add_part_scores, count_matches

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]

MAX_COUNTS = 16_000_000
"""Cells of the table of match counts that are held at a time, two bytes each."""


def node_rows(kinds: Int32) -> NDArray[np.intp]:
    """Rows of the node slots in support columns, where an edge slot takes three."""
    starts = np.concatenate(([0], np.cumsum(2 * kinds + 1)[:-1]))
    return starts[kinds == 0]


def distinct(rows: Int32) -> tuple[Int32, NDArray[np.intp]]:
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


def merge(columns: Int32, weights: Float64, origins: Int32, tolerance: float) -> SupportParts:
    """Equal parts (int32[q, v], a part a row) as one, and those of weight zero left out."""
    rows, ids = distinct(columns)
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
            used[parts.columns[node_rows(slot_layout(part_type(name)))].ravel()] = True
        new = (np.cumsum(used) - 1).astype(np.int32)
        types = {}
        for name, parts in self.types.items():
            columns = parts.columns.copy()
            rows = node_rows(slot_layout(part_type(name)))
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
            rows = node_rows(kinds)
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
        """Add to out the weighted kernel of parts.

        For each sentence: nodes int32[n + 2, P]; for each type slots int32[p, w], and out
        float64[p].
        """
        add_batch_scores(nodes, slots, out, self._columns, self._types, n_threads)


def add_batch_scores(
    nodes: Sequence[Int32],
    slots: Sequence[Sequence[Int32]],
    out: Sequence[Sequence[Float64]],
    columns: Int32,
    types: Sequence[tuple[Int32, Int32, Int32, Float64]],
    n_threads: int | None,
) -> None:
    """Add to out the weighted kernel of parts; nodes, slots and out as SupportScorer.add_scores.

    columns: int32[P, s], the support's nodes.  types: for each part type its slots' kinds and
    skips, its support columns and weights.
    """
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
