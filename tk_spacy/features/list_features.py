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
from numpy.typing import NDArray

from tk_spacy.features.consensus import SHARE_FEATURES, share_features
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

SCORE_FEATURES = ("gap", "standard", "rank", "first", "unscored")


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
        k = len(candidates)
        base = np.zeros(k)
        base[candidates.base] = 1.0
        columns: list[Float64] = []
        weightings: list[Float64] = []
        # A tree that no source knows, such as the gold tree that was added, is not marked.
        known = np.logical_not(np.isnan(candidates.scores).all(axis=1))
        for source, scale in self.scales.items():
            scores = np.full(k, np.nan)
            if source in candidates.sources:
                scores = candidates.scores[:, candidates.sources.index(source)]
                scores = np.where(np.isinf(scores), np.nan, scores)
            missing = np.isnan(scores)
            full = filled(scores)
            columns += _score_columns(full, missing, scale, known)
            weightings += _weightings(full, missing, scale)
        parts = []
        if "scores" in self.groups:
            parts.append(np.array([*columns, base]).T)
        if "shares" in self.groups:
            weights = np.array([*weightings, np.full(k, 1.0 / k), base])
            parts.append(share_features(candidates.heads, candidates.labels, weights))
        features = np.ascontiguousarray(np.concatenate(parts, axis=1))
        features -= features.mean(axis=0)
        features *= self.factor
        return features

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


def _score_columns(
    full: Float64, missing: NDArray[np.bool_], scale: float, known: NDArray[np.bool_]
) -> list[Float64]:
    """SCORE_FEATURES of one source: float64[k] each; unscored trees count as the worst.

    full: its scores, filled where they are missing.
    """
    best = full.max()
    deviation = full.std()
    rank = np.empty(len(full))
    rank[np.argsort(-full, kind="stable")] = np.arange(len(full))
    none = missing.all()
    return [
        (full - best) / scale,
        (full - full.mean()) / (deviation if deviation > 0 else 1.0),
        np.zeros(len(full)) if none else -np.log1p(rank),
        np.zeros(len(full)) if none else (rank == 0).astype(np.float64),
        (missing & known).astype(np.float64),
    ]


def _weightings(full: Float64, missing: NDArray[np.bool_], scale: float) -> list[Float64]:
    """The weights that one source gives the candidates: float64[k] each, 0 for unscored trees."""
    if missing.all():
        even = np.full(len(full), 1.0 / len(full))
        return [even] * (len(TEMPERATURES) + 1)
    full = np.where(missing, -np.inf, full)
    best = int(full.argmax())
    first = np.zeros(len(full))
    first[best] = 1.0
    gaps = full - full[best]
    weightings = []
    for temperature in TEMPERATURES:
        weights = np.exp(gaps / (scale * temperature))
        weightings.append(weights / weights.sum())
    return [*weightings, first]
