"""What the combiner sees of an arc: shares of each source, and who holds it, by label and tags."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arc_table import hashed_arcs
from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, ListArcs, candidate_weights
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.stored_values import stored_entry, stored_numbers

UInt64 = NDArray[np.uint64]

LOG_FLOOR = 0.02
BITS = 18
MAX_DISTANCE = 6
_ROOT = "ROOT"


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
        labelled, heads = arcs.shares(weights)
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
            hashed=_hashed(sentence, candidates, arcs, labelled, heads),
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
    labelled: Float64,
    heads: Float64,
) -> Int32:
    """Who holds the arc, and who its head, with label, tags and distance: int32[a, N_HASHED]."""
    return hashed_arcs(
        (arcs.words, arcs.heads, arcs.labels), labelled, heads, len(TEMPERATURES) + 1,
        _codes(candidates.inventory.names), _codes([_ROOT, *sentence.upos]),
        nearest=MAX_DISTANCE, bits=BITS,
    )  # fmt: skip


def _codes(names: Sequence[str]) -> UInt64:
    """A number for each name that is the same in every run."""
    return np.array(list(map(_code, names)), dtype=np.uint64)


@lru_cache(maxsize=10_000)
def _code(name: str) -> int:
    return zlib.crc32(name.encode())
