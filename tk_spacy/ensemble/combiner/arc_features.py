"""What the combiner sees of an arc: shares of each source, and who holds it, by label and tags."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, ListArcs, candidate_weights
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32
from tk_spacy.utils.stored_values import stored_entry, stored_numbers

UInt64 = NDArray[np.uint64]

LOG_FLOOR = 0.02
BITS = 18
MAX_DISTANCE = 6
_ROOT = "ROOT"
N_HASHED = 10


@dataclass(frozen=True, slots=True, eq=False)
class ArcTable:
    """The arcs of a list and their features.

    dense: float32[a, d].  hashed: int32[a, N_HASHED], ids below 2 ** BITS of features that are 1.
    """

    arcs: ListArcs
    dense: NDArray[np.float32]
    hashed: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcFeatures:
    """The features of arcs, as fitted on training lists.

    scales: for each source the mean standard deviation of its scores within a list, positive.
    """

    scales: Mapping[str, float]

    @classmethod
    def fit(cls, lists: Sequence[CandidateList]) -> ArcFeatures:
        """With the scales of these lists, which have like sources."""
        return cls(
            scales={
                source: mean_deviation([filled(item.scores[:, j]) for item in lists])
                for j, source in enumerate(lists[0].sources)
            }
        )

    @property
    def width(self) -> int:
        """Number of dense features."""
        return 4 * len(self.scales) * (len(TEMPERATURES) + 1) + 2

    def encode(self, sentence: Sentence, candidates: CandidateList) -> ArcTable:
        """The features of all arcs of a list; only differences within a word's arcs count."""
        arcs = ListArcs.of(candidates)
        weights = candidate_weights(candidates, self.scales)
        labelled = arcs.shares(weights)
        heads = arcs.head_shares(labelled)
        own = slice(len(TEMPERATURES), None, len(TEMPERATURES) + 1)
        votes, head_votes = labelled[own] > 0, heads[own] > 0
        dense = np.concatenate(
            [
                labelled, heads, np.log(labelled + LOG_FLOOR), np.log(heads + LOG_FLOOR),
                votes.sum(axis=0, keepdims=True), head_votes.sum(axis=0, keepdims=True),
            ]
        )  # fmt: skip
        return ArcTable(
            arcs=arcs,
            dense=np.ascontiguousarray(dense.T, dtype=np.float32),
            hashed=_hashed(sentence, candidates, arcs, votes, head_votes),
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"scales": dict(self.scales)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArcFeatures:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        scales = stored_numbers(
            stored_entry(data, "scales", "combiner.features"),
            "combiner.features.scales",
            positive=True,
        )
        if not scales:
            raise ValueError("combiner.features.scales is empty, expected one of each source")
        return cls(scales=scales)


def _hashed(
    sentence: Sentence,
    candidates: CandidateList,
    arcs: ListArcs,
    votes: NDArray[np.bool_],
    head_votes: NDArray[np.bool_],
) -> Int32:
    """Who holds the arc, and who its head, with label, tags and distance: int32[a, N_HASHED]."""
    bits = np.uint64(1) << np.arange(len(votes), dtype=np.uint64)
    voters, head_voters = bits @ votes, bits @ head_votes
    names = candidates.inventory.names
    label_ids, where = np.unique(arcs.labels, return_inverse=True)
    label = _codes([names[i] for i in label_ids.tolist()])[where]
    tags = _codes([_ROOT, *sentence.upos])
    modifier, head = tags[arcs.words + 1], tags[arcs.heads]
    distance = np.clip(arcs.heads - 1 - arcs.words, -MAX_DISTANCE, MAX_DISTANCE)
    distance = np.where(arcs.heads == 0, MAX_DISTANCE + 1, distance) + MAX_DISTANCE
    distance = distance.astype(np.uint64)
    combinations: tuple[tuple[UInt64, ...], ...] = (
        (voters,),
        (voters, label),
        (voters, modifier),
        (voters, distance),
        (voters, label, modifier),
        (head_voters, modifier),
        (head_voters, modifier, head),
        (head_voters, distance, modifier),
        (label, modifier),
        (label, modifier, head),
    )
    columns = [_mixed(number, parts) for number, parts in enumerate(combinations, start=1)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _codes(names: Sequence[str]) -> UInt64:
    """A number for each name that is the same in every run."""
    return np.array([zlib.crc32(name.encode()) for name in names], dtype=np.uint64)


def _mixed(number: int, parts: Sequence[UInt64]) -> Int32:
    """One id below 2 ** BITS for each combination of values: multiplicative hashing."""
    key = np.full(len(parts[0]), number, dtype=np.uint64)
    for part in parts:
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return (key >> np.uint64(64 - BITS)).astype(np.int32)
