"""What the combiner sees of an arc: shares of each source, and who holds it, by label and tags."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, ListArcs, weights_of_lists
from tk_spacy.ensemble.combiner.list_tables import arc_tables
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
        return self.encode_all([(sentence, candidates)])[0]

    def encode_all(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[ArcTable]:
        """As `encode`, of several lists in one go."""
        for sentence, candidates in pairs:
            if candidates.n_words != len(sentence):
                raise ValueError(
                    f"candidates have {candidates.n_words} words, the sentence has {len(sentence)}"
                )
        lists = [candidates for _, candidates in pairs]
        inventories = {item.inventory: _codes(item.inventory.names) for item in lists}
        tags = chain.from_iterable((_ROOT, *sentence.upos) for sentence, _ in pairs)
        found = arc_tables(
            [item.heads for item in lists],
            [item.labels for item in lists],
            weights_of_lists(lists, self.scales),
            [inventories[item.inventory] for item in lists],
            _codes(tags),
            every=len(TEMPERATURES) + 1,
            nearest=MAX_DISTANCE,
            bits=BITS,
            floor=LOG_FLOOR,
        )
        return [
            ArcTable(arcs=ListArcs(*arcs), dense=dense, hashed=hashed)
            for *arcs, dense, hashed in found
        ]

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


def _codes(names: Iterable[str]) -> UInt64:
    """A number for each name that is the same in every run."""
    return np.array(list(map(_code, names)), dtype=np.uint64)


@lru_cache(maxsize=10_000)
def _code(name: str) -> int:
    return zlib.crc32(name.encode())
