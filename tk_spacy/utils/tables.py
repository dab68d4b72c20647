"""Tables as data: made once, and shown as a rich table, as Markdown or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

Cell = str | int | float | None

NO_VALUE = "-"
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

    def to_rich(self) -> Group:
        """For the terminal."""
        # Text, not str: a heading or file name may hold what rich takes for markup.
        table = RichTable(
            title=Text(self.title, style="bold"),
            title_justify="left",
            show_header=any(column.heading for column in self.columns),
            collapse_padding=True,
        )
        shown = self._shown()
        for i, column in enumerate(self.columns):
            # Numbers keep their digits on a narrow terminal; headings and names fold.
            cells = [row[i] for row in shown] if column.align == "right" else []
            table.add_column(
                Text(column.heading),
                justify=column.align,
                min_width=max(map(len, [*cells, *column.heading.split(), ""])),
                overflow="fold",
            )
        for row in shown:
            table.add_row(*(Text(cell) for cell in row))
        # Not as caption, which rich folds to the table's width.
        return Group(table, *(Text(note, style="dim") for note in self.notes))

    def to_markdown(self) -> str:
        """For README files and notes."""
        heads = [column.heading for column in self.columns]
        rule = ["---" if column.align == "left" else "---:" for column in self.columns]
        rows = [heads, rule, *([cell.replace("|", "\\|") for cell in row] for row in self._shown())]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        parts = [f"**{self.title}**", "\n".join(lines), *self.notes]
        return "\n\n".join(parts) + "\n"

    def records(self) -> list[dict[str, Cell]]:
        """For JSON: one dict a row, numbers unrounded."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row, strict=True)) for row in self.rows]

    def _shown(self) -> list[list[str]]:
        return [
            [show(cell, column.digits) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]


def show(value: Cell, digits: int = 2) -> str:
    """A cell as text: thousands apart, floats with that many decimals."""
    if value is None:
        return NO_VALUE
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


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
