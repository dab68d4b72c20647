"""Decisions in stages: quick parsers first, all others where these are not sure (see `cascade`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.ensemble.merging import MergedSource, Proposed
from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.kbest.well_formed import best_formed
from tk_spacy.reranker.cascade import NO_RISK, Quick, breaks
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.speeds import EXACT, Speed
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import KINDS

BATCH = 128
"""Sentences that are decided about together, at most."""


@dataclass(slots=True)
class Staged:
    """Decides about sentences with the parsers of a reranker.

    source: the parsers, in the order in which the reranker learnt from them.  k: length of lists.
    speed: another one than the exact needs a reranker with a cascade, and its quick parsers and
        others among the sources; else all is exact.
    left, asked: sentences that were left to the quick parsers, and all, so far.
    """

    reranker: Reranker
    source: MergedSource
    k: int
    speed: Speed = EXACT
    well_formed: bool = False
    n_threads: int | None = None
    left: int = 0
    asked: int = 0

    def decisions(self, sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, Decision]]:
        """Each sentence with what is decided about it."""
        for batch in in_batches(sentences, lambda s: self.k * len(s), most=BATCH):
            yield from zip(batch, self.decide(batch), strict=True)

    def decide(self, sentences: Sequence[Sentence]) -> list[Decision]:
        """The decisions about a batch."""
        self.asked += len(sentences)
        cascade = self.reranker.cascade
        names = [source.names for source in self.source.sources]
        quick = [] if self.speed == EXACT or cascade is None else cascade.places(names)
        if not quick:
            return self._by_all(sentences, self.source.proposed(sentences, k=self.k))
        others = [i for i in range(len(names)) if i not in quick]
        proposed = self.source.proposed(sentences, k=self.k, places=quick)
        lists = self.source.joined(sentences, proposed, k=self.k)
        found = left_to_quick(
            self.reranker, sentences, lists, speed=self.speed, well_formed=self.well_formed
        )
        unsure = [i for i, decision in enumerate(found) if decision is None]
        self.left += len(found) - len(unsure)
        if unsure:
            rest = [sentences[i] for i in unsure]
            again = {place: [own[i] for i in unsure] for place, own in proposed.items()}
            more = self.source.proposed(rest, k=self.k, places=others)
            for i, decision in zip(unsure, self._by_all(rest, {**again, **more}), strict=True):
                found[i] = decision
        return [decision for decision in found if decision is not None]

    def _by_all(self, sentences: Sequence[Sentence], proposed: Proposed) -> list[Decision]:
        lists = self.source.joined(sentences, proposed, k=self.k)
        pairs = zip(sentences, lists, strict=True)
        return [
            decision
            for _, decision in self.reranker.decisions(
                pairs, n_threads=self.n_threads, well_formed=self.well_formed
            )
        ]


def left_to_quick(
    reranker: Reranker,
    sentences: Sequence[Sentence],
    lists: Sequence[CandidateList],
    *,
    speed: Speed,
    well_formed: bool = False,
) -> list[Decision | None]:
    """What the quick parsers of a reranker's cascade decide; None where others are to be asked.

    lists: that they made together.  speed: another one than the exact.
    Final scores of such a decision are the sums that chose (see `quick_choice`).
    Raises ValueError for a reranker without cascade.
    """
    cascade = reranker.cascade
    if cascade is None:
        raise ValueError(f"speed is {speed!r}, but the reranker has no cascade")
    limit = cascade.limits[speed]
    kinds = KINDS if well_formed else tuple(reranker.penalties.weights)
    choices = [cascade.choose(trees) for trees in lists]
    given = zip(sentences, lists, choices, cascade.risks(choices).tolist(), strict=True)
    return [
        _decision(sentence, trees, choice, well_formed=well_formed)
        if NO_RISK < limit >= risk and not breaks(sentence, trees, choice.row, kinds)
        else None
        for sentence, trees, choice, risk in given
    ]


def _decision(
    sentence: Sentence, trees: CandidateList, choice: Quick, *, well_formed: bool
) -> Decision:
    eligible = np.ones(len(trees), dtype=np.bool_)
    if well_formed:  # the choice is: it breaks nothing
        eligible = best_formed(trees, word_facts(sentence))
    return Decision(trees, choice.totals, eligible)
