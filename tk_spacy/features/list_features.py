"""Features of a candidate within its list: what the parsers say of it, and what the list says.

Beyond the paper, whose reranker sees a tree alone and meets the parser's score only in the final
sum.  The features are few and dense; one weight each is learned by Algorithm 1 beside the manual
features and the kernel, so that these are spent on what the parsers get wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tk_spacy.features.consensus import SHARE_FEATURES
from tk_spacy.features.list_columns import list_columns
from tk_spacy.features.score_features import SCORE_FEATURES
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.stored_values import (
    stored_entry,
    stored_number,
    stored_numbers,
    stored_texts,
)

LIST_FEATURES = ("scores", "shares")
"""Groups of features.  scores: of each source, a candidate's score and rank.  shares: how many of
the other candidates hold its arcs, weighted by each source (see `consensus.share_features`)."""

TEMPERATURES = (0.25, 1.0)
"""A source weighs the candidates by the softmax of its scores, in units of their mean spread,
divided by each of these: by the sharper one, little but the best trees counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFeatures:
    """The dense features of candidates, as fitted on training lists.

    groups: of LIST_FEATURES.  scales: for each source the mean standard deviation of its scores
    within a list, positive.  factor: on all features, positive: how fast they are learned.
    """

    groups: tuple[str, ...]
    scales: Mapping[str, float]
    factor: float = 1.0

    @classmethod
    def fit(
        cls, lists: Sequence[CandidateList], groups: Iterable[str], *, factor: float = 1.0
    ) -> ListFeatures:
        """The features of these groups, with the scales of these lists, which have like sources."""
        sources = lists[0].sources
        scales = {
            source: mean_deviation([filled(item.scores[:, j]) for item in lists])
            for j, source in enumerate(sources)
        }
        return cls(groups=tuple(groups), scales=scales, factor=factor)

    @property
    def names(self) -> list[str]:
        """The name of each feature, in the order of the columns."""
        names = []
        if "scores" in self.groups:
            names += [f"{source} {name}" for source in self.scales for name in SCORE_FEATURES]
            names.append("base")
        if "shares" in self.groups:
            weightings = [
                f"{source} {kind}"
                for source in self.scales
                for kind in (*(f"softmax/{t:g}" for t in TEMPERATURES), "first")
            ]
            weightings += ["all", "base"]
            names += [f"{name} share, {w}" for w in weightings for name in SHARE_FEATURES]
        return names

    def encode(self, candidates: CandidateList) -> Float64:
        """float64[k, len(names)], each column with mean 0: only differences within a list count.

        Sources that the training lists lacked are passed over; those that these candidates lack
        have scored none of them.
        """
        return self.encode_all([candidates])[0]

    def encode_all(self, lists: Sequence[CandidateList]) -> list[Float64]:
        """As `encode`, of several lists in one go."""
        places: dict[tuple[str, ...], list[int]] = {}
        for item in lists:
            if item.sources not in places:
                places[item.sources] = [
                    item.sources.index(source) if source in item.sources else -1
                    for source in self.scales
                ]
        columns = np.array([places[item.sources] for item in lists], dtype=np.int32)
        return list_columns(
            [item.heads for item in lists],
            [item.labels for item in lists],
            [item.scores for item in lists],
            columns.reshape(len(lists), len(self.scales)),
            np.array([item.base for item in lists], dtype=np.int32),
            np.array(list(self.scales.values()), dtype=np.float64),
            np.array(TEMPERATURES),
            self.factor,
            of_scores="scores" in self.groups,
            of_shares="shares" in self.groups,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"groups": list(self.groups), "scales": dict(self.scales), "factor": self.factor}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ListFeatures:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        groups, scales, factor = (
            stored_entry(data, name, "list_features") for name in ("groups", "scales", "factor")
        )
        groups = stored_texts(groups, "list_features.groups")
        if not groups or not set(groups) <= set(LIST_FEATURES):
            raise ValueError(f"list features are {groups}, expected some of {LIST_FEATURES}")
        return cls(
            groups=tuple(groups),
            scales=stored_numbers(scales, "list_features.scales", positive=True),
            factor=stored_number(factor, "list_features.factor", positive=True),
        )
