"""Candidate lists as arrays: what learning and scoring read of a sentence and its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.part_lists import ListTrees
from tk_spacy.features.part_types import GRAND_TRI_SIBLING, part_type
from tk_spacy.features.parts import slot_rows
from tk_spacy.features.schema import EncodedSentence, Schema
from tk_spacy.features.templates import FRAME, SPAN
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.kbest.passes import in_passes
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32

NO_SLOTS = np.zeros((0, 0), dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class PartLists:
    """The distinct parts of one type in a candidate list.

    rows: int32[p, 9], see parts.extract_parts.  slots: int32[p, w], the same in slot form;
        empty for frames and spans, which the kernel does not compare.
    Candidate j consists of the parts members[starts[j]:starts[j + 1]].
    """

    rows: Int32
    slots: Int32
    starts: Int32
    members: Int32


@dataclass(frozen=True, slots=True, eq=False)
class EncodedList:
    """A sentence and its candidates, encoded.

    kernel, manual: the parts that the kernel compares and those that have manual features, in the
    order of the part types asked for (one object where a type is in both).
    listed: float64[k, d], the features of the candidates within their list; None without them.
    """

    sentence: EncodedSentence
    kernel: tuple[PartLists, ...]
    manual: tuple[PartLists, ...]
    n_candidates: int
    listed: Float64 | None = None


class ListEncoder:
    """Encodes candidate lists for one schema and choice of part types.

    contested_only: leave out the parts that all candidates of a list share, most of them; every
    score of a list then lacks the same summand.
    list_features: the features of candidates within their list, None for none.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        kernel_parts: Sequence[str],
        manual_parts: Sequence[str],
        list_features: ListFeatures | None = None,
        contested_only: bool = True,
    ) -> None:
        self.schema = schema
        self._kernel, self._manual = tuple(kernel_parts), tuple(manual_parts)
        self._list_features = list_features
        self._contested_only = contested_only
        self._labels = LabelTables(schema.label_id)

    def encode(self, sentence: Sentence, candidates: CandidateList) -> EncodedList:
        """The arrays of one sentence and its candidates.

        Raises TypeError or ValueError where the candidates have another number of words than the
        sentence, are no trees, or have labels that are not in their inventory.
        """
        return self.encode_all([(sentence, candidates)])[0]

    def encode_all(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[EncodedList]:
        """As `encode`, of several sentences in one go, whose arrays are parts of common ones."""
        encoded: list[EncodedList] = []
        for some in in_passes(pairs, [candidates for _, candidates in pairs]):
            encoded += self._in_one_pass(some)
        return encoded

    def _in_one_pass(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[EncodedList]:
        for sentence, candidates in pairs:
            if candidates.n_words != len(sentence):
                raise ValueError(
                    f"candidates have {candidates.n_words} words, the sentence has {len(sentence)}"
                )
        sentences, lists = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        trees = ListTrees(
            [item.trees for item in lists],
            [item.labels for item in lists],
            [self._labels.of(item.inventory) for item in lists],
        )
        nodes, fields = self.schema.encode_together(sentences)
        parts: dict[str, list[PartLists]] = {}
        for name in (*self._kernel, *self._manual):
            if name not in parts:
                parts[name] = self._part_lists(trees, fields, lists, name)
        kernel, manual = (
            list(zip(*(parts[name] for name in names), strict=True)) or [()] * len(pairs)
            for names in (self._kernel, self._manual)
        )
        listed: Sequence[Float64 | None] = [None] * len(pairs)
        if self._list_features is not None:
            listed = self._list_features.encode_all(lists)
        encoded = self.schema.encoded_apart(nodes, fields, sentences)
        return [
            EncodedList(
                sentence=encoded[i],
                kernel=kernel[i],
                manual=manual[i],
                n_candidates=len(item),
                listed=listed[i],
            )
            for i, item in enumerate(lists)
        ]

    def _part_lists(
        self, trees: ListTrees, fields: Int32, lists: Sequence[CandidateList], name: str
    ) -> list[PartLists]:
        kind = None
        if name == FRAME:
            found = trees.frames(fields, contested=self._contested_only)
        elif name == SPAN:
            found = trees.spans(contested=self._contested_only)
        elif name == GRAND_TRI_SIBLING.name:
            found = trees.parts(GRAND_TRI_SIBLING, contested=self._contested_only)
        else:
            kind = part_type(name)
            found = trees.parts(kind, contested=self._contested_only)
        rows, members, counts, starts = found
        slots = None if kind is None else slot_rows(rows, kind)
        of_lists = []
        row = member = start = 0
        for (n_rows, n_members), item in zip(counts.tolist(), lists, strict=True):
            own = slice(row, row + n_rows)
            of_lists.append(
                PartLists(
                    rows=rows[own],
                    slots=NO_SLOTS if slots is None else slots[own],
                    starts=starts[start : start + len(item) + 1],
                    members=members[member : member + n_members],
                )
            )
            row += n_rows
            member += n_members
            start += len(item) + 1
        return of_lists
