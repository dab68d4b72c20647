"""A cascade: sentences that quick parsers are sure of are left to them, unseen by all others.

Most of the time goes into trees of sentences that are easy.  The quick parsers propose first, and
the sum of their scores chooses.  How likely it is that the whole system would do better or worse,
the risk, is told by a logistic model of what speaks for the choice (`quick_choice`); where it is
low, and the tree breaks no constraint that the system penalises, the choice stands.  Else all
parsers propose, and the reranker decides as ever.

How low is low, is found on lists of training sentences by parsers and rerankers that did not learn
from these, and checked on dev, for a loss of accuracy that one may choose.

Source of the idea: Weiss and Taskar 2010, "Structured Prediction Cascades" (what passes a cheap
model at a bounded loss).  Ours differs: whole sentences leave early, by a model of what the rest
would change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.reranker.calibration import Logistic
from tk_spacy.reranker.quick_choice import FEATURES, quick_choice
from tk_spacy.reranker.speeds import Speed
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import violations
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.stored_values import (
    check_same,
    shown,
    stored_entry,
    stored_numbers,
    stored_table,
    stored_texts,
)

MOST_LOST: Mapping[Speed, float] = {"balanced": 0.05, "fast": 0.2}
"""LAS that a speed may cost, in points, the least first."""
NO_RISK = 0.0
"""The limit of a speed at which nothing can be left."""


class Quick(NamedTuple):
    """What the quick parsers choose from a list.

    row: of the tree.  totals: float64[k], what chose it.  features: float64[len(FEATURES)].
    """

    row: int
    totals: Float64
    features: Float64


class Seen(NamedTuple):
    """A sentence that neither parsers nor reranker learnt from.

    gold: with the right tree.  candidates: with the scores of the quick parsers, at least; of dev,
    what these propose alone, so that what is left of it is what a limit leaves.
    final: int, the words of which the whole system gets head and label right.
    """

    gold: Sentence
    candidates: CandidateList
    final: int


def quick_places(quick: Sequence[str], sources: Sequence[Sequence[str]]) -> list[int]:
    """Where quick parsers are among sources, each given by the names of its scores."""
    return [i for i, names in enumerate(sources) if {*names} <= {*quick}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Which sentences are left to quick parsers.

    quick: the parsers, by the sources of their scores.  scales: of each of these, by how much its
    best tree leads the next in the mean, positive (the worst ones may be anywhere).  model: of the
    risk.  limits: for each speed but the exact one, the risk up to which a sentence is left to
    them; NO_RISK for none.
    """

    quick: tuple[str, ...]
    scales: Mapping[str, float]
    model: Logistic
    limits: Mapping[Speed, float]

    # Use

    def places(self, sources: Sequence[Sequence[str]]) -> list[int]:
        """Where the quick parsers are among sources, given by the names of their scores.

        Empty where one of them is missing, or where there are no others.
        """
        found = quick_places(self.quick, sources)
        there = {name for i in found for name in sources[i]}
        return found if there == {*self.quick} and len(found) < len(sources) else []

    def choose(self, candidates: CandidateList) -> Quick:
        """What the quick parsers choose from a list that has their scores."""
        columns = [candidates.sources.index(name) for name in self.quick]
        own = {candidates.sources[0]: candidates.base, **candidates.bases}
        rows = [own[name] for name in self.quick if name in own]
        scales = np.array([self.scales[name] for name in self.quick])
        found = quick_choice(
            candidates.heads,
            candidates.labels,
            np.ascontiguousarray(candidates.scores[:, columns]),
            scales,
            np.array(rows, dtype=np.int32),
        )
        return Quick(*found)

    def risks(self, choices: Sequence[Quick]) -> Float64:
        """How likely the whole system gets more or fewer words right: float64 of each choice."""
        features = np.array([choice.features for choice in choices]).reshape(-1, len(FEATURES))
        return self.model.probabilities(features)

    # Training

    @classmethod
    def fit(
        cls,
        train: Sequence[Seen],
        dev: Sequence[Seen],
        quick: Sequence[str],
        *,
        kinds: Sequence[str] = (),
    ) -> Cascade | None:
        """Learn what a choice of quick parsers risks, and what may be left to them.

        train, dev: whose parsers did not learn from them; those of train may be worse than the
            model's, and these alone are learnt from.  quick: sources of their lists.
            Without dev train alone sets the limits.
        kinds: of constraints that no tree breaks that is left.
        A limit is the highest up to which no fewer sentences of train lose more than MOST_LOST
        among them; it is lowered where those of dev would.  None where nothing can be learnt: the
        quick parsers are as good as the whole system on each sentence.  It needs scikit-learn.
        """
        scales = {name: _lead(name, train) for name in quick}
        made = cls(quick=tuple(quick), scales=scales, model=Logistic({}, 0.0), limits={})
        of_train, of_dev = (_outcomes(made, seen, kinds) for seen in (train, dev))
        changed = of_train.lost != 0
        if not changed.any():
            return None
        model = Logistic.fit(FEATURES, of_train.features, changed)
        limits: dict[Speed, float] = {}
        before = NO_RISK
        for speed, most in MOST_LOST.items():
            limit = of_train.limit(model, most, within=1.0)
            # What may lose more leaves no less.
            before = limits[speed] = max(before, of_dev.limit(model, most, within=limit))
        return cls(quick=made.quick, scales=scales, model=model, limits=limits)

    # Storage

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "quick": list(self.quick),
            "scales": dict(self.scales),
            "risk": self.model.to_dict(),
            "limits": dict(self.limits),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cascade:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        what = "cascade"
        quick = stored_texts(stored_entry(data, "quick", what), f"{what}.quick")
        scales = stored_numbers(stored_entry(data, "scales", what), f"{what}.scales", positive=True)
        if not quick or len(set(quick)) < len(quick):
            raise ValueError(f"{what}.quick is {shown(quick)}, expected some names, each once")
        check_same(scales, quick, f"{what}.scales")
        limits = stored_numbers(stored_entry(data, "limits", what), f"{what}.limits")
        check_same(limits, MOST_LOST, f"{what}.limits")
        for speed, limit in limits.items():
            if not 0 <= limit <= 1:
                raise ValueError(f"{speed!r} of {what}.limits is {limit}, expected 0 to 1")
        ordered = [limits[speed] for speed in MOST_LOST]
        if ordered != sorted(ordered):  # what may lose more leaves no less
            raise ValueError(f"{what}.limits are {shown(limits)}, expected them to rise")
        risk = stored_table(stored_entry(data, "risk", what), f"{what}.risk")
        return cls(
            quick=tuple(quick),
            scales=scales,
            model=Logistic.from_dict(risk, FEATURES, f"{what}.risk"),
            limits=cast(Mapping[Speed, float], limits),
        )


