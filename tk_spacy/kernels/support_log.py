"""The log of support parts while training: appended to by updates, read since a mark.

Source: the paper's section 4, "reducing training runtime": a sentence seen before needs scoring
against the entries since then only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import PartType, part_type
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.scoring import fits_bytes
from tk_spacy.kernels.growing import Columns, GrowingParts, Values
from tk_spacy.kernels.plain_scoring import length_bins
from tk_spacy.kernels.scorer import (
    KEPT_BYTES,
    MOST_COMBINATIONS,
    add_batch_scores,
    add_compiled_scores,
)
from tk_spacy.kernels.support import NODE, Support, distinct, merge, node_rows
from tk_spacy.kernels.template_kernel import node_columns, slot_layout
from tk_spacy.utils.array_types import Float64, Int32

FEW = 512
"""Support parts that are scored without compiling them."""


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
    parts: Columns
    node_columns: NDArray[np.intp]
    """Columns of the node slots in slot form; node_rows: the same in support columns."""
    node_rows: NDArray[np.intp]
    weights: Values
    averaged: Values
    origins: list[tuple[int, int, int]]
    """For each entry the number of its parts, and the training sentence and number of its update.
    """
    words: Columns
    """The positions of the parts' words in that sentence, by node slot."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the log: numbers of nodes, of parts of each type, and of updates before it."""

    nodes: int
    parts: tuple[int, ...]
    updates: int


class SupportLog:
    """Support parts in the order in which training adds them.

    types: names of the part types that the kernel compares.  n_properties: width of node rows.
    skip: names of node slots that may be skipped.  groups: see SupportScorer.
    """

    def __init__(
        self,
        types: tuple[str, ...],
        n_properties: int,
        *,
        skip: tuple[str, ...] = (),
        groups: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.skip = skip
        self._nodes = Columns(n_properties)
        self._logs = []
        for name in types:
            kind = part_type(name)
            kinds = slot_layout(kind)
            self._logs.append(
                _TypeLog(
                    type=kind,
                    kinds=kinds,
                    skips=np.array(kind.skips(skip), dtype=np.int32),
                    parts=Columns(int(len(kinds) + 2 * kinds.sum())),
                    node_columns=node_columns(kinds),
                    node_rows=node_rows(kinds),
                    weights=Values(),
                    averaged=Values(),
                    origins=[],
                    words=Columns(int((kinds == NODE).sum())),
                )
            )
        self._updates = 0
        self._lasting: list[bool] = []
        """Of each entry whether its parts are in the support that training ends with."""
        self._groups = NodeGroups([range(n_properties)] if groups is None else groups, n_properties)
        self._grown = [
            GrowingParts(log.kinds, log.skips, self._groups, memory=KEPT_BYTES // len(self._logs))
            for log in self._logs
        ]

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
        positions: Int32 | None = None,
        lasting: bool = True,
    ) -> int:
        """Add the exclusive parts of one update; its place in the log, for `remove`.

        nodes: int32[n + 2, P], the sentence's node rows.  slots, signs: for each type the parts in
        slot form, int32[p, w], and +1 or -1 for each.  weight, averaged: this update's tau, and its
        share in the averaged weights.  origin: number of the training sentence and of the update.
        positions: int32[n + 2], of the node rows in that sentence; None for 0, 1 and so on.
        lasting: False for what takes the weight of a removed update back.
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
            words = rows[:, log.node_columns]
            log.words.append(words if positions is None else positions[words])
        self._lasting.append(lasting)
        self._updates += 1
        return self._updates - 1

    def remove(self, place: int) -> None:
        """The parts added at that place are not in the support in the end.

        Scores go on counting them: what takes their weight back is for the caller to add.
        """
        self._lasting[place] = False

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
        grown_by = [log.parts.size - n for log, n in zip(self._logs, since.parts, strict=True)]
        if max(grown_by, default=0) < FEW or not fits_bytes(self._groups.n_properties):
            columns = self._nodes.slice(since.nodes)
            types = []
            for i, log in enumerate(self._logs):
                start = since.parts[i]
                parts = log.parts.slice(start).copy()
                parts[log.node_rows] -= since.nodes
                types.append((log.kinds, log.skips, parts, log.weights.slice(start)))
            add_batch_scores(nodes, slots, out, columns, types, n_threads)
            return
        if len(self._groups) > MOST_COMBINATIONS:
            self._groups.clear()
            for grown in self._grown:
                grown.compiled.keeper.clear()
        for grown, log in zip(self._grown, self._logs, strict=True):
            grown.follow(log.parts, log.weights, self._nodes)
        with ExitStack() as stack:
            first = [
                stack.enter_context(grown.since(start))
                for grown, start in zip(self._grown, since.parts, strict=True)
            ]
            add_compiled_scores(
                nodes, slots, out, self._groups, [grown.compiled for grown in self._grown],
                first=first, n_threads=n_threads,
            )  # fmt: skip

    def forget(self, before: Mark) -> None:
        """What came before a mark will not be scored with any more: its compiled form can go."""
        for grown, start in zip(self._grown, before.parts, strict=True):
            grown.forget(start)

    def freeze(self, *, tolerance: float = 0.0, late: int | None = None) -> Support:
        """The set of distinct parts with their averaged weights.

        late: where the number of steps was not known while training, that number: `averaged` was
        then told for each update what it lacks in the sum over all steps, not its share.
        """
        nodes = np.ascontiguousarray(self._nodes.slice(0).T)
        table, node_ids = distinct(nodes)
        types = {}
        for log in self._logs:
            columns = np.ascontiguousarray(log.parts.slice(0).T)
            for column in log.node_rows:
                columns[:, column] = node_ids[columns[:, column]]
            counts = np.array(log.origins, dtype=np.int32).reshape(-1, 3)
            origins = np.repeat(counts[:, 1:], counts[:, 0], axis=0)
            lasting = np.repeat(np.array(self._lasting, dtype=bool), counts[:, 0])
            averaged = log.averaged.slice(0)
            if late is not None:
                averaged = log.weights.slice(0) - averaged / late
            words = log.words.slice(0).T
            types[log.type.name] = merge(
                columns[lasting], averaged[lasting], origins[lasting], words[lasting], tolerance
            )
        return Support(
            nodes=table, types=types, skips={g.type.name: g.skips for g in self._logs}
        ).compact()
