"""Shares of arcs in the place of trees, as the loss of a batch reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.arc_shares import ArcShares

Int = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What speaks for the arcs of some sentences, whose words stand one after the other.

    n_words: of all sentences.
    words: int[p], from 0, and heads: int[p], places in the sentence: pairs, each of them once.
    pairs: int[a], the pair of each arc.  labels: int[a], ids.  shares: float32[a], which sum to 1
    for each word.
    """

    n_words: int
    words: Int
    heads: Int
    pairs: Int
    labels: Int
    shares: NDArray[np.float32]

    @classmethod
    def of(cls, arcs: ArcShares, n_words: int, ids: Mapping[str, int]) -> Self:
        """Of one sentence; ids: of the labels, all of its relations among them."""
        keys = arcs.words.astype(np.int64) * (n_words + 1) + arcs.heads
        distinct, pairs = np.unique(keys, return_inverse=True)
        words, heads = np.divmod(distinct, n_words + 1)
        labels = np.array([ids[name] for name in arcs.relations], dtype=np.int64)
        return cls(n_words, words, heads, pairs, labels, arcs.shares.astype(np.float32))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Those of sentences one after the other."""
        words = np.cumsum([0, *(part.n_words for part in parts)])
        pairs = np.cumsum([0, *(len(part.words) for part in parts)])
        return cls(
            int(words[-1]),
            np.concatenate([part.words + start for part, start in zip(parts, words, strict=False)]),
            np.concatenate([part.heads for part in parts]),
            np.concatenate([part.pairs + start for part, start in zip(parts, pairs, strict=False)]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.shares for part in parts]),
        )

    def of_labels(self, n_labels: int) -> NDArray[np.float32]:
        """The share of each label of each pair: float32[p, n_labels]."""
        out = np.zeros((len(self.words), n_labels), dtype=np.float32)
        np.add.at(out, (self.pairs, self.labels), self.shares)
        return out
