"""Pruning: the support without the parts that matter least.

A part's influence bounds, or measures, what it adds to scores: its weight times a typical value of
the kernel.  By its norm, |weight| * sqrt(k(p, p)), it is what the part gives to a copy of itself
over that copy's own norm (the length of its term in feature space, so that the influences of what
is left out bound the change of the weight vector); by contribution, it is the root mean square of
weight * k(p, x) over parts x of candidate lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.encoder import EncodedList
from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.support import EDGE, Support, SupportParts
from tk_spacy.kernels.template_kernel import kernel_matrix, node_columns, slot_layout
from tk_spacy.utils.array_types import Float64, Int32

SAMPLE = 4096
"""Parts of lists that contributions are measured on, at most."""

AT_A_TIME = 1024


def norms(support: Support) -> dict[str, Float64]:
    """The influence of each part by its norm: float64[q] for each type."""
    filled = (support.nodes != 0).sum(axis=1)
    found = {}
    for name, parts in support.types.items():
        own = np.ones(len(parts))
        row = 0
        for kind, skip in zip(slot_layout(part_type(name)), support.skips[name], strict=True):
            if kind == EDGE:
                label, distance = parts.columns[row], parts.columns[row + 1]
                own *= skip + (label != 0) + 2 * (distance != 0)
                row += 3
            else:
                own *= skip + filled[parts.columns[row]]
                row += 1
        found[name] = np.abs(parts.weights) * np.sqrt(own)
    return found


def contributions(support: Support, lists: Sequence[EncodedList]) -> dict[str, Float64]:
    """The influence of each part by its contributions to the parts of lists, as `norms`.

    lists: encoded with the kernel's part types in the order of the support's.  Of their parts
    SAMPLE are taken at equal distances.
    """
    found = {}
    for i, (name, parts) in enumerate(support.types.items()):
        kind = part_type(name)
        kinds = slot_layout(kind)
        nodes, slots = sample(lists, i, node_columns(kinds))
        own = slot_form(parts, kinds)
        total = np.zeros(len(parts))
        for start in range(0, len(slots), AT_A_TIME):
            some = slots[start : start + AT_A_TIME]
            matrix = kernel_matrix(kind, support.nodes, own, nodes, some, skips=support.skips[name])
            total += (matrix.astype(np.float64) ** 2).sum(axis=1)
        found[name] = np.abs(parts.weights) * np.sqrt(total / max(1, len(slots)))
    return found


def sample(lists: Sequence[EncodedList], i: int, places: NDArray[np.intp]) -> tuple[Int32, Int32]:
    """Node rows int32[_, P] and parts of type i, int32[at most SAMPLE, w], in slot form."""
    nodes, slots, first = [], [], 0
    for item in lists:
        moved = item.kernel[i].slots.copy()
        moved[:, places] += first
        nodes.append(item.sentence.nodes)
        slots.append(moved)
        first += len(item.sentence.nodes)
    every = np.concatenate(slots)
    chosen = np.unique(np.linspace(0, len(every) - 1, min(SAMPLE, len(every))).astype(np.intp))
    return np.concatenate(nodes), np.ascontiguousarray(every[chosen])


def slot_form(parts: SupportParts, kinds: Int32) -> Int32:
    """Support parts in slot form, int32[q, w]: without the binned lengths, which follow."""
    rows, row = [], 0
    for kind in kinds:
        rows.append(row)
        if kind == EDGE:
            rows.append(row + 1)
        row += 3 if kind == EDGE else 1
    return np.ascontiguousarray(parts.columns[rows].T)


def prune(support: Support, keep: int, influence: Mapping[str, Float64]) -> Support:
    """The `keep` parts of the most influence, of all types together; equal ones in their order.

    influence: float64[q] for each type.  The parts stay in their order and keep their origins.
    Raises ValueError where keep is negative.
    """
    if keep < 0:
        raise ValueError(f"keep is {keep}, expected 0 or more")
    every = np.concatenate([influence[name] for name in support.types] or [np.zeros(0)])
    chosen = np.zeros(len(every), dtype=bool)
    chosen[np.argsort(-every, kind="stable")[:keep]] = True
    types, start = {}, 0
    for name, parts in support.types.items():
        types[name] = _chosen(parts, chosen[start : start + len(parts)])
        start += len(parts)
    return Support(support.nodes, types, support.skips).compact()


def _chosen(parts: SupportParts, chosen: NDArray[np.bool_]) -> SupportParts:
    new = np.cumsum(chosen) - 1
    entries = chosen[parts.origins[:, 0]]
    origins = parts.origins[entries]
    origins[:, 0] = new[origins[:, 0]]
    return SupportParts(
        columns=np.ascontiguousarray(parts.columns[:, chosen]),
        weights=parts.weights[chosen],
        origins=origins,
        origin_weights=parts.origin_weights[entries],
        origin_words=None if parts.origin_words is None else parts.origin_words[entries],
    )
