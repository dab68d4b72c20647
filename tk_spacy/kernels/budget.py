"""A bounded support while training: each update that would exceed the budget removes earlier ones.

Source: Wang and Vucetic, Online Passive-Aggressive Algorithms on a Budget (AISTATS 2010), BPA-S.
Where the support is full, the passive-aggressive update of step t also removes a support vector r
and may change the new one's coefficient only: of

    w_t - alpha_r phi_r + beta phi_t,    phi: the difference of features of one update,

the vector nearest to w_t that meets the update's constraint has beta = tau + alpha_r k_rt / k_tt,
with the same tau as without a budget (r is projected on the new vector, which leaves the margin of
step t as it was), and the r to remove is that of the least alpha_r^2 (k_rr - k_rt^2 / k_tt).

Ours differs in that the budget counts support parts, of which an update has several: whole updates
are removed, those of the least cost first, until the new one fits.  Manual features, which are
bounded anyhow, take no part in it.  The averaged vector is kept within the same budget: what was
removed is projected in it too, so that it is a combination of the same support parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.plain_scoring import count_matches, length_bins
from tk_spacy.kernels.support_log import SupportLog
from tk_spacy.kernels.template_kernel import node_columns
from tk_spacy.utils.array_types import Float64, Int32


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """The exclusive parts of one update of Algorithm 1.

    nodes: int32[n, P], rows that the parts name.  slots, signs: for each type the parts in slot
    form, int32[e, w], and +1 or -1 for each.  weight, averaged: see SupportLog.append.  norm: the
    squared norm of the signed sum of parts, by the kernel.  origin: training sentence and number.
    positions: int32[n], of the node rows in that sentence.
    """

    nodes: Int32
    slots: tuple[Int32, ...]
    signs: tuple[Int32, ...]
    weight: float
    averaged: float
    norm: float
    origin: tuple[int, int]
    positions: Int32

    def __len__(self) -> int:
        return sum(map(len, self.signs))


class Budget:
    """Keeps at most `size` support parts in a log, which it alone appends to.

    layouts: kinds and skips of the slots of each part type, int32[s] each.
    """

    def __init__(self, log: SupportLog, size: int, layouts: Sequence[tuple[Int32, Int32]]) -> None:
        if size < 1:
            raise ValueError(f"size is {size}, expected at least 1")
        self._log, self.size, self._layouts = log, size, list(layouts)
        self._kept: list[tuple[int, Update]] = []
        """Number in the log, and the update, oldest first."""
        self._tables: _Tables | None = None

    def __len__(self) -> int:
        """The number of parts that are kept."""
        return sum(len(update) for _, update in self._kept)

    def append(
        self,
        nodes: Int32,
        slots: tuple[Int32, ...],
        signs: tuple[Int32, ...],
        *,
        weight: float,
        averaged: float,
        norm: float,
        origin: tuple[int, int],
    ) -> None:
        """Add an update, and remove others where it does not fit.

        See Update; nodes may hold further rows.  One that alone exceeds the budget is not added.
        """
        positions = np.arange(len(nodes), dtype=np.int32)
        new = _compact(
            Update(nodes, slots, signs, weight, averaged, norm, origin, positions), self._layouts
        )
        excess = len(self) + len(new) - self.size
        if not len(new) or len(new) > self.size:
            return
        if excess > 0:
            shares = self._kernel_with(new) / norm if norm > 0 else np.zeros(len(self._kept))
            removed = self._cheapest(shares * shares * norm, excess)
            weight += float(sum(shares[i] * self._kept[i][1].weight for i in removed))
            averaged += float(sum(shares[i] * self._kept[i][1].averaged for i in removed))
            self._remove(removed)
        update = replace(new, weight=weight, averaged=averaged)
        self._kept.append((self._append(update), update))
        if self._tables is not None:
            self._tables.append(update, self._layouts)

    def _cheapest(self, projected: Float64, excess: int) -> list[int]:
        """Places of the updates to remove, in ascending order; of equal cost the oldest first.

        projected: float64[u], of the squared norm of each update the part that is not lost.
        """
        weights = np.array([update.weight for _, update in self._kept])
        norms = np.array([update.norm for _, update in self._kept])
        cost = weights * weights * np.maximum(norms - projected, 0.0)
        chosen = []
        for i in np.argsort(cost, kind="stable").tolist():
            if excess <= 0:
                break
            chosen.append(i)
            excess -= len(self._kept[i][1])
        return sorted(chosen)

    def _remove(self, places: list[int]) -> None:
        for place in places:
            number, update = self._kept[place]
            # Training lists remember scores with it: these are mended like any other change.
            self._log.remove(number)
            self._append(update, sign=-1.0)
        if self._tables is not None:
            self._tables.remove(places)
        for place in reversed(places):
            del self._kept[place]

    def _append(self, update: Update, sign: float = 1.0) -> int:
        return self._log.append(
            update.nodes,
            update.slots,
            update.signs,
            weight=sign * update.weight,
            averaged=update.averaged,
            origin=update.origin,
            positions=update.positions,
            lasting=sign > 0,
        )

    def _kernel_with(self, new: Update) -> Float64:
        """The kernel of the signed sum of parts of each kept update with that of a new one."""
        if self._tables is None:
            self._tables = _Tables(new.nodes.shape[1], self._layouts)
            for _, update in self._kept:
                self._tables.append(update, self._layouts)
        return self._tables.kernel_with(new, self._layouts, len(self._kept))


def _compact(update: Update, layouts: Sequence[tuple[Int32, Int32]]) -> Update:
    """The same with no other node rows than those that its parts name."""
    used = np.zeros(len(update.nodes), dtype=bool)
    for (kinds, _), rows in zip(layouts, update.slots, strict=True):
        used[rows[:, node_columns(kinds)]] = True
    new = (np.cumsum(used) - 1).astype(np.int32)
    moved = []
    for (kinds, _), rows in zip(layouts, update.slots, strict=True):
        rows = rows.copy()
        rows[:, node_columns(kinds)] = new[rows[:, node_columns(kinds)]]
        moved.append(rows)
    return Update(
        np.ascontiguousarray(update.nodes[used]), tuple(moved), update.signs, update.weight,
        update.averaged, update.norm, update.origin, update.positions[used],
    )  # fmt: skip


class _Tables:
    """The kept updates' parts as arrays.

    nodes: int32[P, n], a property a row.  node_owner: int32[n], the update of each.  slots: for
    each type int32[w, q].  signs: float64[q].  owner: int32[q].
    """

    def __init__(self, n_properties: int, layouts: Sequence[tuple[Int32, Int32]]) -> None:
        self.nodes: Int32 = np.zeros((n_properties, 0), dtype=np.int32)
        self.node_owner: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.slots: list[Int32] = [
            np.zeros((len(kinds) + int(kinds.sum()), 0), dtype=np.int32) for kinds, _ in layouts
        ]
        self.signs: list[Float64] = [np.zeros(0) for _ in layouts]
        self.owner: list[NDArray[np.intp]] = [np.zeros(0, dtype=np.intp) for _ in layouts]
        self._places = [node_columns(kinds) for kinds, _ in layouts]
        self._n = 0

    def append(self, update: Update, layouts: Sequence[tuple[Int32, Int32]]) -> None:
        first = self.nodes.shape[1]
        self.nodes = np.concatenate([self.nodes, update.nodes.T], axis=1)
        self.node_owner = np.append(self.node_owner, np.full(len(update.nodes), self._n))
        for i in range(len(layouts)):
            rows = update.slots[i].T.copy()
            rows[self._places[i]] += first
            self.slots[i] = np.concatenate([self.slots[i], rows], axis=1)
            self.signs[i] = np.append(self.signs[i], update.signs[i].astype(np.float64))
            self.owner[i] = np.append(self.owner[i], np.full(rows.shape[1], self._n))
        self._n += 1

    def remove(self, places: list[int]) -> None:
        stays = np.ones(self._n, dtype=bool)
        stays[places] = False
        number = np.cumsum(stays) - 1
        kept = stays[self.node_owner]
        row = (np.cumsum(kept) - 1).astype(np.int32)
        self.nodes = np.ascontiguousarray(self.nodes[:, kept])
        self.node_owner = number[self.node_owner[kept]]
        for i, owner in enumerate(self.owner):
            own = stays[owner]
            slots = np.ascontiguousarray(self.slots[i][:, own])
            slots[self._places[i]] = row[slots[self._places[i]]]
            self.slots[i] = slots
            self.signs[i] = self.signs[i][own]
            self.owner[i] = number[owner[own]]
        self._n -= len(places)

    def kernel_with(
        self, new: Update, layouts: Sequence[tuple[Int32, Int32]], n_updates: int
    ) -> Float64:
        """float64[n_updates]; see Budget._kernel_with."""
        counts = count_matches(new.nodes, self.nodes, n_threads=1)
        total = np.zeros(n_updates)
        for i, (kinds, skips) in enumerate(layouts):
            mine, theirs = new.slots[i], self.slots[i]
            product = new.signs[i][:, None] * self.signs[i][None, :]
            column = 0
            for kind, skip in zip(kinds, skips, strict=True):
                if kind:
                    product *= skip + _equal_edges(
                        mine[:, column], mine[:, column + 1], theirs[column], theirs[column + 1]
                    )
                    column += 2
                else:
                    product *= skip + counts[mine[:, column][:, None], theirs[column][None, :]]
                    column += 1
            total += np.bincount(self.owner[i], weights=product.sum(axis=0), minlength=n_updates)
        return total


def _equal_edges(
    labels: Int32, distances: Int32, other_labels: Int32, other_distances: Int32
) -> NDArray[np.int8]:
    """How many properties two edges share: int8[a, b] for edges [a] and [b]."""
    lengths = length_bins(np.ascontiguousarray(distances))[:, None]
    other_lengths = length_bins(np.ascontiguousarray(other_distances))[None, :]
    labels, distances = labels[:, None], distances[:, None]
    equal = ((labels == other_labels) & (labels != 0)).astype(np.int8)
    equal += (distances == other_distances) & (distances != 0)
    equal += (lengths == other_lengths) & (lengths != 0)
    return equal
