"""Shares of arcs: how probable each head and relation of a word is, as a parser can learn from it.

A tree says of each word one head.  Shares say how much speaks for each of several, and what a
parser learns from them is how sure to be, not only what is right (Hinton, Vinyals, Dean, 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.spanning import max_spanning_tree
from tk_spacy.utils.array_types import Float64, Int32

TOLERANCE = 1e-6
"""By how much the shares of a word may miss 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ArcShares:
    """The shares of a sentence's arcs; those of each word sum to 1.

    words: int32[a], from 0, in order.  heads: int32[a], 0..n, 0 for the root.  relations: of each
    arc its DEPREL.  shares: float64[a], positive.  No arc is there twice.
    """

    words: Int32
    heads: Int32
    relations: tuple[str, ...]
    shares: Float64

    @classmethod
    def of_tree(cls, sentence: Sentence) -> Self:
        """Those of a sentence's own tree: 1 for each of its arcs."""
        n = len(sentence)
        heads = np.asarray(sentence.heads, dtype=np.int32)
        return cls(np.arange(n, dtype=np.int32), heads, tuple(sentence.deprels), np.ones(n))

    def mixed(self, other: Self, weight: float) -> Self:
        """These shares times `weight`, and another's of the same sentence for the rest, 0 to 1."""
        total: dict[tuple[int, int, str], float] = {}
        for one, factor in ((self, weight), (other, 1.0 - weight)):
            arcs = zip(one.words.tolist(), one.heads.tolist(), one.relations, strict=True)
            for arc, share in zip(arcs, one.shares.tolist(), strict=True):
                total[arc] = total.get(arc, 0.0) + factor * share
        kept = sorted(arc for arc, share in total.items() if share > 0)
        words, heads, relations = zip(*kept, strict=True)
        return type(self)(
            np.array(words, dtype=np.int32),
            np.array(heads, dtype=np.int32),
            tuple(relations),
            np.array([total[arc] for arc in kept]),
        )

    def check(self, sentence: Sentence) -> None:
        """Raises ValueError for what are no shares of a sentence's words."""
        n = len(sentence)
        sizes = {len(self.words), len(self.heads), len(self.relations), len(self.shares)}
        if len(sizes) != 1:
            raise ValueError(f"words, heads, relations and shares have {sorted(sizes)} arcs")
        if self.words.min(initial=0) < 0 or self.words.max(initial=0) >= max(n, 1):
            raise ValueError(f"shares of words up to {self.words.max()}, expected {n} words")
        if self.heads.min(initial=0) < 0 or self.heads.max(initial=0) > n:
            raise ValueError(f"shares of heads up to {self.heads.max()}, expected 0 to {n}")
        sums = np.bincount(self.words, self.shares, minlength=n)
        if not (abs(sums - 1.0) < TOLERANCE).all():
            raise ValueError(f"the shares of a word sum to {sums[abs(sums - 1).argmax()]}, not 1")

    def likeliest_tree(self, sentence: Sentence) -> Sentence:
        """A sentence with the tree of which the most words are right by these shares.

        That is the maximum spanning tree of the shares, for each head the likeliest relation's.
        The sentence's own arcs count as nothing, but may be needed to make a tree.
        """
        n = len(sentence)
        best = np.full((n + 1, n + 1), -np.inf)
        relations: dict[tuple[int, int], str] = {}
        own = zip(sentence.heads.tolist(), sentence.deprels, strict=True)
        for word, (head, relation) in enumerate(own):
            best[head, word + 1] = 0.0
            relations[head, word] = relation
        arcs = zip(self.heads.tolist(), self.words.tolist(), self.relations, strict=True)
        for (head, word, relation), share in zip(arcs, self.shares.tolist(), strict=True):
            if share > best[head, word + 1]:
                best[head, word + 1] = share
                relations[head, word] = relation
        heads = max_spanning_tree(best)
        return sentence.with_tree(
            heads, [relations[head, word] for word, head in enumerate(heads.tolist())]
        )

    def to_text(self) -> str:
        """All of it in a line for each arc: the same text for the same shares."""
        arcs = zip(self.words.tolist(), self.heads.tolist(), self.relations, strict=True)
        return "".join(
            f"{word} {head} {relation} {share:.6f}\n"
            for (word, head, relation), share in zip(arcs, self.shares.tolist(), strict=True)
        )