def right_words(gold: Sentence, candidates: CandidateList, row: int) -> int:
    """Words with the right head and label in a candidate."""
    labels = candidates.inventory.encode(gold.deprels, add=False)
    same = (candidates.heads[row] == gold.heads) & (candidates.labels[row] == labels)
    return int(same.sum())


def _lead(name: str, seen: Sequence[Seen]) -> float:
    """By how much a source's best tree leads the next, in the mean; 1 where that is 0."""
    leads = []
    for item in seen:
        column = item.candidates.scores[:, item.candidates.sources.index(name)]
        best = np.sort(column[np.isfinite(column)])[-2:]
        leads += np.diff(best).tolist()
    mean = float(np.mean(leads)) if leads else 0.0
    return mean if 0 < mean < np.inf else 1.0


class _Outcomes(NamedTuple):
    """What leaving sentences to quick parsers comes to.

    features: float64[m, d] of the choices.  lost: int64[m], words that the whole system gets right
    and the quick choice does not, less the reverse.  open: bool[m], what may be left.
    words: of all sentences.
    """

    features: Float64
    lost: NDArray[np.int64]
    open: NDArray[np.bool_]
    words: int

    def limit(self, model: Logistic, most: float, *, within: float) -> float:
        """The highest risk up to which sentences never lose more than so many points of LAS.

        Never: not with fewer of them, either, so that chance does not let a bad stretch pass.
        within: the limit at most.
        """
        risks = model.probabilities(self.features)
        order = np.argsort(risks, kind="stable")
        order = order[self.open[order] & (risks[order] <= within)]
        bad = np.flatnonzero(np.cumsum(self.lost[order]) > most * self.words / 100)
        if not len(bad):
            return within
        above = float(risks[order[bad[0]]])
        below = risks[order[risks[order] < above]]  # those of equal risk stay together
        if not len(below):
            return NO_RISK
        # Between the two, as a sentence's risk may differ in its last digits the next time.
        middle = (float(below[-1]) + above) / 2
        return middle if middle < above else float(below[-1])


def _outcomes(cascade: Cascade, seen: Sequence[Seen], kinds: Sequence[str]) -> _Outcomes:
    choices = [cascade.choose(item.candidates) for item in seen]
    pairs = list(zip(seen, choices, strict=True))
    lost = [item.final - right_words(item.gold, item.candidates, c.row) for item, c in pairs]
    broken = [breaks(item.gold, item.candidates, c.row, kinds) for item, c in pairs]
    return _Outcomes(
        np.array([choice.features for choice in choices]).reshape(-1, len(FEATURES)),
        np.array(lost, dtype=np.int64),
        ~np.array(broken, dtype=np.bool_),
        sum(len(item.gold) for item in seen),
    )


def breaks(sentence: Sentence, candidates: CandidateList, row: int, kinds: Sequence[str]) -> bool:
    """Whether a candidate breaks a constraint of these kinds."""
    if not kinds:
        return False
    tree = slice(row, row + 1)
    heads, labels = candidates.heads[tree], candidates.labels[tree]
    names = candidates.inventory.names
    return bool(violations(heads, labels, names, word_facts(sentence)).counts(kinds).any())
