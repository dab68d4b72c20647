"""The template kernel inside the decoder: scores for arcs and pairs of arcs, labels and all.

Source: Taub-Tabib et al. 2015, section 6, name it as future work ("using the kernel on higher order
parts, and integrating the kernel directly into a graph based dependency parser").  The kernel's
score of an arc that the pruner left is added to its first-order score before the search, so every
tree, list and start of a climb comes from the sum.  Of the many siblings and grandparents only
those of good trees are scored, see decoding.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import ARC, PART_TYPES, ROLES, ROW_WIDTH
from tk_spacy.features.parts import BOUNDARY_LABEL, slot_rows
from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.kernels.scorer import SupportScorer
from tk_spacy.kernels.support import Support, SupportParts
from tk_spacy.kernels.template_kernel import node_columns, slot_layout
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32

if TYPE_CHECKING:
    pass


Arcs = tuple[NDArray[np.int64], Int32, Int32, Float64]
"""The arcs of sentences, what search_space.lattice_arcs returns."""

PAIRS = ("sibling", "grandparent")
"""Part types of two arcs that a kernel may score, by what rounds calls kinds 1 and 2."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchKernel:
    """A trained kernel of arcs, and perhaps of the pairs of arcs that PAIRS names.

    schema: of its properties and labels, which need not be the parser's.
    support: its support parts, arcs first.  gamma: factor on its scores, positive.
    """

    schema: Schema
    support: Support
    gamma: float
    _scorer: SupportScorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        types = list(self.support.types)
        if types != [ARC, *(name for name in PAIRS if name in types)]:
            raise ValueError(f"support of {types}, expected {ARC!r} and perhaps some of {PAIRS}")
        if not 0 < self.gamma < np.inf:
            raise ValueError(f"gamma is {self.gamma}, expected a positive number")
        object.__setattr__(
            self, "_scorer", SupportScorer(self.support, self.schema.property_groups())
        )

    @property
    def pairs(self) -> tuple[str, ...]:
        """The types of PAIRS that it scores."""
        return tuple(name for name in self.support.types if name != ARC)

    def with_gamma(self, gamma: float) -> Self:
        """The same kernel with another factor."""
        return replace(self, gamma=gamma)

    def nodes(self, sentences: Sequence[Sentence]) -> Int32:
        """The flat node rows of sentences: int32[rows, P], as long as words.encode's."""
        return np.concatenate([self.schema.encode(sentence).nodes for sentence in sentences])

    def label_table(self, schema: Schema) -> Int32:
        """From the label ids of a parser's schema to the kernel's own: int32[labels]."""
        return label_table(schema, self.schema)

    def scores(
        self,
        nodes: Int32,
        slots: Mapping[str, Int32],
        *,
        gamma: float | None = None,
        n_threads: int | None = None,
    ) -> dict[str, Float64]:
        """Gamma times the kernel's score of parts by type, which name flat node rows: float64[p].

        slots: int32[p, w] of each type, in slot form.  gamma: for another one than its own.
        In single precision, like the parser's own scores: their sums are exact in any order.
        """
        out = {name: np.zeros(len(rows)) for name, rows in slots.items()}
        if any(map(len, slots.values())):
            names = list(self.support.types)
            rows = [slots[name] if name in slots else no_slots(name) for name in names]
            values = [out[name] if name in slots else np.zeros(0) for name in names]
            self._scorer.add_scores([nodes], [rows], [values], n_threads=n_threads)
        factor = self.gamma if gamma is None else gamma
        return {
            name: (factor * values).astype(np.float32).astype(np.float64)
            for name, values in out.items()
        }

    def added(
        self,
        arcs: Arcs,
        lengths: Int32,
        nodes: Int32,
        labels: Int32,
        *,
        n_threads: int | None = None,
    ) -> Arcs:
        """Arcs of search_space.lattice_arcs with the kernel's scores added to theirs.

        lengths: of the sentences they belong to.  nodes: flat, of these.  labels: `label_table`.
        """
        first, heads, ids, scores = arcs
        slots = {ARC: arc_slots(first, heads, labels[ids], lengths)}
        return first, heads, ids, scores + self.scores(nodes, slots, n_threads=n_threads)[ARC]


def label_table(schema: Schema, own: Schema) -> Int32:
    """From the label ids of one schema to those of another, 0 for what is none: int32[labels].

    The label of the sibling that a first modifier lacks is the same in all.
    """
    known = [own.label_id(name) for name in schema.labels]
    table = np.array([0] * FIRST_ID + known, dtype=np.int32)
    table[BOUNDARY_LABEL] = BOUNDARY_LABEL
    return table


def arc_slots(first: NDArray[np.int64], heads: Int32, labels: Int32, lengths: Int32) -> Int32:
    """Arcs in the kernel's slot form, naming flat rows: int32[a, 4] (head, label, distance, word).

    first, heads: see search_space.lattice_arcs.  labels: int32[a], ids of the kernel's schema.
    lengths: int32[B], rows of each sentence.
    """
    ends = np.cumsum(lengths)
    begins = np.repeat(ends - lengths, lengths)
    words = np.repeat(np.arange(len(begins)), np.diff(first))
    places = begins[words] + heads
    return np.stack([places, labels, words - places, words], axis=1).astype(np.int32)


def part_slots(name: str, rows: Int32, labels: Int32, begins: Int32) -> Int32:
    """Parts of a type in the kernel's slot form, naming flat rows: int32[p, w].

    rows: int32[p, 9], as parts.extract_parts has them.  labels: `label_table`.  begins: int32[p],
    the first row of each part's sentence.
    """
    kind = PART_TYPES[name]
    own = rows.copy()
    own[:, len(ROLES) :] = labels[rows[:, len(ROLES) :]]
    slots = slot_rows(own, kind)
    slots[:, node_columns(slot_layout(kind))] += begins[:, None]
    return slots


def no_slots(name: str) -> Int32:
    """No parts of a type, in slot form."""
    return slot_rows(np.zeros((0, ROW_WIDTH), dtype=np.int32), PART_TYPES[name])


def bare(support: Support, names: Sequence[str] = (ARC,)) -> Support:
    """The parts of some types of a support, without where they came from."""
    types = {
        name: SupportParts(
            columns=support.types[name].columns,
            weights=support.types[name].weights,
            origins=np.zeros((0, 3), dtype=np.int32),
            origin_weights=np.zeros(0),
        )
        for name in names
    }
    return Support(support.nodes, types, {name: support.skips[name] for name in names}).compact()
