"""What trained parsers have in common that make lists and score trees on several threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import (
    MAX_K,
    CandidateList,
    LabelInventory,
    check_aligned,
    in_batches,
)
from tk_spacy.kbest.long_sentences import list_cut, parse_cut, score_cut
from tk_spacy.parsers.base import StoredParser
from tk_spacy.parsers.flat_trees import padded_trees
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32


class ListingParser(StoredParser):
    """A stored parser that parses, proposes k-best trees, and scores any.

    Sentences too long to be searched whole are parsed in pieces, see `long_sentences`.
    """

    __slots__ = ()

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """The best tree of each sentence: heads int32[n], and DEPREL values."""
        return parse_cut(sentences, lambda pieces: self._parse(pieces, n_threads), self.labels)

    @abstractmethod
    def _parse(
        self, sentences: Iterable[Sentence], n_threads: int | None
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        """As `parse`, of sentences that are short enough."""

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        n_threads: int | None = None,
    ) -> Iterator[CandidateList]:
        """The list of each sentence: at most k distinct trees, best first.

        inventory: where their labels get ids.  Raises TypeError or ValueError for another k than
        1 to MAX_K.
        """
        k = checked_k(k)
        return list_cut(sentences, lambda pieces: self._kbest(pieces, k, inventory, n_threads), k)

    @abstractmethod
    def _kbest(
        self,
        sentences: Iterable[Sentence],
        k: int,
        inventory: LabelInventory,
        n_threads: int | None,
    ) -> Generator[CandidateList, None, None]:
        """As `kbest`, of sentences that are short enough."""

    def score(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        *,
        n_threads: int | None = None,
    ) -> list[NDArray[np.float64]]:
        """The parser's own score of any tree: float64[k] for each list.

        NaN for a tree with a label that the parser does not know.
        """
        check_aligned(sentences, lists)
        return score_cut(
            sentences, lists, lambda pieces, trees: self._score(pieces, trees, n_threads)
        )

    def _score(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        n_threads: int | None,
    ) -> list[NDArray[np.float64]]:
        out: list[NDArray[np.float64]] = []
        pairs = zip(sentences, lists, strict=True)
        for batch in in_batches(pairs, lambda pair: pair[1].heads.size):
            out += self._score_batch([s for s, _ in batch], [t for _, t in batch], n_threads)
        return out

    @abstractmethod
    def _score_batch(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        n_threads: int | None,
    ) -> list[NDArray[np.float64]]:
        """As `score`, of some sentences that are short enough."""


class InventoryIds:
    """Takes a parser's ids of labels to those of an inventory, which gets labels as they come.

    names: the parser's labels by id.
    """

    def __init__(self, names: Sequence[str], inventory: LabelInventory) -> None:
        self._names, self._inventory = names, inventory
        self._table = np.array([inventory.get(name) for name in names], dtype=np.int32)
        self._is_whole = bool((self._table >= 0).all())

    def __call__(self, labels: Int32, ends: Sequence[int] | NDArray[np.intp] = ()) -> Int32:
        """The ids in the inventory, of the same shape.

        ends: of flat lists, but for the last; labels get ids list by list.
        """
        if not self._is_whole:
            for own in np.split(labels, ends) if len(ends) else [labels]:
                self._add(own)
        return self._table[labels]

    def _add(self, labels: Int32) -> None:
        table = self._table
        for i in np.unique(labels[table[labels] < 0]).tolist():
            table[i] = self._inventory.add(self._names[i])
        self._is_whole = bool((table >= 0).all())


def checked_k(k: Any) -> int:
    """The length of lists as an int.  Raises TypeError or ValueError for another than 1..MAX_K."""
    if not isinstance(k, int | np.integer):
        raise TypeError(f"k is {k!r}, expected a whole number")
    if not 1 <= k <= MAX_K:
        raise ValueError(f"k is {k}, expected from 1 to {MAX_K}")
    return int(k)


def flat_trees(trees: Iterable[tuple[Int32, Int32]]) -> tuple[Int32, Int32]:
    """Heads and labels of trees one after the other, with a cell for the root before each tree.

    trees: for each list int32[k, n] heads and labels.  Returns two int32[cells]; the root's head is
    0 and its label -1.
    """
    heads, labels = zip(*trees, strict=True)
    return padded_trees(
        np.concatenate([own.ravel() for own in heads]),
        np.concatenate([own.ravel() for own in labels]),
        np.array([len(own) for own in heads], dtype=np.intp),
        np.array([own.shape[1] for own in heads], dtype=np.intp),
    )


def owners_of(counts: Iterable[int]) -> Int32:
    """Where the trees of each list begin among all, and their number: int32[lists + 1]."""
    return np.concatenate([[0], np.cumsum(list(counts))]).astype(np.int32)
