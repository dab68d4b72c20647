"""The transition parser as a source of candidates."""

from __future__ import annotations

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.listing import ListingSource
from tk_spacy.parsers.transition.kind import KIND
from tk_spacy.parsers.transition.parser import TransitionParser


class TransitionSource(ListingSource[TransitionParser]):
    """A ParserSource whose lists a transition parser makes; see `ListingSource`."""

    def __init__(
        self,
        parser: TransitionParser,
        *,
        inventory: LabelInventory | None = None,
        n_threads: int | None = None,
        name: str = KIND.name,
    ) -> None:
        super().__init__(
            parser, labels=parser.labels, inventory=inventory, n_threads=n_threads, name=name
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.columns
