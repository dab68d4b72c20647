"""A linear model of listed slot combinations: scores candidate lists without a support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.candidate_scores import add_candidate_scores
from tk_spacy.features.encoder import EncodedList, ListEncoder
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.selection.combinations.slot_features import encoder
from tk_spacy.selection.combinations.slot_space import (
    NOTHING,
    PROPERTY_AT,
    SlotNames,
    SlotSpace,
    TypeSlots,
    UInt64,
    check_keys,
    slot_of,
)
from tk_spacy.selection.combinations.trie import CombinationTrie
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.serialization import META, reading
from tk_spacy.utils.stored_values import shown, stored_entry

COUNTS = "combinations"
MOST_WEIGHT = 1e24
"""Of a stored combination; their sums are then finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """Combinations of one part type with weights.

    features: int32[c, s], the feature of each slot (nodes first, see slot_space), NOTHING where
    there is none.  weights: float64[c].
    """

    features: Int32
    weights: Float64

    def __len__(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class CombinationModel:
    """Listed combinations of slots, each with a weight; a tree's score is the sum over its parts.

    schema: properties and values.  space: part types, slots and which of these may be left out.
    keys: uint64[f], the features that combinations name, ascending.  types: the combinations of
    each part type of the space.
    Raises ValueError for combinations that do not fit, that lack a slot they may not lack, or that
    are there twice.
    """

    schema: Schema
    space: SlotSpace
    keys: UInt64
    types: tuple[Combinations, ...]
    _encoder: ListEncoder = field(init=False, repr=False)
    _tries: tuple[CombinationTrie, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.types) != len(self.space.types):
            raise ValueError(
                f"combinations of {len(self.types)} part types, expected {len(self.space.types)}"
            )
        check_keys(self.keys, self.space, self.schema)
        slots = slot_of(self.keys)
        table = KeyTable()
        table.add_all(self.keys)
        tries = []
        for of_type, listed in zip(self.space.types, self.types, strict=True):
            _check_complete(of_type, listed, slots)
            tries.append(CombinationTrie(listed.features, listed.weights, table, of_type))
        object.__setattr__(self, "_tries", tuple(tries))
        object.__setattr__(self, "_encoder", encoder(self.schema, self.space))

    def __len__(self) -> int:
        """The number of combinations of all types."""
        return sum(len(listed) for listed in self.types)

    def encode(self, sentence: Sentence, candidates: CandidateList) -> EncodedList:
        """What `scores` reads of a sentence and its candidates.

        An EncodedList whose `kernel` parts are of this model's types: that of a reranker with the
        same ones will do as well.
        """
        return self._encoder.encode(sentence, candidates)

    def encode_all(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[EncodedList]:
        """As `encode`, for several sentences in one go."""
        return self._encoder.encode_all(pairs)

    def scores(
        self, encoded: Sequence[EncodedList], *, n_threads: int | None = None
    ) -> list[Float64]:
        """The score of every candidate of some lists: float64[k] for each.

        Comparable within a list only: parts that all its candidates have are left out.  The same to
        the last bit for any number of threads, and whatever else is in the batch.
        """
        out = [np.zeros(item.n_candidates) for item in encoded]
        for at, values in enumerate(self.part_scores(encoded, n_threads=n_threads)):
            for item, of_parts, scores in zip(encoded, values, out, strict=True):
                of_type = item.kernel[at]
                add_candidate_scores(of_parts, of_type.starts, of_type.members, scores)
        return out

    def part_scores(
        self, encoded: Sequence[EncodedList], *, n_threads: int | None = None
    ) -> list[list[Float64]]:
        """The score of every part: for each part type float64[p] for each list."""
        nodes = [item.sentence.nodes for item in encoded]
        return [
            trie.scores(nodes, [item.kernel[at].slots for item in encoded], n_threads=n_threads)
            for at, trie in enumerate(self._tries)
        ]

    def strongest(self, most: int) -> CombinationModel:
        """The same with the combinations of the largest weights alone, as many as asked for."""
        if most < 1:
            raise ValueError(f"{most} combinations, expected 1 at least")
        if most >= len(self):
            return self
        strength = np.abs(np.concatenate([listed.weights for listed in self.types]))
        keep = np.zeros(len(strength), dtype=bool)
        keep[np.argsort(-strength, kind="stable")[:most]] = True
        ends = np.cumsum([len(listed) for listed in self.types])[:-1]
        kept = [
            (listed.features[here], listed.weights[here])
            for listed, here in zip(self.types, np.split(keep, ends), strict=True)
        ]
        return make_model(self.schema, self.space, self.keys, kept)

    def with_weights(self, weights: Sequence[Float64]) -> CombinationModel:
        """The same combinations with other weights, float64[c] for each type."""
        types = [
            replace(listed, weights=new) for listed, new in zip(self.types, weights, strict=True)
        ]
        return CombinationModel(self.schema, self.space, self.keys, tuple(types))

    # For readers

    def names(self) -> list[str]:
        """Each combination in words, type after type: "h-UPOS=NOUN & m-Case=Gen & e-label=amod".

        See `names_of`.
        """
        return [name for name, _ in self.listed()]

    def listed(self) -> Iterator[tuple[str, float]]:
        """Each combination in words and its weight, in their order."""
        weights = np.concatenate([listed.weights for listed in self.types]).tolist()
        names = self.names_of(np.arange(len(weights)))
        yield from ((name, weights[i]) for i, name in names.items())

    def names_of(self, numbers: NDArray[np.intp]) -> dict[int, str]:
        """The combinations of these numbers, which count type after type, in words.

        Where there are several part types each name begins with its own: without, those of two
        types would be one where slots may be left out.
        """
        reader = SlotNames(self.space, self.schema)
        words: dict[int, str] = {}
        ends = np.cumsum([len(listed) for listed in self.types])
        found = {}
        for i, at in zip(numbers.tolist(), np.searchsorted(ends, numbers, "right"), strict=True):
            listed = self.types[at]
            row = listed.features[i - int(ends[at]) + len(listed)]
            said = []
            for feature in row.tolist():
                if feature != NOTHING and feature not in words:
                    words[feature] = reader.name(int(self.keys[feature]))
                said += [words[feature]] if feature != NOTHING else []
            name = " & ".join(said) or "(every part)"
            found[i] = name if len(self.types) == 1 else f"{self.space.types[at].name}: {name}"
        return found

    def n_templates(self) -> int:
        """The number of different templates: combinations without the values of their features."""
        of_keys = np.append(self.keys >> np.uint64(PROPERTY_AT), np.uint64(0))
        rows = (of_keys[listed.features] for listed in self.types if len(listed))
        return sum(len(np.unique(of_type, axis=0)) for of_type in rows)

    # Storage

    def to_dict(self) -> dict[str, Any]:
        """What meta.json says of it."""
        return {
            "skips": self.space.to_dict(),
            COUNTS: {
                of_type.name: len(listed)
                for of_type, listed in zip(self.space.types, self.types, strict=True)
            },
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        arrays: dict[str, NDArray[Any]] = {"keys": self.keys}
        for of_type, listed in zip(self.space.types, self.types, strict=True):
            arrays[f"{of_type.name}.features"] = listed.features
            arrays[f"{of_type.name}.weights"] = listed.weights
        return arrays

    @classmethod
    def from_stored(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], schema: Schema
    ) -> CombinationModel:
        """The inverse of `to_dict` and `to_arrays`.

        Raises KeyError where something is missing, ValueError where it does not fit together.
        """
        with reading(META):
            space = SlotSpace.from_dict(stored_entry(data, "skips", "explicit"))
        keys = _stored(arrays, "keys", np.uint64, (None,))
        types = []
        for of_type in space.types:
            features = _stored(arrays, f"{of_type.name}.features", np.int32, (None, len(of_type)))
            weights = _stored(arrays, f"{of_type.name}.weights", np.float64, (len(features),))
            if not (np.abs(weights) < MOST_WEIGHT).all():
                raise ValueError(
                    f"{of_type.name}.weights holds what is no number, or beyond {MOST_WEIGHT:g}"
                )
            types.append(Combinations(features, weights))
        model = cls(schema, space, keys, tuple(types))
        with reading(META):
            said, there = stored_entry(data, COUNTS, "explicit"), model.to_dict()[COUNTS]
            if said != there:
                raise ValueError(f"{COUNTS} are said to be {shown(said)}, there are {there}")
        return model


def make_model(
    schema: Schema,
    space: SlotSpace,
    keys: UInt64,
    types: Sequence[tuple[Int32, Float64]],
) -> CombinationModel:
    """A model that keeps only the features which combinations name.

    keys: uint64[f], ascending.  types: features and weights of each part type, see Combinations.
    """
    used = np.zeros(len(keys) + 1, dtype=bool)  # the last one is NOTHING's
    for features, _ in types:
        used[features.ravel()] = True
    used[NOTHING] = False
    new = np.where(used, np.cumsum(used) - 1, NOTHING).astype(np.int32)
    listed = [
        Combinations(np.ascontiguousarray(new[features]), np.asarray(weights, dtype=np.float64))
        for features, weights in types
    ]
    return CombinationModel(schema, space, keys[used[:-1]], tuple(listed))


def _check_complete(of_type: TypeSlots, listed: Combinations, slots: Int32) -> None:
    """Raises ValueError unless each column holds its slot's features, and none that is needed."""
    if listed.features.ndim != 2 or listed.features.shape[1] != len(of_type):
        raise ValueError(
            f"features of {of_type.name} have shape {listed.features.shape}, expected "
            f"{len(of_type)} columns"
        )
    for slot in range(len(of_type)):
        column = listed.features[:, slot]
        named = column[column != NOTHING]
        if len(named) < len(column) and not of_type.skips[slot]:
            raise ValueError(
                f"a combination of {of_type.name} lacks slot {of_type.slots[slot].name}, which may "
                "not be left out"
            )
        if len(named) and (named.min() < 0 or named.max() >= len(slots)):
            raise ValueError(
                f"a combination of {of_type.name} names feature {named.min()} or {named.max()}, "
                f"expected 0 to {len(slots) - 1}"
            )
        if (slots[named] != of_type.first + slot).any():
            raise ValueError(
                f"a combination of {of_type.name} has another slot's feature in slot "
                f"{of_type.slots[slot].name}"
            )


def _stored(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: type, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        wanted is None or given == wanted for given, wanted in zip(array.shape, shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(
            f"{name} is {array.dtype}{list(array.shape)}, expected {np.dtype(dtype)}[{wanted}]"
        )
    return np.ascontiguousarray(array)
