"""The arcs of a candidate list, and what share of the list holds each.

An *arc* here is a word, its head and its label.  Each source (parser) weighs the candidates by its
scores, and the share of an arc is the weight of all candidates that hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tk_spacy.ensemble.combiner.arc_table import arc_shares, distinct_arcs
from tk_spacy.features.score_features import normalize
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.utils.array_types import Float64, Int32

TEMPERATURES = (0.1, 0.3, 1.0)
"""A source weighs the candidates by the softmax of its scores, in units of their mean spread,
divided by each of these."""


@dataclass(frozen=True, slots=True, eq=False)
class ListArcs:
    """The distinct arcs of a list, ordered by word, head and label id.

    words: int32[a], from 0.  heads: int32[a], 0..n.  labels: int32[a], ids of the list's inventory.
    of_tree: int32[k, n], the arc of each word in each candidate.
    with_head: int32[a], a number for each word and head: the same for arcs that differ in label.
    starts: int32[n + 1]; the arcs of word m are starts[m]:starts[m + 1], one at least.
    """

    words: Int32
    heads: Int32
    labels: Int32
    of_tree: Int32
    with_head: Int32
    starts: Int32

    @classmethod
    def of(cls, candidates: CandidateList) -> ListArcs:
        """The arcs of all candidates."""
        return cls.of_trees(candidates.heads, candidates.labels)

    @classmethod
    def of_trees(cls, heads: Int32, labels: Int32) -> ListArcs:
        """The arcs of trees: heads and labels int32[k, n]."""
        return cls(*distinct_arcs(heads, labels))

    def __len__(self) -> int:
        return len(self.words)

    def shares(self, weights: Float64) -> tuple[Float64, Float64]:
        """The shares of the arcs under weights float64[q, k] of the candidates: float64[q, a].

        And for each arc the summed shares of all arcs of its word and head, float64[q, a].
        """
        return arc_shares(self.of_tree, self.with_head, weights)


def own_rows(candidates: CandidateList) -> dict[str, int]:
    """The row of each source's own tree: as recorded, else its best-scored one.

    A source that has scored nothing is left out.
    """
    rows = {}
    for column, source in enumerate(candidates.sources):
        scores = candidates.scores[:, column]
        if column == 0:
            rows[source] = candidates.base
        elif source in candidates.bases:
            rows[source] = candidates.bases[source]
        elif not np.isnan(scores).all():
            rows[source] = int(np.nanargmax(scores))
    return rows


def candidate_weights(candidates: CandidateList, scales: Mapping[str, float]) -> Float64:
    """What each source weighs the candidates: float64[n_sources * (temperatures + 1), k].

    scales: of each source that is asked for, the mean spread of its scores within a list.  Of each
    the softmax at every temperature, then all the weight on its own tree; a source that the list
    lacks, or that scored nothing, weighs all alike.
    """
    k = len(candidates)
    own = own_rows(candidates)
    weights = np.full((len(scales), len(TEMPERATURES) + 1, k), 1.0 / k)
    powers = np.zeros((len(scales), len(TEMPERATURES), k))  # all alike, unless more is known
    temperatures = np.array(TEMPERATURES)[:, None]
    for number, (source, scale) in enumerate(scales.items()):
        if source not in own:
            continue
        scores = candidates.scores[:, candidates.sources.index(source)]
        finite = np.isfinite(scores)
        if finite.any():
            scores = np.where(finite, scores, -np.inf)
            powers[number] = (scores - scores.max()) / (scale * temperatures)
        weights[number, -1] = 0.0
        weights[number, -1, own[source]] = 1.0
    np.exp(powers, out=powers)
    normalize(powers.reshape(-1, k))
    weights[:, :-1] = powers
    return weights.reshape(-1, k)
