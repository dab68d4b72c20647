"""Candidate lists as arrays: what learning and scoring read of a sentence and its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.part_types import GRAND_TRI_SIBLING, part_type
from tk_spacy.features.parts import (
    contested_parts,
    extract_frames,
    extract_parts,
    extract_spans,
    slot_rows,
)
from tk_spacy.features.schema import EncodedSentence, Schema
from tk_spacy.features.templates import FRAME, SPAN
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.tree_rows import CheckedTrees, check_labels
from tk_spacy.utils.array_types import Int32

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
    listed: NDArray[np.float64] | None = None


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
        if candidates.heads.shape[1] != len(sentence):
            raise ValueError(
                f"candidates have {candidates.heads.shape[1]} words, the sentence has "
                f"{len(sentence)}"
            )
        check_labels(candidates.labels, len(candidates.inventory))
        labels = self._labels.labels(candidates)
        parts: dict[str, PartLists] = {}
        encoded = self.schema.encode(sentence)
        heads = candidates.trees
        for name in (*self._kernel, *self._manual):
            if name not in parts:
                parts[name] = self._part_lists(encoded, heads, labels, name)
        return EncodedList(
            sentence=encoded,
            kernel=tuple(parts[name] for name in self._kernel),
            manual=tuple(parts[name] for name in self._manual),
            n_candidates=len(candidates),
            listed=self._list_features.encode(candidates) if self._list_features else None,
        )

    def _part_lists(
        self, sentence: EncodedSentence, heads: CheckedTrees, labels: Int32, name: str
    ) -> PartLists:
        kind = None
        if name == FRAME:
            rows, starts, members = extract_frames(sentence.fields, heads, labels)
        elif name == SPAN:
            rows, starts, members = extract_spans(heads, labels)
        elif name == GRAND_TRI_SIBLING.name:
            rows, starts, members = extract_parts(heads, labels, GRAND_TRI_SIBLING)
        else:
            kind = part_type(name)
            rows, starts, members = extract_parts(heads, labels, kind)
        if self._contested_only:
            rows, starts, members = contested_parts(rows, starts, members)
        slots = NO_SLOTS if kind is None else slot_rows(rows, kind)
        return PartLists(rows=rows, slots=slots, starts=starts, members=members)
