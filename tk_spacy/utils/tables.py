"""Tables as data: made once, and shown as a rich table, as Markdown or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

Cell = str | int | float | None

NO_VALUE = "-"
LEAST_NAME = 12
"""Columns that a name gets at least before it is folded further."""
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its name in JSON, and how many decimals its numbers show."""

    heading: str
    key: str
    digits: int = 2
    align: Literal["left", "right"] = "right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table with notes below it; a cell is text, a number, or None for no value."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row {row} has {len(row)} cells for {len(self.columns)} columns")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """For the terminal: below each other, parts of the columns where it is narrow."""
        shown = self.shown()
        widths = [self._widths(i, shown) for i in range(len(self.columns))]
        for number, part in enumerate(_parts(widths, options.max_width)):
            # Text, not str: a heading or file name may hold what rich takes for markup.
            table = RichTable(
                title=None if number else Text(self.title, style="bold"),
                title_justify="left",
                show_header=any(column.heading for column in self.columns),
                collapse_padding=True,
            )
            for i, width in part.items():
                table.add_column(
                    Text(self.columns[i].heading),
                    justify=self.columns[i].align,
                    # rich forgets the blank at the start of a table whose padding it collapses.
                    width=width + (i == 0),
                    overflow="fold",
                )
            for row in shown:
                table.add_row(*(Text(row[i]) for i in part))
            yield table
        # Not as caption, which rich folds to the table's width.
        yield from (Text(note, style="dim") for note in self.notes)

    def _widths(self, i: int, shown: Sequence[Sequence[str]]) -> tuple[int, int]:
        """The least width of a column, and the one at which nothing in it folds.

        Numbers keep their digits on a narrow terminal; headings and names fold.
        """
        column = self.columns[i]
        cells = [cell_len(row[i]) for row in shown]
        words = max(map(cell_len, [*column.heading.split(), ""]))
        widest = max([*cells, 0])
        least = widest if column.align == "right" else min(LEAST_NAME, widest)
        return max(words, least), max(cell_len(column.heading), widest)

    def to_markdown(self) -> str:
        """For README files and notes."""
        heads = [column.heading for column in self.columns]
        rule = ["---" if column.align == "left" else "---:" for column in self.columns]
        rows = [heads, rule, *([cell.replace("|", "\\|") for cell in row] for row in self.shown())]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        parts = [f"**{self.title}**", "\n".join(lines), *self.notes]
        return "\n\n".join(parts) + "\n"

    def records(self) -> list[dict[str, Cell]]:
        """For JSON: one dict a row, numbers unrounded."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def shown(self) -> list[list[str]]:
        """The cells as text, row by row."""
        return [
            [show(cell, column.digits) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]


def check_shown(tables: Iterable[Table]) -> None:
    """Raises ValueError for a cell that is neither text nor a number nor None."""
    for table in tables:
        for row in table.rows:
            for cell in row:
                if not isinstance(cell, str | int | float | None):
                    raise ValueError(f"{table.title} has {cell!r:.60}, expected text or a number")


def _parts(widths: Sequence[tuple[int, int]], most: int) -> Iterator[dict[int, int]]:
    """The columns that stand beside each other, and their widths; the first in each part.

    widths: (least, wanted) of each column.  most: of a table.
    """
    part: list[int] = []
    for i in range(len(widths)):
        if len(part) > 1 and _taken(widths[j][0] for j in [*part, i]) > most:
            yield _spread(part, widths, most)
            part = [0]
        part.append(i)
    yield _spread(part, widths, most)


def _spread(part: Sequence[int], widths: Sequence[tuple[int, int]], most: int) -> dict[int, int]:
    """Give the columns of a part what they want as far as there is room, from left to right."""
    given = {i: widths[i][0] for i in part}
    for i in part:
        room = most - _taken(given.values())
        given[i] += max(0, min(room, widths[i][1] - given[i]))
    return given


def _taken(widths: Iterable[int]) -> int:
    """The width of a table with such columns: a frame and a blank for each, and at its start."""
    inner = list(widths)
    return sum(inner) + 2 * len(inner) + 2


def show(value: Cell, digits: int = 2) -> str:
    """A cell as text: thousands apart, floats with that many decimals."""
    if value is None:
        return NO_VALUE
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")  # no minus before nothing


def show_seconds(seconds: float) -> str:
    """A duration as people say it: 0.42 s, 38.1 s, 12 min 05 s, 1 h 02 min."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def show_p(p: float) -> str:
    """A p-value with the digits that mean something."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
