"""Candidate trees as sets of arcs, and arcs as sets of basic features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import ARC, ROLES, ROW_WIDTH, part_type
from tk_spacy.features.parts import extract_parts
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.selection.arc_keys import arc_keys
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.selection.templates import FeatureNames, check_sizes
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32

HEAD_COLUMN, MODIFIER_COLUMN, LABEL_COLUMN = ROLES.index("h"), ROLES.index("m"), ROW_WIDTH - 1


@dataclass(frozen=True, slots=True, eq=False)
class ArcLists:
    """The candidate trees of a sentence of n words as arcs with basic features.

    heads: int32[k, n], the candidates.  members: int32[k, n], the arc into each word, a number
    0..a-1 of the list's distinct arcs.  Arc i has the features ids[starts[i]:starts[i + 1]], in
    ascending order; int32[a + 1] and int32[_].
    """

    heads: Int32
    members: Int32
    starts: Int32
    ids: Int32

    @property
    def n_arcs(self) -> int:
        """Number of distinct arcs."""
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True, eq=False)
class BasicFeatures:
    """The basic features that training met, numbered.

    schema: properties and values.  keys: uint64[f], each feature's key, by ascending frequency in
    training and then by key: so the number of a feature that few arcs have is low, and patterns
    that are grown from low to high numbers end early.  labelled: whether arcs have DEPREL.
    """

    schema: Schema
    keys: NDArray[np.uint64]
    labelled: bool = False
    _table: KeyTable = field(init=False, repr=False)
    _labels: LabelTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_sizes(self.schema)
        table = KeyTable()
        table.add_all(self.keys)
        if len(table) < len(self.keys):
            raise ValueError("a key of a basic feature is there twice")
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_labels", LabelTables(self.schema.label_id))

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def fit(
        cls,
        schema: Schema,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        *,
        labelled: bool = False,
        min_count: int = 1,
    ) -> BasicFeatures:
        """The features of all arcs in candidate lists, aligned with their sentences.

        min_count: those of fewer arcs are left out; an arc counts once for each list.
        """
        empty = cls(schema, np.zeros(0, dtype=np.uint64), labelled)
        counts: dict[int, int] = {}
        for start in range(0, len(sentences), _AT_A_TIME):
            some = range(start, min(start + _AT_A_TIME, len(sentences)))
            found = np.concatenate([empty.arcs(sentences[i], lists[i])[2] for i in some])
            for key, count in zip(
                *(a.tolist() for a in np.unique(found, return_counts=True)), strict=True
            ):
                counts[key] = counts.get(key, 0) + count
        kept = sorted((count, key) for key, count in counts.items() if count >= min_count)
        return cls(schema, np.array([key for _, key in kept], dtype=np.uint64), labelled)

    def arcs(
        self, sentence: Sentence, candidates: CandidateList
    ) -> tuple[Int32, Int32, NDArray[np.uint64]]:
        """The arcs of candidates and their features, known or not: members, starts, keys.

        See `ArcLists` and `arc_keys`.
        """
        labels = np.zeros_like(candidates.labels)
        if self.labelled:
            labels = self._labels.labels(candidates)
        rows, _, members = extract_parts(candidates.trees, labels, part_type(ARC))
        starts, keys = arc_keys(
            self.schema.encode(sentence).fields,
            rows[:, HEAD_COLUMN].copy(),
            rows[:, MODIFIER_COLUMN].copy(),
            rows[:, LABEL_COLUMN].copy(),
        )
        return members.reshape(candidates.heads.shape), starts, keys

    def encode(self, sentence: Sentence, candidates: CandidateList) -> ArcLists:
        """A sentence's candidates; features that training never saw are left out."""
        members, starts, keys = self.arcs(sentence, candidates)
        return ArcLists(candidates.heads, members, *self._table.known(starts, keys))

    def encode_all(
        self, sentences: Sequence[Sentence], lists: Iterable[CandidateList]
    ) -> list[ArcLists]:
        """The same for aligned sentences and lists."""
        return [self.encode(s, trees) for s, trees in zip(sentences, lists, strict=True)]

    def names(self) -> list[str]:
        """Each feature in words."""
        reader = FeatureNames(self.schema)
        return [reader.name(key) for key in self.keys.tolist()]


_AT_A_TIME = 512
