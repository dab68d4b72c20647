"""The sampling parser as a source of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.listing import ListingSource
from tk_spacy.parsers.sampling.kind import KIND
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.treebank.conllu import Sentence


class SamplingSource(ListingSource[SamplingParser]):
    """A ParserSource whose lists a sampling parser makes; see `ListingSource`."""

    def __init__(
        self,
        parser: SamplingParser,
        *,
        inventory: LabelInventory | None = None,
        n_threads: int | None = None,
        name: str = KIND.name,
    ) -> None:
        super().__init__(
            parser, labels=parser.schema.labels, inventory=inventory, n_threads=n_threads, name=name
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.schema.columns

    @property
    def file_parser(self) -> SamplingParser:
        """What parses files, for trees that no list is made for."""
        return self.parser

    def lists(self, sentences: Sequence[Sentence], k: int) -> Iterator[CandidateList]:
        """The parser's own lists, which depend on whether there are other parsers."""
        return self.parser.kbest(
            sentences,
            k=k,
            inventory=self.inventory,
            in_company=self.in_company,
            n_threads=self.n_threads,
        )
