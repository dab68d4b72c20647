"""The kernel's hashed map as a part of a model: made from a support, scores in its place.

See hashed_map for the method.  Arcs alone have one: the combinations of a part grow with each slot
by a factor of some fifteen, so looking all of a sibling's up would take longer than comparing it
with a hundred thousand support parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.features.part_types import ARC, part_type
from tk_spacy.kernels.hashed_map import add_map_scores, add_support
from tk_spacy.kernels.scorer import WORDS_AT_A_TIME, chunks, distribute, together
from tk_spacy.kernels.support import Support, SupportParts
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.serialization import META, reading
from tk_spacy.utils.stored_values import stored_entry, stored_whole

MIN_BITS, MAX_BITS = 8, 28
SEED = 0
MOST_CELL = 1e30
"""Cells of a stored table are smaller, so that their sums are finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelMap:
    """The map of a support of arcs.

    bits: the table has 2 ** bits cells.  seed: of the hash.  skips: int32 of the arc's three slots.
    table: float32[2 ** bits].  support_parts: number of those that it was made of.
    """

    bits: int
    seed: int
    skips: Int32
    table: NDArray[np.float32]
    support_parts: int

    @classmethod
    def of(cls, support: Support, bits: int, *, seed: int = SEED) -> KernelMap:
        """The map of a support.

        Raises UserError where it has none: for other part types than arcs, or no support part.
        """
        if not MIN_BITS <= bits <= MAX_BITS:
            raise UserError(f"{bits} bits; a hashed map takes from {MIN_BITS} to {MAX_BITS}")
        others = [name for name in support.types if name != ARC]
        if others or not len(support):
            what = f"compares {', '.join(others)}" if others else "has no support parts"
            raise UserError(
                f"the model {what}; only the kernel of arcs has a hashed map (train with "
                "kernel_parts arc, or prune the support)"
            )
        parts, skips = support.types[ARC], support.skips[ARC]
        table = np.zeros(1 << bits)
        add_support(support.nodes, parts.columns, parts.weights, skips, seed, table)
        return cls(bits, seed, skips, table.astype(np.float32), len(parts))

    def add_scores(
        self,
        nodes: Sequence[Int32],
        slots: Sequence[Sequence[Int32]],
        out: Sequence[Sequence[Float64]],
        *,
        n_threads: int | None = None,
    ) -> None:
        """Add to out the scores of arcs, as SupportScorer.add_scores has it."""
        kinds = slot_layout(part_type(ARC))
        for start, stop in chunks([len(rows) for rows in nodes], WORDS_AT_A_TIME):
            parts = together(nodes, slots, start, stop, 0, kinds)
            scores = np.zeros(len(parts))
            add_map_scores(
                self.table, np.concatenate(nodes[start:stop]), parts, self.skips, self.seed, scores,
                n_threads=n_threads,
            )  # fmt: skip
            distribute(scores, out[start:stop], 0)

    # Storage

    def to_dict(self) -> dict[str, Any]:
        """What meta.json says of it."""
        return {"bits": self.bits, "seed": self.seed, "support_parts": self.support_parts}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        return {"table": self.table, "skips": self.skips}

    @classmethod
    def from_stored(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> KernelMap:
        """The inverse of `to_dict` and `to_arrays`.

        Raises KeyError where something is missing, ValueError where it does not fit together.
        """
        with reading(META):
            bits, seed, support_parts = (
                stored_whole(stored_entry(data, name, "kernel_map"), f"kernel_map.{name}")
                for name in ("bits", "seed", "support_parts")
            )
            if not MIN_BITS <= bits <= MAX_BITS:
                raise ValueError(f"kernel_map.bits is {bits}, expected {MIN_BITS} to {MAX_BITS}")
        table, skips = arrays["table"], arrays["skips"]
        for name, array, dtype, size in (
            ("table", table, np.float32, 1 << bits),
            ("skips", skips, np.int32, 3),
        ):
            if array.dtype != dtype or array.shape != (size,):
                raise ValueError(
                    f"{name} is {array.dtype}{list(array.shape)}, expected "
                    f"{np.dtype(dtype)}[{size}]"
                )
        if (
            not (np.abs(table) < MOST_CELL).all()
            or not np.isin(skips, (0, 1)).all()
            or not skips[1]
        ):
            raise ValueError("the kernel's map holds what no conversion gives")
        return cls(bits, seed, skips, table, support_parts)


def without_parts(support: Support) -> Support:
    """A support of the same types without any part, for a model whose map takes its place."""
    types = {}
    for name, parts in support.types.items():
        types[name] = SupportParts(
            columns=np.zeros((len(parts.columns), 0), dtype=np.int32),
            weights=np.zeros(0),
            origins=np.zeros((0, 3), dtype=np.int32),
            origin_weights=np.zeros(0),
        )
    nodes = np.zeros((0, support.nodes.shape[1]), dtype=np.int32)
    return Support(nodes=nodes, types=types, skips=support.skips)
