"""The support: the parts that the kernel compares with, and their weights.

Source: the paper's section 4, "our implementation maintains its support as a set of parts rather
than a set of instances": what remains of the log of a training (see support_log) once equal parts
are merged and zero weights dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.compiled.blocks import edge_rows
from tk_spacy.kernels.plain_scoring import length_bins
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.utils.array_types import Float64, Int32

NODE, EDGE = 0, 1
"""Kinds of slots, see template_kernel.slot_layout."""

LARGEST_WEIGHT = 1e24
"""Of a part: its products with the kernel are summed in single precision."""


def node_rows(kinds: Int32) -> NDArray[np.intp]:
    """Rows of the node slots in support columns, where an edge slot takes three."""
    starts = np.concatenate(([0], np.cumsum(2 * kinds + 1)[:-1]))
    return starts[kinds == NODE]


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
    float64[u], what each of them gave: more than 0 where the part stood in the tree that should
    have won, less where it stood in the one that had won.
    origin_words: int32[u, s], the words of each of them in the node slots, in order: positions in
    the training sentence, 0 the root, one beyond the last word the sibling that was not there.
    None where they are not known (models of before).
    """

    columns: Int32
    weights: Float64
    origins: Int32
    origin_weights: Float64
    origin_words: Int32 | None = None

    def __len__(self) -> int:
        return len(self.weights)


def merge(
    columns: Int32, weights: Float64, origins: Int32, words: Int32, tolerance: float
) -> SupportParts:
    """Equal parts (int32[q, v], a part a row) as one, and those of weight zero left out.

    origins: int32[q, 2], training sentence and update.  words: int32[q, s], see SupportParts.
    """
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
        origin_words=np.ascontiguousarray(words[entries]),
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
            types[name] = replace(parts, columns=columns)
        return Support(np.ascontiguousarray(self.nodes[used]), types, self.skips)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        arrays: dict[str, NDArray[Any]] = {"nodes": self.nodes}
        for name, parts in self.types.items():
            arrays[f"{name}.columns"] = parts.columns
            arrays[f"{name}.weights"] = parts.weights
            arrays[f"{name}.origins"] = parts.origins
            arrays[f"{name}.origin_weights"] = parts.origin_weights
            if parts.origin_words is not None:
                arrays[f"{name}.origin_words"] = parts.origin_words
            arrays[f"{name}.skips"] = self.skips[name]
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], types: tuple[str, ...], *, n_properties: int
    ) -> Support:
        """The inverse of `to_arrays`.

        n_properties: width of the node rows that are to be compared with these.  Raises KeyError
        where an array is missing, ValueError where one has the wrong type or shape, names what is
        not there or holds what no training gives: the compiled loops trust them.
        """
        support = cls(
            nodes=arrays["nodes"],
            types={
                name: SupportParts(
                    columns=arrays[f"{name}.columns"],
                    weights=arrays[f"{name}.weights"],
                    origins=arrays[f"{name}.origins"],
                    origin_weights=arrays[f"{name}.origin_weights"],
                    origin_words=arrays.get(f"{name}.origin_words"),
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
            for row in edge_rows(kinds):
                _check_edges(f"{name}.columns", *columns[row : row + 3])
            if (np.abs(weights) > LARGEST_WEIGHT).any():
                raise ValueError(
                    f"{name}.weights holds one of {np.abs(weights).max():g}, expected at most "
                    f"{LARGEST_WEIGHT:g}"
                )
            _check_ids(f"{name}.skips", self.skips[name], 2)
            if not self.skips[name][kinds == EDGE].all():
                raise ValueError(f"{name}.skips has 0 for an edge, which may always be left out")
            _check_ids(f"{name}.origins", origins[:, 0], len(weights))
            if (origins[:, 1] < 0).any():
                raise ValueError(f"{name}.origins holds a sentence below 0")
            if (words := parts.origin_words) is not None:
                _check_array(f"{name}.origin_words", words, np.int32, (None, len(rows)))
                if len(words) != len(origins) or (words < 0).any():
                    raise ValueError(f"{name}.origin_words are not words of each origin")


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


def _check_edges(name: str, labels: Int32, distances: Int32, lengths: Int32) -> None:
    if (labels < 0).any() or (distances == np.iinfo(np.int32).min).any():
        raise ValueError(f"{name} holds a label below 0, or a distance that no sentence has")
    if (lengths != length_bins(np.ascontiguousarray(distances))).any():
        raise ValueError(f"{name} holds lengths that are not those of its distances")
