"""The sampling parser as a source of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.sampling.parser import SamplingParser
from tk_spacy.treebank import Sentence


class SamplingSource:
    """A CandidateSource whose lists a sampling parser makes.

    parser: trained.  inventory: shared table of labels.  n_threads: None for all cores.
    """

    name = "sampling"

    def __init__(
        self,
        parser: SamplingParser,
        *,
        inventory: LabelInventory | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.parser = parser
        self.inventory = LabelInventory() if inventory is None else inventory
        self.n_threads = n_threads

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of at most k trees for each sentence, in order."""
        return self.parser.kbest(sentences, k=k, inventory=self.inventory, n_threads=self.n_threads)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The parser's score of every tree: float64[k] for each list, NaN where it has none."""
        return self.parser.score(sentences, lists, n_threads=self.n_threads)
