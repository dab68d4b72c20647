"""Which support parts a part's kernel score comes from, and what they have in common with it.

Source: Taub-Tabib et al. 2015, equation 2: the kernel's score of a part is the sum over support
parts of weight times kernel, and the kernel is the product over slots of the number of properties
that agree.  So each support part has a share of its own in a score, and each share has reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tk_spacy.features.part_types import PartType, part_type
from tk_spacy.features.schema import BOUNDARY, FIRST_ID, MISSING, ROOT, Property, Schema
from tk_spacy.kernels.compiled.blocks import edge_rows
from tk_spacy.kernels.plain_scoring import length_bins
from tk_spacy.kernels.pruning import slot_form
from tk_spacy.kernels.support import Support, node_rows
from tk_spacy.kernels.template_kernel import kernel_matrix, node_columns, slot_layout
from tk_spacy.reranker.examples import Example, Examples
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Int32

LENGTHS = ("1", "2", "3", "4", "5-6", "7-10", "11-20", "21 or more")
"""The bins of lengths, in order from 1 on."""
SPECIAL = {BOUNDARY: "BOUNDARY", ROOT: "ROOT"}


@dataclass(frozen=True, slots=True)
class Agreement:
    """What two parts share in one slot.

    slot: its name.  properties: the names of those that agree, with their values ("Case=Nom").
    factor: of the kernel: their number, and one more where the slot may be left out.
    """

    slot: str
    properties: tuple[str, ...]
    factor: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where a support part came from: of its updates, the one that weighs most.

    sentence: its number in training.  example: the sentence, None where the model keeps none.
    words: by slot the position of its word there (0 the root, beyond the last word none), empty
    where they are not known (models of before).
    wanted: whether the part stood in the tree that should have won.
    others: further updates that the part came from.
    """

    sentence: int
    example: Example | None
    words: Mapping[str, int]
    wanted: bool
    others: int


@dataclass(frozen=True, slots=True)
class Influence:
    """A support part's share in the score of a part.

    part_type: of both.  part: the support part's number among those of its type.  labels: by slot,
    those of the support part's arcs.  words: by slot, the positions of the scored part's words.
    weight: alpha, in units of the final score.  kernel: of the two parts, the product of the
    factors of `agreements`.  share: weight * kernel.
    """

    part_type: str
    part: int
    labels: Mapping[str, str]
    words: Mapping[str, int]
    weight: float
    kernel: int
    agreements: tuple[Agreement, ...]
    source: Source | None

    @property
    def share(self) -> float:
        """What the support part adds to the score."""
        return self.weight * self.kernel

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        source = self.source
        return {
            "part_type": self.part_type,
            "part": self.part,
            "labels": dict(self.labels),
            "words": dict(self.words),
            "weight": self.weight,
            "kernel": self.kernel,
            "share": self.share,
            "agreements": [
                {"slot": a.slot, "factor": a.factor, "properties": list(a.properties)}
                for a in self.agreements
            ],
            "source": None
            if source is None
            else {
                "sentence": source.sentence,
                "sent_id": source.example.sent_id if source.example else None,
                "forms": list(source.example.forms) if source.example else None,
                "words": dict(source.words),
                "wanted": source.wanted,
                "other_updates": source.others,
            },
        }


