"""The biaffine parser as a source of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.biaffine.kind import KIND
from tk_spacy.parsers.biaffine.parser import BiaffineParser, RecentScores
from tk_spacy.treebank.conllu import Sentence


class BiaffineSource:
    """A ParserSource whose lists a biaffine parser makes, on one thread.

    parser: trained.  inventory: shared table of labels.  name: of its scores.
    recent: what it remembers of sentences; may be shared with who asks the parser for trees.
    """

    in_company = False

    def __init__(
        self,
        parser: BiaffineParser,
        *,
        inventory: LabelInventory | None = None,
        name: str = KIND.name,
    ) -> None:
        self.parser = parser
        self.inventory = LabelInventory() if inventory is None else inventory
        self.names = (name,)
        self.recent = RecentScores()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.columns

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence, in order."""
        for trees in self.parser.kbest(
            sentences, k=k, inventory=self.inventory, recent=self.recent
        ):
            yield replace(trees, sources=self.names)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The parser's score of every tree: float64[k, 1] for each list, NaN where it has none."""
        found = self.parser.score(sentences, lists, recent=self.recent)
        return [scores[:, None] for scores in found]
