"""The biaffine parser as a source of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.long_sentences import cut
from tk_spacy.parsers.biaffine.kind import KIND
from tk_spacy.parsers.biaffine.parser import BiaffineParser, RecentScores, SentenceScores
from tk_spacy.parsers.listing import ListingSource
from tk_spacy.treebank.conllu import Sentence

Known = Sequence[tuple[Sentence, SentenceScores]]


class BiaffineSource(ListingSource[BiaffineParser]):
    """A ParserSource whose lists a biaffine parser makes, on one thread.

    parser: trained.  inventory: shared table of labels.  name: of its scores.
    recent: what it remembers of sentences; may be shared with who asks the parser for trees.
    """

    def __init__(
        self,
        parser: BiaffineParser,
        *,
        inventory: LabelInventory | None = None,
        name: str = KIND.name,
    ) -> None:
        super().__init__(
            parser, labels=parser.labels, inventory=inventory, n_threads=None, name=name
        )
        self.recent = RecentScores()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.columns

    @property
    def file_parser(self) -> BiaffineParser:
        """What parses files, each sentence once, so that nothing need be remembered of it."""
        return self.parser

    def forget(self) -> None:
        """Forget all sentences: the last digits of scores depend on what was read beside them."""
        self.recent.clear()

    def recall(self, sentences: Sequence[Sentence]) -> Known:
        """What it remembers of sentences, or of their pieces, as plain data."""
        pieces = [piece for sentence in sentences for piece in cut(sentence).pieces]
        return [(piece, scores.alone()) for piece, scores in self.recent.known(pieces)]

    def remember(self, known: Known) -> None:
        """Remember what `recall` told, and nothing else, in a memory of its own."""
        self.recent = RecentScores()
        for sentence, scores in known:
            self.recent.keep(sentence, scores)

    def lists(self, sentences: Sequence[Sentence], k: int) -> Iterator[CandidateList]:
        """The parser's own lists."""
        return self.parser.kbest(sentences, k=k, inventory=self.inventory, recent=self.recent)

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The parser's score of every tree: float64[k, 1] for each list, NaN where it has none."""
        found = self.parser.score(sentences, lists, recent=self.recent)
        return [scores[:, None] for scores in found]

    def arc_scores(self, sentences: Sequence[Sentence]) -> list[NDArray[np.float64]]:
        """How likely each arc of the sentences' own trees is; see `kbest.sources.ArcScorer`."""
        return self.parser.arc_scores(sentences, recent=self.recent)
