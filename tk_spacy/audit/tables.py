"""The tables of an audit: every word with its score, rows that a user chose, and back.

A table has tabs, a header, and no quoting.  The columns sent_id, token_id and score suffice for
whoever measures a ranking; the rest tells what stands there and what is proposed, so that a user
makes a table of chosen or of refused proposals by keeping some of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tk_spacy.errors import UserError

COLUMNS = (
    "sent_id", "token_id", "score", "head", "deprel", "new_head", "new_deprel", "file",
)  # fmt: skip
NO_VALUE = "_"
MOST_DIGITS, MOST_SHOWN = 9, 20
"""Of a word's number, and of a wrong one in a message."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a user's table, and its line there.

    What stands in the treebank (head, deprel) and what is proposed: None where the table has none.
    """

    line: int
    sent_id: str
    token_id: int
    head: int | None = None
    deprel: str | None = None
    new_head: int | None = None
    new_deprel: str | None = None
    file: str = ""


def write_table(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table with `COLUMNS`; None becomes "_"."""
    yield "\t".join(COLUMNS) + "\n"
    for row in rows:
        yield "\t".join(NO_VALUE if cell is None else str(cell) for cell in row) + "\n"


def read_table(path: Path, *, needed: Sequence[str] = ("sent_id", "token_id")) -> list[Row]:
    """The rows of a table.  Raises UserError, naming the line, for what is none.

    needed: columns that must be there and filled.
    """
    try:
        # A spreadsheet may put a mark of its encoding first; other characters than a line feed end
        # no row, though `splitlines` takes some for it.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is no UTF-8 text; give a table of the audit's rows") from error
    except OSError as error:
        raise UserError(f"{path}: cannot read it: {error.strerror}; give a file that exists") from (
            error
        )
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not text:
        raise UserError(f"{path}: is empty; give a header with the columns {', '.join(needed)}")
    header = lines[0].split("\t")
    missing = [name for name in needed if name not in header]
    if missing:
        raise UserError(
            f"{path}:1: has no column {', '.join(missing)}; keep the header of the audit's table "
            "as the first line"
        )
    twice = [name for name in COLUMNS if header.count(name) > 1]
    if twice:
        raise UserError(f"{path}:1: has the column {twice[0]} twice; keep one of them")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != len(header):
            raise UserError(
                f"{path}:{number}: has {len(cells)} cells, but the header {len(header)} columns; "
                "copy whole rows of the audit's table"
            )
        cell = dict(zip(header, cells, strict=True))
        empty = [name for name in needed if cell[name] in ("", NO_VALUE)]
        if empty:
            raise UserError(f"{path}:{number}: has no {empty[0]}; leave the row out, or fill it in")
        rows.append(_row(path, number, cell))
    return rows


def _row(path: Path, line: int, cell: Mapping[str, str]) -> Row:
    return Row(
        line=line,
        sent_id=cell["sent_id"],
        token_id=_number(path, line, cell, "token_id") or 0,
        head=_number(path, line, cell, "head"),
        deprel=_text(cell, "deprel"),
        new_head=_number(path, line, cell, "new_head"),
        new_deprel=_text(cell, "new_deprel"),
        file=_text(cell, "file") or "",
    )


def _text(cell: Mapping[str, str], name: str) -> str | None:
    value = cell.get(name, NO_VALUE)
    return None if value in (NO_VALUE, "") else value


def _number(path: Path, line: int, cell: Mapping[str, str], name: str) -> int | None:
    value = _text(cell, name)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > MOST_DIGITS:
        shown = value if len(value) <= MOST_SHOWN else f"{value[:MOST_SHOWN]}..."
        raise UserError(f"{path}:{line}: {name} is {shown!r}; expected the number of a word")
    return int(value)
