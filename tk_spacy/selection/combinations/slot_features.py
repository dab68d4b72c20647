"""Numbers for the features of parts, and candidate lists as parts with numbered features.

What mining reads (see selection.corpus): a candidate is the parts of its words, a part is the
features of its slots, in the order of the slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.encoder import EncodedList, ListEncoder, PartLists
from tk_spacy.features.part_types import ROLES
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.selection.combinations.slot_keys import slot_keys
from tk_spacy.selection.combinations.slot_lists import NO_PART, SlotLists
from tk_spacy.selection.combinations.slot_space import SlotNames, SlotSpace, UInt64, slot_of
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32


@dataclass(frozen=True, slots=True, eq=False)
class SlotFeatures:
    """The features of parts, numbered 0..f-1.

    schema: properties and values.  space: part types and their slots.  keys: uint64[f], ascending,
    so that a part's features in ascending order are in the order of its slots.
    Raises ValueError for keys that do not ascend.
    """

    schema: Schema
    space: SlotSpace
    keys: UInt64
    _table: KeyTable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.keys) and not (self.keys[1:] > self.keys[:-1]).all():
            raise ValueError("keys of features do not ascend")
        table = KeyTable()
        table.add_all(self.keys)
        object.__setattr__(self, "_table", table)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def fit(
        cls,
        schema: Schema,
        space: SlotSpace,
        encoded: Iterable[EncodedList],
        *,
        min_count: int = 1,
    ) -> SlotFeatures:
        """The features of all parts of candidate lists, as `encoder` makes these.

        min_count: those of fewer parts are left out; a part counts once for each list.
        """
        keys, counts = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        held: list[UInt64] = []
        size = 0
        for item in encoded:
            for parts, of_type in zip(item.kernel, space.types, strict=True):
                _, found = slot_keys(
                    item.sentence.nodes, parts.slots, of_type.kinds, of_type.columns, of_type.first
                )
                held.append(found)
                size += len(found)
            if size > _AT_A_TIME:
                keys, counts = _counted(keys, counts, held)
                held, size = [], 0
        keys, counts = _counted(keys, counts, held)
        return cls(schema, space, keys[counts >= min_count])

    def parts(self, nodes: Int32, slots: Int32, at: int) -> tuple[Int32, Int32]:
        """The known features of parts of type number `at`: starts and numbers.

        nodes: int32[r, P].  slots: int32[p, w], the parts in slot form.  Those of part i are
        numbers[starts[i]:starts[i + 1]], ascending; int32[p + 1] and int32[_].
        """
        of_type = self.space.types[at]
        starts, keys = slot_keys(nodes, slots, of_type.kinds, of_type.columns, of_type.first)
        return self._table.known(starts, keys)

    def encode(self, encoded: EncodedList) -> SlotLists:
        """A candidate list for mining: as many columns of members for each type as words."""
        members, starts, ids, n_parts, n_ids = [], [np.zeros(1, np.int32)], [], 0, 0
        for at, parts in enumerate(encoded.kernel):
            rows = by_word(parts, len(encoded.sentence))
            members.append(np.where(rows == NO_PART, NO_PART, rows + n_parts).astype(np.int32))
            begins, numbers = self.parts(encoded.sentence.nodes, parts.slots, at)
            starts.append(begins[1:] + np.int32(n_ids))
            ids.append(numbers)
            n_parts += len(parts.slots)
            n_ids += len(numbers)
        together = np.ascontiguousarray(np.concatenate(members, axis=1))
        return SlotLists(together, np.concatenate(starts), np.concatenate(ids))

    def corpus(self, encoded: Iterable[EncodedList]) -> Corpus:
        """Candidate lists for mining."""
        lists = [self.encode(item) for item in encoded]
        slots = slot_of(self.keys), self.space.after, self.space.completes
        return Corpus(lists, len(self), slots=slots)

    def names(self) -> list[str]:
        """Each feature in words."""
        reader = SlotNames(self.space, self.schema)
        return [reader.name(key) for key in self.keys.tolist()]


def encoder(schema: Schema, space: SlotSpace) -> ListEncoder:
    """Encodes candidate lists as the parts of a space.

    Parts that all candidates of a list have are left out; every score of a list then lacks the same
    summand.
    """
    return ListEncoder(schema, kernel_parts=space.names, manual_parts=())


def encode_lists(
    schema: Schema,
    space: SlotSpace,
    sentences: Sequence[Sentence],
    lists: Iterable[CandidateList],
) -> list[EncodedList]:
    """Aligned sentences and candidate lists, encoded."""
    made = encoder(schema, space)
    return made.encode_all(list(zip(sentences, lists, strict=True)))


def by_word(parts: PartLists, n_words: int) -> Int32:
    """The part of each word (as modifier) in each candidate: int32[k, n], NO_PART for none."""
    n = len(parts.starts) - 1
    members = np.full((n, n_words), NO_PART, dtype=np.int32)
    candidates = np.repeat(np.arange(n), np.diff(parts.starts))
    words = parts.rows[parts.members, _MODIFIER] - 1
    members[candidates, words] = parts.members
    return members


def _counted(
    keys: UInt64, counts: NDArray[np.int64], held: list[UInt64]
) -> tuple[UInt64, NDArray[np.int64]]:
    if not held:
        return keys, counts
    new, of_new = np.unique(np.concatenate(held), return_counts=True)
    both, inverse = np.unique(np.concatenate([keys, new]), return_inverse=True)
    total = np.zeros(len(both), dtype=np.int64)
    np.add.at(total, inverse, np.concatenate([counts, of_new]))
    return both, total


_MODIFIER = ROLES.index("m")
_AT_A_TIME = 1 << 23
