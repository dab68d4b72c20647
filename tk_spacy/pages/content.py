"""What stands in a report's page: sections, and the blocks in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from markupsafe import Markup

from tk_spacy.pages.rendering import render
from tk_spacy.utils.tables import Table

GENERATOR = "tk-spacy"


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph."""

    kind: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table with its caption and notes."""

    kind: ClassVar[str] = "table"
    table: Table


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and what it shows in words; its numbers stand in a table on the same page."""

    title: str
    description: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts beside each other where there is room."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Beside:
    """Charts beside the table with their numbers, or above it where there is no room."""

    kind: ClassVar[str] = "beside"
    charts: Charts
    table: TableBlock


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """A tree as SVG, its title, and its width in pixels: wide ones stand below each other.

    told: its title for who does not see it.  aim: where that part begins which is to be seen first
    where there is not room for all, and its width, in pixels.
    """

    title: str
    svg: Markup
    width: int
    told: str
    aim: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence.

    mark: "asked" where the sentence is shown for its sake, "belongs" where it belongs to that.
    """

    form: str
    mark: str = ""

    @property
    def told(self) -> str:
        """The mark in words, for who does not see it."""
        return {"asked": "word in question", "belongs": "belongs to it"}.get(self.mark, "")


@dataclass(frozen=True, slots=True)
class Arc:
    """A word's arc in words.  verdict: "right", "wrong", "doubted", "" for gold; mark: its sign."""

    head: str
    deprel: str
    verdict: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class WordRow:
    """A word whose arcs differ, and its arc in each tree."""

    number: int
    form: str
    arcs: Sequence[Arc]


@dataclass(frozen=True, slots=True)
class ExampleBlock:
    """A sentence with its trees side by side, which may be left out, and the arcs that differ.

    trees: parts of them where `part` says so, `whole` the whole ones then, if these are drawn.
    """

    kind: ClassVar[str] = "example"
    title: str
    words: Sequence[Word]
    names: Sequence[str]
    rows: Sequence[WordRow]
    trees: Sequence[DrawnTree] = ()
    whole: Sequence[DrawnTree] = ()
    part: bool = False

    @property
    def drawn_whole(self) -> bool:
        """Whether the whole trees can be seen."""
        return bool(self.whole) if self.part else bool(self.trees)


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that are shown when their summary is opened.  name: to link to, empty for none."""

    kind: ClassVar[str] = "folded"
    summary: str
    blocks: Sequence[Block]
    name: str = ""


Block = Words | TableBlock | Charts | Beside | ExampleBlock | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page with a heading, to which the page's list of sections leads."""

    title: str
    blocks: Sequence[Block] = field(default=())

    @property
    def name(self) -> str:
        """Its name in links: letters, digits and dashes."""
        return "part-" + re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def report_page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """A page of sections, as text; empty ones are left out.  lead: lines below the title."""
    shown = [section for section in sections if section.blocks]
    return render("report.html", title=title, lead=lead, sections=shown, generator=GENERATOR)
