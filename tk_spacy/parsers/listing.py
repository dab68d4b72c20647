"""What sources have in common whose parsers make lists and score trees on several threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.treebank.conllu import Sentence

P = TypeVar("P", bound=Any)


class ListingSource(Generic[P]):
    """A ParserSource whose lists the parser itself makes.

    parser: trained; it has `kbest` and `score`.  labels: that it can give.
    inventory: shared table of labels.  n_threads: None for all cores.  name: of its scores.
    in_company: see `ParserSource`.
    """

    in_company = False

    def __init__(
        self,
        parser: P,
        *,
        labels: Iterable[str],
        inventory: LabelInventory | None,
        n_threads: int | None,
        name: str,
    ) -> None:
        self.parser = parser
        self.inventory = LabelInventory() if inventory is None else inventory
        self.n_threads = n_threads
        self.names = (name,)
        # Now, so that the order of ids does not depend on which of several sources is asked first.
        self.inventory.encode(labels)

    def lists(self, sentences: Sequence[Sentence], k: int) -> Iterator[CandidateList]:
        """The parser's own lists."""
        lists: Iterator[CandidateList] = self.parser.kbest(
            sentences, k=k, inventory=self.inventory, n_threads=self.n_threads
        )
        return lists

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence, in order."""
        for trees in self.lists(sentences, k):
            yield trees.with_sources(self.names)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The parser's score of every tree: float64[k, 1] for each list, NaN where it has none."""
        scores = self.parser.score(sentences, lists, n_threads=self.n_threads)
        return [row[:, None] for row in scores]
