"""The projective parser as a source of candidates."""

from __future__ import annotations

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.listing import ListingSource
from tk_spacy.parsers.projective.kind import KIND
from tk_spacy.parsers.projective.parser import ProjectiveParser


class ProjectiveSource(ListingSource[ProjectiveParser]):
    """A ParserSource whose lists a projective parser makes; see `ListingSource`."""

    def __init__(
        self,
        parser: ProjectiveParser,
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
