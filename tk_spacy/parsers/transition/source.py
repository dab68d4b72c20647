"""The transition parser as a source of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.transition.kind import KIND
from tk_spacy.parsers.transition.parser import TransitionParser
from tk_spacy.treebank.conllu import Sentence


class TransitionSource:
    """A ParserSource whose lists a transition parser makes.

    parser: trained.  inventory: shared table of labels.  n_threads: None for all cores.
    name: of its scores.
    """

    in_company = False

    def __init__(
        self,
        parser: TransitionParser,
        *,
        inventory: LabelInventory | None = None,
        n_threads: int | None = None,
        name: str = KIND.name,
    ) -> None:
        self.parser = parser
        self.inventory = LabelInventory() if inventory is None else inventory
        self.n_threads = n_threads
        self.names = (name,)
        # Now, so that the order of ids does not depend on which of several sources is asked first.
        self.inventory.encode(parser.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.columns

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence, in order."""
        lists = self.parser.kbest(
            sentences, k=k, inventory=self.inventory, n_threads=self.n_threads
        )
        for trees in lists:
            yield replace(trees, sources=self.names)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The parser's score of every tree: float64[k, 1] for each list, NaN where it has none."""
        scores = self.parser.score(sentences, lists, n_threads=self.n_threads)
        return [row[:, None] for row in scores]
