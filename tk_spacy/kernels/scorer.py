"""Scores of many sentences' parts against a support: frozen, or growing while training."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock
from weakref import WeakSet

import numpy as np

from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.compiled.blocks import SIZE, block_bounds, edge_rows
from tk_spacy.kernels.compiled.node_groups import NodeGroups, first_equal
from tk_spacy.kernels.compiled.scoring import CompiledParts, fits_bytes
from tk_spacy.kernels.plain_scoring import add_part_scores, count_matches
from tk_spacy.kernels.support import Support, node_rows
from tk_spacy.kernels.template_kernel import node_columns, slot_layout
from tk_spacy.utils.array_types import Float64, Int32

KEPT_BYTES = 256 << 20
"""What the rows that are kept may take, by default; with 58,842 support parts they use half."""

LEAST_ROWS, MOST_ROWS = 256, 1 << 15
"""Rows kept of each block, at least and at most."""

MOST_COMBINATIONS = 1 << 16
"""Combinations of properties that are numbered before all are forgotten."""

FREQUENT = 1 / 64
"""Share of the support parts that have a value from which on its row is kept."""

WORDS_AT_A_TIME = 8192
MAX_COUNTS = 16_000_000
"""Cells of the plain table of match counts that are held at a time, two bytes each."""


def compile_parts(
    kinds: Int32,
    skips: Int32,
    groups: NodeGroups,
    *,
    columns: Int32,
    weights: Float64,
    ids: Int32,
    singles: Int32,
    memory: int = KEPT_BYTES,
) -> CompiledParts:
    """Support parts of one type in the form that is scored fast.

    columns, weights: of the parts, see SupportParts.  ids, singles: of the support's nodes, from
    groups.encode.  memory: bytes that kept rows may take.
    """
    edges = edge_rows(kinds)
    # By distance and label: see all_arcs.score_all_arcs.
    order = np.lexsort((columns[edges[-1]], columns[edges[-1] + 1]))
    columns, weights = columns[:, order], weights[order]
    bounds = block_bounds(columns, kinds)
    limit = min(MOST_ROWS, max(LEAST_ROWS, memory // (SIZE * max(1, len(bounds) - 1))))
    frequent = frequent_values(columns[node_rows(kinds)], singles)
    compiled = CompiledParts(kinds, skips, groups, frequent, limit)
    for start, stop in pairwise(bounds):
        compiled.append(
            np.ascontiguousarray(columns[:, start:stop]), weights[start:stop], ids, singles
        )
    return compiled


def frequent_values(nodes: Int32, singles: Int32) -> list[Int32]:
    """The frequent values of each single property in each node slot, int32[q], a row of `nodes`."""
    frequent = []
    for rows in nodes:
        for column in range(singles.shape[1]):
            known, counts = np.unique(singles[rows, column], return_counts=True)
            frequent.append(known[(known != 0) & (counts > FREQUENT * len(rows))])
    return frequent


_scorers: WeakSet[SupportScorer] = WeakSet()


def _after_fork() -> None:
    for scorer in list(_scorers):
        scorer.after_fork()


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=_after_fork)


class SupportScorer:
    """Scores parts against a frozen support, which is compiled when first needed.

    groups: columns of node rows whose combinations are few (Schema.property_groups); None for one
    group of all.  memory: bytes that kept rows of all types may take together.
    """

    def __init__(
        self,
        support: Support,
        groups: Sequence[Sequence[int]] | None = None,
        *,
        memory: int = KEPT_BYTES,
    ) -> None:
        self._support = support
        n_properties = support.nodes.shape[1]
        self._groups = NodeGroups([range(n_properties)] if groups is None else groups, n_properties)
        self._memory = memory
        self._compiled: list[CompiledParts] | None = None
        # Kept rows are shared, and scoring lets go of the interpreter.
        self._lock = Lock()
        _scorers.add(self)

    def after_fork(self) -> None:
        """In a forked child: what another thread was working on is left to the parent."""
        if self._lock.locked():
            self._lock = Lock()
            self._groups.clear()
            self._compiled = None

    def compiled(self) -> list[CompiledParts]:
        """The support's types, compiled."""
        if self._compiled is None:
            support = self._support
            ids, singles = self._groups.encode(support.nodes)
            self._compiled = [
                compile_parts(
                    slot_layout(part_type(name)),
                    support.skips[name],
                    self._groups,
                    columns=parts.columns,
                    weights=parts.weights,
                    ids=ids,
                    singles=singles,
                    memory=self._memory * len(parts) // max(1, len(support)),
                )
                for name, parts in support.types.items()
            ]
        return self._compiled

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
        support = self._support
        if not fits_bytes(support.nodes.shape[1]):
            columns = np.ascontiguousarray(support.nodes.T)
            types = [
                (slot_layout(part_type(name)), support.skips[name], parts.columns, parts.weights)
                for name, parts in support.types.items()
            ]
            add_batch_scores(nodes, slots, out, columns, types, n_threads)
            return
        with self._lock:
            compiled = self.compiled()
            if len(self._groups) > MOST_COMBINATIONS:
                self._groups.clear()
                for parts in compiled:
                    parts.keeper.clear()
            add_compiled_scores(nodes, slots, out, self._groups, compiled, n_threads=n_threads)


