"""The template kernel inside the decoder: scores for the arcs that the pruner left, labels and all.

Source: Taub-Tabib et al. 2015, section 6, name it as future work ("integrating the kernel directly
into a graph based dependency parser").  The kernel's score of an arc is added to its first-order
score before the search, so every tree, list and start of a climb comes from the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.properties import FIRST_ID, Schema
from tk_spacy.support import Support, SupportParts
from tk_spacy.support_scoring import SupportScorer
from tk_spacy.treebank import Sentence

if TYPE_CHECKING:
    from tk_spacy.reranker import Reranker

Int32 = NDArray[np.int32]
Float64 = NDArray[np.float64]

Arcs = tuple[NDArray[np.int64], Int32, Int32, Float64]
"""The arcs of sentences, what decoder.lattice_arcs returns."""

ARC = "arc"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArcKernel:
    """A trained kernel of arcs.

    schema: of its properties and labels, which need not be the parser's.
    support: its support parts, arcs alone.  gamma: factor on its scores, positive.
    """

    schema: Schema
    support: Support
    gamma: float
    _scorer: SupportScorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if tuple(self.support.types) != (ARC,):
            raise ValueError(f"support of {list(self.support.types)}, expected {ARC!r} alone")
        if not 0 < self.gamma < np.inf:
            raise ValueError(f"gamma is {self.gamma}, expected a positive number")
        object.__setattr__(
            self, "_scorer", SupportScorer(self.support, self.schema.property_groups())
        )

    @classmethod
    def of_reranker(cls, reranker: Reranker, *, gamma: float = 1.0) -> Self:
        """The arc part of a reranker's kernel.  Raises UserError where it has none."""
        parts = reranker.support.types.get(ARC)
        if parts is None or not len(parts):
            raise UserError(
                "the reranker's kernel compares no arcs; give a model trained with "
                f"--kernel-parts {ARC}"
            )
        return cls(schema=reranker.schema, support=bare(reranker.support), gamma=gamma)

    def with_gamma(self, gamma: float) -> Self:
        """The same kernel with another factor."""
        return replace(self, gamma=gamma)

    def nodes(self, sentences: Sequence[Sentence]) -> Int32:
        """The flat node rows of sentences: int32[rows, P], as long as words.encode's."""
        return np.concatenate([self.schema.encode(sentence).nodes for sentence in sentences])

    def label_table(self, schema: Schema) -> Int32:
        """From the label ids of a parser's schema to the kernel's own: int32[labels]."""
        return label_table(schema, self.schema)

    def scores(self, nodes: Int32, slots: Int32, *, n_threads: int | None = None) -> Float64:
        """Gamma times the kernel's score of arcs, which name flat node rows: float64[a].

        In single precision, like the parser's own scores: their sums are exact in any order.
        """
        out = np.zeros(len(slots))
        self._scorer.add_scores([nodes], [[slots]], [[out]], n_threads=n_threads)
        return (self.gamma * out).astype(np.float32).astype(np.float64)

    def added(
        self,
        arcs: Arcs,
        lengths: Int32,
        nodes: Int32,
        labels: Int32,
        *,
        n_threads: int | None = None,
    ) -> Arcs:
        """Arcs of decoder.lattice_arcs with the kernel's scores added to theirs.

        lengths: of the sentences they belong to.  nodes: flat, of these.  labels: `label_table`.
        """
        first, heads, ids, scores = arcs
        slots = arc_slots(first, heads, labels[ids], lengths)
        return first, heads, ids, scores + self.scores(nodes, slots, n_threads=n_threads)


def label_table(schema: Schema, own: Schema) -> Int32:
    """From the label ids of one schema to those of another, 0 for what is none: int32[labels]."""
    known = [own.label_id(name) for name in schema.labels]
    return np.array([0] * FIRST_ID + known, dtype=np.int32)


def arc_slots(first: NDArray[np.int64], heads: Int32, labels: Int32, lengths: Int32) -> Int32:
    """Arcs in the kernel's slot form, naming flat rows: int32[a, 4] (head, label, distance, word).

    first, heads: see decoder.lattice_arcs.  labels: int32[a], ids of the kernel's schema.
    lengths: int32[B], rows of each sentence.
    """
    ends = np.cumsum(lengths)
    begins = np.repeat(ends - lengths, lengths)
    words = np.repeat(np.arange(len(begins)), np.diff(first))
    places = begins[words] + heads
    return np.stack([places, labels, words - places, words], axis=1).astype(np.int32)


def bare(support: Support) -> Support:
    """The arcs of a support, without where they came from."""
    parts = support.types[ARC]
    nothing = SupportParts(
        columns=parts.columns,
        weights=parts.weights,
        origins=np.zeros((0, 3), dtype=np.int32),
        origin_weights=np.zeros(0),
    )
    return Support(support.nodes, {ARC: nothing}, {ARC: support.skips[ARC]}).compact()
