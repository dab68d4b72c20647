"""What a distilled parser learns from: sentences, and shares of their arcs.

Source: Kuncoro et al., "Distilling an ensemble of greedy dependency parsers into one MST parser"
(EMNLP 2016): where the parsers of an ensemble disagree, a wrong arc that several of them have costs
less, as the sentence itself leaves doubt.  Ours differs: the arcs' probabilities are those of a
reranker's final scores, not votes, and they are mixed with the gold arcs as the targets of a cross
entropy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tk_spacy.ensemble.combiner.arcs import ListArcs, softmax
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64

LEAST_SHARE = 1e-3
"""Arcs with smaller shares are left out."""


def list_shares(candidates: CandidateList, final: Float64, temperature: float) -> ArcShares:
    """The shares of a list's arcs under the softmax of the final scores, float64[k].

    temperature: that the scores are divided by, positive; the lower, the more the best tree counts.
    """
    arcs = ListArcs.of(candidates)
    ((shares,), _) = arcs.shares(softmax(final, temperature)[None])
    # The best arc of a word is kept however little that is.
    best = np.zeros(len(candidates.heads[0]))
    np.maximum.at(best, arcs.words, shares)
    kept = (shares >= LEAST_SHARE) | (shares == best[arcs.words])
    words, shares = arcs.words[kept], shares[kept]
    shares /= np.bincount(words, shares)[words]
    names = candidates.inventory.decode(arcs.labels[kept].tolist())
    return ArcShares(words, arcs.heads[kept], tuple(names), shares)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Sentences with trees, and the shares of each one's arcs."""

    sentences: Sequence[Sentence]
    shares: Sequence[ArcShares]

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(map(len, self.sentences))

    @classmethod
    def of_trees(cls, sentences: Sequence[Sentence]) -> Self:
        """From trees alone."""
        return cls(sentences, [ArcShares.of_tree(sentence) for sentence in sentences])

    def mixed(self, said: Sequence[ArcShares | None], weight: float) -> Self:
        """With a share `weight`, 0 to 1, of what somebody says of each sentence, None for nothing.

        The rest stays what it was.
        """
        pairs = zip(self.shares, said, strict=True)
        return type(self)(
            self.sentences,
            [own if other is None else other.mixed(own, weight) for own, other in pairs],
        )

    def joined(self, other: Self) -> Self:
        """Both, one after the other."""
        return type(self)([*self.sentences, *other.sentences], [*self.shares, *other.shares])

    def digest(self) -> str:
        """SHA-256 of the shares."""
        found = hashlib.sha256()
        for shares in self.shares:
            found.update(shares.to_text().encode())
            found.update(b"\n")
        return found.hexdigest()