def add_compiled_scores(
    nodes: Sequence[Int32],
    slots: Sequence[Sequence[Int32]],
    out: Sequence[Sequence[Float64]],
    groups: NodeGroups,
    compiled: Sequence[CompiledParts],
    *,
    first: Sequence[int] | None = None,
    n_threads: int | None = None,
) -> None:
    """Add to out the weighted kernel of parts; nodes, slots and out as SupportScorer.add_scores.

    first: for each type the first block that counts.
    """
    for start, stop in chunks([len(rows) for rows in nodes], WORDS_AT_A_TIME):
        ids, singles = groups.encode(np.concatenate(nodes[start:stop]))
        # Words of several sentences that are the same have one row; of one sentence few are.
        same = first_equal(ids, singles) if stop - start > 1 else None
        for i, parts in enumerate(compiled):
            joined = together(nodes, slots, start, stop, i, parts.kinds)
            if same is not None:
                columns = node_columns(parts.kinds)
                joined[:, columns] = same[joined[:, columns]]
            scores = np.zeros(len(joined))
            parts.add_scores(
                ids, singles, joined, scores, first=first[i] if first else 0, n_threads=n_threads
            )
            distribute(scores, out[start:stop], i)


def add_batch_scores(
    nodes: Sequence[Int32],
    slots: Sequence[Sequence[Int32]],
    out: Sequence[Sequence[Float64]],
    columns: Int32,
    types: Sequence[tuple[Int32, Int32, Int32, Float64]],
    n_threads: int | None,
) -> None:
    """The same without compiling anything: for few support parts, and for any number of properties.

    columns: int32[P, s], the support's nodes.  types: for each part type its slots' kinds and
    skips, its support columns and weights.
    """
    most = MAX_COUNTS // max(1, columns.shape[1])
    for start, stop in chunks([len(rows) for rows in nodes], most):
        counts = count_matches(np.concatenate(nodes[start:stop]), columns, n_threads=n_threads)
        for i, (kinds, skips, parts, weights) in enumerate(types):
            joined = together(nodes, slots, start, stop, i, kinds)
            scores = np.zeros(len(joined))
            add_part_scores(
                counts, joined, parts, weights, kinds, skips, scores, n_threads=n_threads
            )
            distribute(scores, out[start:stop], i)


def chunks(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of items whose sizes add up to no more than that, or of one item."""
    start = 0
    while start < len(sizes):
        stop, total = start + 1, sizes[start]
        while stop < len(sizes) and total + sizes[stop] <= most:
            total += sizes[stop]
            stop += 1
        yield start, stop
        start = stop


def together(
    nodes: Sequence[Int32],
    slots: Sequence[Sequence[Int32]],
    start: int,
    stop: int,
    i: int,
    kinds: Int32,
) -> Int32:
    """The parts of type i of some sentences, naming rows of all their nodes together."""
    moved, first = [], 0
    for rows, of_types in zip(nodes[start:stop], slots[start:stop], strict=True):
        parts = of_types[i]
        if first:
            parts = parts.copy()
            parts[:, node_columns(kinds)] += first
        moved.append(parts)
        first += len(rows)
    return moved[0] if len(moved) == 1 else np.concatenate(moved)


def distribute(scores: Float64, out: Sequence[Sequence[Float64]], i: int) -> None:
    """Add the scores of parts of type i of some sentences to these sentences' own."""
    done = 0
    for item in out:
        item[i][:] += scores[done : done + len(item[i])]
        done += len(item[i])
