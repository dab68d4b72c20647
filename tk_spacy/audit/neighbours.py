"""The arcs of a treebank that are most like one arc, by the template kernel.

The kernel counts the combinations of properties (words, tags, features of head and modifier and of
the words beside them; direction and distance) that two arcs share; relations are left out, which
are what is asked for.  Each value is divided by the root of what both arcs have in common with
themselves, so that an arc with many features is not near to all.

Source of the kernel: Taub-Tabib, Goldberg and Globerson 2015 (see `kernels.template_kernel`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.audit.words import Words
from tk_spacy.features.part_types import ARC, ROLES, ROW_WIDTH, part_type
from tk_spacy.features.parts import slot_rows
from tk_spacy.features.schema import MISSING, Schema
from tk_spacy.kernels.template_kernel import kernel_matrix, node_columns, slot_layout
from tk_spacy.utils.array_types import Float64, Int32, Int64

NEAREST = 10
"""Arcs that are looked at."""
EDGE = 3
"""Properties of an arc without its relation: distance, binned length, and that there is one."""
HEAD, MODIFIER = ROLES.index("h"), ROLES.index("m")


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """The arcs nearest to one, the nearest first.

    rows: int64[k], their words.  likeness: float64[k], 0 to 1, falling.
    """

    rows: NDArray[np.intp]
    likeness: Float64

    def labels(self, words: Words) -> Counter[str]:
        """How many of them have each relation, the most frequent first."""
        return Counter(words.deprels[row] for row in self.rows.tolist())


class Neighbours:
    """Finds the arcs that are most like an arc, among those of other sentences."""

    def __init__(self, words: Words) -> None:
        self._words, self._kind = words, part_type(ARC)
        self._columns = node_columns(slot_layout(self._kind))
        schema = Schema.fit(words.sentences, use_lemma=True)
        encoded = [own.nodes for own in schema.encode_all(words.sentences)]
        # The root and its sentence's words, row after row; the boundary node is in no arc.
        self._nodes = np.concatenate([nodes[:-1] for nodes in encoded])
        self._starts = words.starts[:-1] + np.arange(len(encoded))
        self._parts = np.concatenate(list(self._of_sentences()))
        self._filled = np.count_nonzero(self._nodes != MISSING, axis=1)
        self._own = self._self_kernel(self._parts)

    def of(self, row: int, head: int) -> Near:
        """The arcs nearest to the one that hangs a word on a head.

        head: its number in the sentence, 0 for the root; its arc need not be in the tree.
        Raises ValueError for the word itself.
        """
        number = int(self._words.sentence[row])
        _, position = self._words.place(row)
        if head == position:
            raise ValueError(f"word {position} as its own head, expected another one")
        part = self._slots([head], [position], number)
        # The many first: threads share them.
        found = kernel_matrix(self._kind, self._nodes, self._parts, self._nodes, part)[:, 0]
        likeness = found / np.sqrt(self._own * self._self_kernel(part))
        likeness[self._words.sentence == number] = -1.0
        order = (-likeness).argsort(kind="stable")[:NEAREST]
        order = order[likeness[order] > 0]
        return Near(order, likeness[order])

    def _of_sentences(self) -> Iterator[Int32]:
        for number, sentence in enumerate(self._words.sentences):
            yield self._slots(sentence.heads, range(1, len(sentence) + 1), number)

    def _slots(self, heads: Sequence[int] | Int32, modifiers: Sequence[int], number: int) -> Int32:
        """Arcs of a sentence in the kernel's form, without relation, int32[a, w]."""
        rows = np.full((len(heads), ROW_WIDTH), -1, dtype=np.int32)
        rows[:, HEAD], rows[:, MODIFIER], rows[:, -1] = heads, modifiers, MISSING
        slots = slot_rows(rows, self._kind)
        slots[:, self._columns] += self._starts[number]
        return slots

    def _self_kernel(self, parts: Int32) -> Int64:
        """The kernel of arcs with themselves, int64[a]: all properties that they have agree."""
        head, modifier = (self._filled[parts[:, column]] for column in self._columns)
        return head * modifier * EDGE