class InfluenceFinder:
    """Finds the most influential support parts of one model.

    scale: what the kernel's scores are divided by in the final score.
    """

    def __init__(
        self, support: Support, schema: Schema, examples: Examples | None, *, scale: float
    ) -> None:
        self._support, self._schema, self._examples = support, schema, examples
        self._scale = scale
        self._names = [list(table) for table in schema.values]
        self._labels = list(schema.labels)

    def shares(self, name: str, nodes: Int32, slots: Int32) -> np.ndarray:
        """The share of every support part of a type in the score of a part: float64[q].

        nodes: int32[n + 2, P], of the sentence.  slots: int32[w], the part in slot form.
        """
        return self._kernel(name, nodes, slots) * (self._support.types[name].weights / self._scale)

    def _kernel(self, name: str, nodes: Int32, slots: Int32) -> np.ndarray:
        kind = part_type(name)
        parts = slot_form(self._support.types[name], slot_layout(kind))
        skips = self._support.skips[name]
        return kernel_matrix(
            kind, self._support.nodes, parts, nodes, slots[None], skips=skips, n_threads=1
        )[:, 0]

    def strongest(
        self, sentence: Sentence, nodes: Int32, parts: Sequence[tuple[str, Int32]], most: int
    ) -> list[Influence]:
        """The support parts with the largest shares, by size, in the scores of some parts.

        nodes: int32[n + 2, P], the sentence encoded.  parts: the type of each and its slot form,
        int32[w].
        """
        found: list[tuple[float, int, int]] = []
        for number, (name, slots) in enumerate(parts):
            shares = self.shares(name, nodes, slots)
            best = np.argsort(-np.abs(shares), kind="stable")[:most]
            found += [(-abs(float(shares[i])), number, int(i)) for i in best if shares[i]]
        fields = self._schema.encode_fields(sentence)
        made = []
        for _, number, i in sorted(found)[:most]:
            name, slots = parts[number]
            made.append(self._influence(name, i, nodes, slots, fields))
        return made

    def _influence(self, name: str, i: int, nodes: Int32, slots: Int32, fields: Int32) -> Influence:
        kind, parts = part_type(name), self._support.types[name]
        agreements = self._agreements(kind, i, nodes, slots, fields)
        words = [int(slots[column]) for column in node_columns(slot_layout(kind))]
        labels = parts.columns[list(edge_rows(slot_layout(kind))), i].tolist()
        edges = [slot.name for slot in kind.slots if slot.kind == "edge"]
        return Influence(
            part_type=name,
            part=i,
            labels=dict(zip(edges, map(self._label, labels), strict=True)),
            words=dict(zip(_node_slots(kind), words, strict=True)),
            weight=float(parts.weights[i]) / self._scale,
            kernel=int(np.prod([a.factor for a in agreements], dtype=np.int64)),
            agreements=agreements,
            source=self._source(kind, i),
        )

    def _agreements(
        self, kind: PartType, i: int, nodes: Int32, slots: Int32, fields: Int32
    ) -> tuple[Agreement, ...]:
        layout = slot_layout(kind)
        columns = self._support.types[kind.name].columns[:, i]
        node_at, edge_at = iter(node_rows(layout)), iter(edge_rows(layout))
        place, found = 0, []
        for slot, skip in zip(kind.slots, self._support.skips[kind.name].tolist(), strict=True):
            if slot.kind == "node":
                word = int(slots[place])
                theirs = self._support.nodes[columns[next(node_at)]]
                equal = np.flatnonzero((theirs == nodes[word]) & (theirs != MISSING))
                names = [
                    self._property(self._schema.properties[p], fields, word) for p in equal.tolist()
                ]
                place += 1
            else:
                row = next(edge_at)
                names = self._edge(columns[row : row + 3], slots[place : place + 2])
                place += 2
            found.append(Agreement(slot.name, tuple(names), len(names) + skip))
        return tuple(found)

    def _edge(self, theirs: Int32, own: Int32) -> list[str]:
        label, distance = own.tolist()
        length = int(length_bins(np.array([distance], dtype=np.int32))[0])
        names = []
        if label != MISSING and label == theirs[0]:
            names.append(f"label={self._label(label)}")
        if distance and distance == theirs[1]:
            names.append(f"distance={distance:+d}")
        if length and length == theirs[2]:
            names.append(f"length={LENGTHS[length - 1]}")
        return names

    def _label(self, label: int) -> str:
        if label >= FIRST_ID:
            return self._labels[label - FIRST_ID]
        return SPECIAL.get(label, "unknown")

    def _property(self, prop: Property, fields: Int32, word: int) -> str:
        """A property's name and value at a word."""
        values = [self._value(prop.first, prop.first_offset, fields, word)]
        if prop.second >= 0:
            values.append(self._value(prop.second, prop.second_offset, fields, word))
        return f"{prop.name}={'|'.join(values)}"

    def _value(self, column: int, offset: int, fields: Int32, word: int) -> str:
        row = word + offset
        if offset and not row:  # the root is nobody's neighbour
            row = len(fields) - 1
        number = int(fields[row, column])
        return self._names[column][number - FIRST_ID] if number >= FIRST_ID else SPECIAL[number]

    def _source(self, kind: PartType, i: int) -> Source | None:
        parts = self._support.types[kind.name]
        start, stop = np.searchsorted(parts.origins[:, 0], [i, i + 1]).tolist()
        if start == stop:
            return None
        # Of those that pull as the part does in the end, the strongest.
        pulls = parts.origin_weights[start:stop] * np.sign(parts.weights[i])
        chosen = start + int(pulls.argmax())
        number = int(parts.origins[chosen, 1])
        words: dict[str, int] = {}
        if parts.origin_words is not None:
            places = parts.origin_words[chosen].tolist()
            words = dict(zip(_node_slots(kind), places, strict=True))
        return Source(
            sentence=number,
            example=None if self._examples is None else self._examples.sentences.get(number),
            words=words,
            wanted=bool(parts.origin_weights[chosen] > 0),
            others=stop - start - 1,
        )


def _node_slots(kind: PartType) -> list[str]:
    return [slot.name for slot in kind.slots if slot.kind == "node"]
