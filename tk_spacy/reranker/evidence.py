"""What speaks for a chosen tree, its heads and its labels: the features of its probabilities.

The candidates are weighed in several ways: by the final scores and the arc combiner's, as a softmax
at several temperatures, by the parsers' own scores, and by how many parsers have a tree as their
own.  The share of the candidates that agree with the chosen one in a word's head (or label, or in
all) is one feature for each, as log-odds.

Where all candidates agree, in two words of three, these say the same of all words.  So it is also
looked at how sure the rest of the sentence is, the head's own head and the words beside, and of
what kind the arc is: its relation and its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, softmax, weights_of_lists
from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.utils.array_types import Float64, Int32

FINAL = "final"
PARSERS, VOTES = "parsers", "votes"
HEADS, LABELS = "heads", "labels"
"""What the tree's model sees beside the shares: the products of its words' probabilities."""
AROUND = ("sentence", "head", "beside", "length")
"""What the words' models see beside the shares."""
RELATION = "relation "
"""Before the name of a relation: whether the arc has it."""
STEPS = (1, 2, 3, 5, 10)
DISTANCES = ("root", *(f"-{step}" for step in reversed(STEPS)), *map(str, STEPS))
"""Kinds of arcs by the place of the head: 0, or so many words to the left or right, or more."""
FLOOR = 0.001
"""Added to a share and to what is missing to 1, so that log-odds are finite."""


def log_odds(shares: Float64, floor: float = FLOOR) -> Float64:
    """log(p / (1 - p)) of each share, both sums raised by `floor`; NaN of NaN."""
    return np.asarray(np.log((shares + floor) / (1.0 - shares + floor)))


def weighting_names(sources: Sequence[str]) -> list[str]:
    """Of the weightings, in the order of `weightings`."""
    of_trees = [FINAL, *([COMBINER] if COMBINER in sources else [])]
    return [*(f"{name} {t:g}" for name in of_trees for t in TEMPERATURES), PARSERS, VOTES]


def weightings(
    lists: Sequence[CandidateList],
    finals: Sequence[Float64],
    scales: Mapping[str, float],
    final_scale: float,
) -> list[Float64]:
    """What weighs the candidates of each list: float64[q, k], each row sums to 1.

    finals: of each list float64[k], the final scores.  scales, final_scale: the mean spread of each
    source's scores, and of the final ones, within a list.

    The final scores' softmax at every temperature, in units of their spread; the same of the
    combiner's, where there is one; the mean of the parsers' own; the share of parsers whose own
    tree a candidate is.
    """
    parsers = {name: scale for name, scale in scales.items() if name != COMBINER}
    each = len(TEMPERATURES) + 1
    combined: Sequence[Float64] = [np.empty((1, 0))] * len(lists)
    if COMBINER in scales:
        combined = weights_of_lists(lists, {COMBINER: scales[COMBINER]})
    found = []
    for final, own, of_combiner in zip(
        finals, weights_of_lists(lists, parsers), combined, strict=True
    ):
        rows = [softmax(final, final_scale * t) for t in TEMPERATURES]
        own = own.reshape(len(parsers), each, len(final))
        means = own[:, -2].mean(axis=0), own[:, -1].mean(axis=0)
        found.append(np.stack([*rows, *of_combiner[:-1], *means]))
    return found


def _shares(weights: Float64, same: NDArray[np.bool_]) -> Float64:
    """The weight of the candidates that are the same, float64[q, ...] of bool[k, ...]."""
    # Not by BLAS, whose sums depend on the number of threads.
    shares = np.einsum("qk,k...->q...", weights, same.astype(np.float64), optimize=False)
    return np.clip(shares, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class WordFeatures:
    """What the models of heads and labels see of each word.

    relations: whose arcs are told apart; None for the shares alone, as of earlier versions.
    columns: of the relations among the kinds of arcs.
    """

    sources: Sequence[str]
    relations: tuple[str, ...] | None
    columns: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = {name: column for column, name in enumerate(self.relations or ())}
        object.__setattr__(self, "columns", places)

    @property
    def names(self) -> list[str]:
        """Of the features, the last `n_kinds` of which are 0 or 1."""
        shares = weighting_names(self.sources)
        if self.relations is None:
            return shares
        kinds = [*(RELATION + name for name in self.relations), *DISTANCES]
        return [*shares, *AROUND, *kinds]

    @property
    def n_kinds(self) -> int:
        """How many features are kinds of arcs."""
        return 0 if self.relations is None else len(self.relations) + len(DISTANCES)

    def of(self, candidates: CandidateList, weights: Float64, row: int) -> tuple[Float64, Float64]:
        """Of each word of a candidate, for its head and its label: two of float64[n, d]."""
        heads = candidates.heads[row]
        shares = [
            log_odds(_shares(weights, rows == rows[row]))
            for rows in (candidates.heads, candidates.labels)
        ]
        if self.relations is None:
            return shares[0].T, shares[1].T
        kinds = self._kinds(candidates, heads, candidates.labels[row])
        of_heads, of_labels = (
            np.concatenate([own.T, _around(own.mean(axis=0), heads), kinds], axis=1)
            for own in shares
        )
        return of_heads, of_labels

    def _kinds(self, candidates: CandidateList, heads: Int32, labels: Int32) -> Float64:
        """float64[n, n_kinds] of 0 and 1."""
        n = len(heads)
        out = np.zeros((n, self.n_kinds))
        words = np.arange(n)
        names = self.relations or ()
        for word, name in enumerate(candidates.inventory.decode(labels.tolist())):
            column = self.columns.get(name)
            if column is not None:
                out[word, column] = 1.0
        length = heads - (words + 1)
        size = np.searchsorted(STEPS, np.abs(length), side="right")  # from 1
        left, right = len(STEPS) + 1 - size, len(STEPS) + size
        place = np.where(heads == 0, 0, np.where(length < 0, left, right))
        out[words, len(names) + place] = 1.0
        return out


def _around(sure: Float64, heads: Int32) -> Float64:
    """How sure what stands around each word is: float64[n, len(AROUND)].

    sure: float64[n], mean log-odds of each word.  heads: int32[n].
    """
    n = len(sure)
    whole = float(sure.mean())
    others = np.full(n, whole) if n == 1 else (sure.sum() - sure) / (n - 1)
    of_head = np.concatenate([[whole], sure])[heads]
    padded = np.concatenate([[whole], sure, [whole]])
    beside = (padded[:-2] + padded[2:]) / 2.0
    return np.stack([others, of_head, beside, np.full(n, np.log(n))], axis=1)


def tree_feature_names(sources: Sequence[str]) -> list[str]:
    """In the order of `tree_features`."""
    return [*weighting_names(sources), HEADS, LABELS]


def tree_features(
    candidates: CandidateList, weights: Float64, row: int, heads: Float64, labels: Float64
) -> Float64:
    """Of a candidate with these probabilities of its words, float64[n]: float64[q + 2]."""
    same = np.arange(len(candidates)) == row  # candidates are distinct trees
    products = np.exp([np.log(heads).sum(), np.log(labels).sum()])
    return log_odds(np.concatenate([_shares(weights, same), products]))
