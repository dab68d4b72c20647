"""What broken constraints of well-formed trees cost in the final score.

A penalty is softer than a rule: a tree that breaks a constraint is chosen where everything else
speaks for it, as gold trees break some, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tk_spacy.evaluation.well_formed import count_violations, word_facts
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import mean_deviation
from tk_spacy.kbest.well_formed import count_broken, list_violations
from tk_spacy.reranker.decision import repaired_list
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.trees.constraints import KINDS, WordFacts
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.stored_values import stored_numbers, stored_table

GRID = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
"""Penalties that are tried, in units of the final score's mean spread within a list."""
OFTENER = 2
"""How many times as often as gold trees the chosen ones break what is penalised, at least."""


@dataclass(frozen=True, slots=True)
class Penalties:
    """What each violation of a kind takes from a tree's final score: finite, positive."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def of(self, candidates: CandidateList, words: WordFacts) -> Float64:
        """The penalty of each candidate: float64[k]."""
        return self.of_counts(list_violations(candidates, words).counts(self.weights))

    def of_counts(self, counts: NDArray[np.int32]) -> Float64:
        """The same by how often each candidate has each kind of `weights`: int32[k, kinds]."""
        # Not by BLAS, whose sums depend on the number of threads.
        return np.asarray((counts * np.array(list(self.weights.values()))).sum(axis=1))

    def to_dict(self) -> dict[str, float]:
        """JSON values."""
        return dict(self.weights)

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> Penalties:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        for kind in stored_table(data, "penalties"):
            if kind not in KINDS:
                raise ValueError(f"a penalty of {kind!r}, expected one of {', '.join(KINDS)}")
        return cls(stored_numbers(data, "penalties", positive=True))


def tune_penalties(
    gold: Sequence[Sentence],
    lists: Sequence[CandidateList],
    plain: Sequence[Float64],
    score: Callable[[Sentence, CandidateList], Float64],
) -> Penalties:
    """The penalty, one for all kinds, with the fewest violations that costs no accuracy.

    gold, lists, plain: aligned; sentences that the reranker did not learn from, their completed
    lists, and the final scores without penalties, float64[k].  score: gives these of a list that
    repaired trees have come to.  Only such kinds are penalised as the trees chosen without
    penalties have at least OFTENER times as often as the gold trees.  Of GRID the value counts
    that leaves the fewest violations in the chosen trees, the smallest of equals, among those with
    which not fewer words have the right head and label than without penalties, up to one standard
    error of the difference, sentences being independent (the rule of one standard error: Breiman et
    al. 1984, section 3.4.3).  No penalties where none leaves fewer violations.
    """
    if not len(gold) == len(lists) == len(plain):
        raise ValueError(f"{len(gold)} sentences, {len(lists)} lists, {len(plain)} scores")
    given = list(zip(gold, lists, plain, strict=True))
    in_gold, chosen = count_violations(gold), count_violations(_chosen(given))
    kinds = [kind for kind, count in chosen.items() if count >= OFTENER * in_gold.get(kind, 0)]
    if not kinds:
        return Penalties()
    unit = mean_deviation(plain)
    broken, gain, squares = (np.zeros(len(GRID)) for _ in range(3))
    for sentence, trees, scores in given:
        words = word_facts(sentence)
        longer, repairs = repaired_list(trees, scores, words, kinds)
        final = score(sentence, longer) if repairs else scores
        counts, right = count_broken(longer, words, kinds), _right(sentence, longer)
        before = _right(sentence, trees)[int(scores.argmax())]
        for at, weight in enumerate(GRID):
            row = int((final - weight * unit * counts).argmax())
            broken[at] += counts[row]
            gain[at] += right[row] - before
            squares[at] += (right[row] - before) ** 2
    fewer = broken < sum(chosen[kind] for kind in kinds)
    sound = np.flatnonzero(fewer & (gain >= -np.sqrt(squares))).tolist()
    if not sound:
        return Penalties()
    place = min(sound, key=broken.__getitem__)  # of equals the smallest
    return Penalties(dict.fromkeys(kinds, GRID[place] * unit))


def _chosen(given: Iterable[tuple[Sentence, CandidateList, Float64]]) -> Iterator[Sentence]:
    """The sentences with the trees of the best scores."""
    for sentence, trees, scores in given:
        row = int(scores.argmax())
        yield sentence.with_tree(trees.heads[row], trees.deprels(row))


def _right(gold: Sentence, candidates: CandidateList) -> NDArray[np.int64]:
    """Words with the right head and label of each candidate: int64[k]."""
    labels = candidates.inventory.encode(gold.deprels, add=False)
    return ((candidates.heads == gold.heads) & (candidates.labels == labels)).sum(axis=1)
