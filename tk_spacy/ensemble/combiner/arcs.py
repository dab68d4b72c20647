"""The arcs of a candidate list, and what share of the list holds each.

An *arc* here is a word, its head and its label.  Each source (parser) weighs the candidates by its
scores, and the share of an arc is the weight of all candidates that hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.ensemble.combiner.arc_table import arc_shares, distinct_arcs
from tk_spacy.ensemble.combiner.list_tables import list_weights
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.utils.array_types import Float64, Int32

TEMPERATURES = (0.1, 0.3, 1.0)
"""A source weighs the candidates by the softmax of its scores, in units of their mean spread,
divided by each of these."""


def softmax(scores: Float64, temperature: float) -> Float64:
    """float64[k], which sums to 1, of scores float64[k], of which one at least is finite.

    temperature: that the scores are divided by, positive.
    """
    powers = np.exp((scores - scores.max()) / temperature)
    return powers / powers.sum()


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


def candidate_weights(candidates: CandidateList, scales: Mapping[str, float]) -> Float64:
    """What each source weighs the candidates: float64[n_sources * (temperatures + 1), k].

    scales: of each source that is asked for, the mean spread of its scores within a list.  Of each
    the softmax at every temperature, then all the weight on its own tree; a source that the list
    lacks, or that scored nothing, weighs all alike.
    """
    return weights_of_lists([candidates], scales)[0]


def weights_of_lists(lists: Sequence[CandidateList], scales: Mapping[str, float]) -> list[Float64]:
    """As `candidate_weights`, of several lists in one go."""
    places: dict[tuple[str, ...], list[int]] = {}
    columns, own = [], []
    for item in lists:
        if item.sources not in places:
            places[item.sources] = [
                item.sources.index(source) if source in item.sources else -1 for source in scales
            ]
        columns.append(places[item.sources])
        own.append(
            [
                item.base if column == 0 else item.bases.get(source, -1)
                for source, column in zip(scales, columns[-1], strict=True)
            ]
        )
    shape = len(lists), len(scales)
    return list_weights(
        [item.scores for item in lists],
        np.array(columns, dtype=np.int32).reshape(shape),
        np.array(own, dtype=np.int32).reshape(shape),
        np.array(list(scales.values()), dtype=np.float64),
        np.array(TEMPERATURES),
    )
