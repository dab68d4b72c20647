"""Decisions in stages: quick parsers first, all others where these are not sure (see `cascade`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.ensemble.merging import MergedSource, Proposed
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.reranker.cascade import EXACT, NO_RISK, Cascade, Quick, Speed, breaks
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.model import Reranker
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import KINDS

BATCH = 128
"""Sentences that are decided about together, at most."""


@dataclass(slots=True)
class Staged:
    """Decides about sentences with the parsers of a reranker.

    source: the parsers, in the order in which the reranker learnt from them.  k: length of lists.
    speed: another one than the exact needs a reranker with a cascade, and its quick parsers.
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
        if self.speed == EXACT:
            return self._by_all(sentences, self.source.proposed(sentences, k=self.k))
        if cascade is None:
            raise ValueError(f"speed is {self.speed!r}, but the reranker has no cascade")
        names = [source.names for source in self.source.sources]
        quick = [i for i, own in enumerate(names) if set(own) <= set(cascade.quick)]
        others = [i for i in range(len(names)) if i not in quick]
        proposed = self.source.proposed(sentences, k=self.k, places=quick)
        lists = self.source.joined(sentences, proposed, k=self.k)
        found: list[Decision | None] = list(self._left(cascade, sentences, lists))
        unsure = [i for i, decision in enumerate(found) if decision is None]
        self.left += len(found) - len(unsure)
        if unsure:
            rest = [sentences[i] for i in unsure]
            again = {place: [own[i] for i in unsure] for place, own in proposed.items()}
            more = self.source.proposed(rest, k=self.k, places=others)
            for i, decision in zip(unsure, self._by_all(rest, {**again, **more}), strict=True):
                found[i] = decision
        return [decision for decision in found if decision is not None]

    def _left(
        self, cascade: Cascade, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> Iterator[Decision | None]:
        """What the quick parsers decide; None where the others are to be asked."""
        limit = cascade.limits[self.speed]
        kinds = KINDS if self.well_formed else tuple(self.reranker.penalties.weights)
        choices = [cascade.choose(trees) for trees in lists]
        given = zip(sentences, lists, choices, cascade.risks(choices).tolist(), strict=True)
        for sentence, trees, choice, risk in given:
            safe = limit > NO_RISK and risk <= limit
            if safe and not breaks(sentence, trees, choice.row, kinds):
                yield _decision(trees, choice)
            else:
                yield None

    def _by_all(self, sentences: Sequence[Sentence], proposed: Proposed) -> list[Decision]:
        lists = self.source.joined(sentences, proposed, k=self.k)
        pairs = zip(sentences, lists, strict=True)
        return [
            decision
            for _, decision in self.reranker.decisions(
                pairs, n_threads=self.n_threads, well_formed=self.well_formed
            )
        ]


def _decision(trees: CandidateList, choice: Quick) -> Decision:
    alone = np.arange(len(trees)) == choice.row  # of equal totals the same one
    return Decision(trees, choice.totals, alone)
