"""A table of runs: read from CSV, TSV or TOML, and checked as a whole before any run begins."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import is_model
from tk_spacy.utils.workdir import check_outside
from tk_spacy.workflows.train.config import nearest, train_options
from tk_spacy.workflows.train.config_file import load_value
from tk_spacy.workflows.train.config_schema import FILES, SETTINGS
from tk_spacy.workflows.train.inputs import check_places
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.releases import report_of_the_same
from tk_spacy.workflows.train.treebanks import find_training_set

SHORT = {
    "treebank": "paths.train",
    "dev": "paths.dev",
    "test": "paths.test",
    "output": "paths.output",
    "preset": "training.preset",
    "parsers": "parsers.names",
    "seed": "training.seed",
}
"""Columns with names of their own, and the settings that they are."""
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TOML = ".toml"
ARRAY = "run"
"""The name of the tables of a TOML file."""


class TableMistakes(UserError):
    """All that is wrong with a table.  mistakes: a line each, with file and line."""

    def __init__(self, mistakes: list[str]) -> None:
        self.mistakes = mistakes
        super().__init__("; ".join(mistakes))


@dataclass(frozen=True, slots=True)
class Run:
    """One row.  place: FILE:LINE of it.  settings: as they are given, by column."""

    place: str
    settings: Mapping[str, Any]
    options: TrainOptions

    @property
    def name(self) -> str:
        """Of its task; no two runs have one output."""
        return f"run {self.options.output}"


def read_table(path: Path, *, overwrite: bool = False) -> list[Run]:
    """The runs of a table, in its order.

    Raises TableMistakes for whatever is wrong in any row: no setting, a value that cannot be, files
    that are missing, an output that is there already and was made otherwise (unless overwrite), or
    that two runs have.
    """
    runs: list[Run] = []
    mistakes: list[str] = []
    outputs: dict[Path, str] = {}
    for place, row in _rows(path):
        try:
            options = _options(row, overwrite=overwrite)
            output = options.output.resolve()
            if output in outputs:
                raise UserError(f"output {options.output} is that of {outputs[output]} too")
            outputs[output] = place
            runs.append(Run(place, row, options))
        except (UserError, OSError) as error:
            mistakes.append(f"{place}: {' '.join(str(error).split())}")
    if mistakes:
        raise TableMistakes(mistakes)
    if not runs:
        raise UserError(f"{path}: has no run; write a row for each below the names of the columns")
    return runs


def _options(row: Mapping[str, Any], *, overwrite: bool) -> TrainOptions:
    for column, setting in SHORT.items():
        if column in ("treebank", "output") and not {column, setting} & row.keys():
            raise UserError(f"no {column} is given; the table needs a column {column}")
        if column in row and setting in row:
            raise UserError(f"{column} and {setting} say the same thing; give one of them")
    for name in row:
        if name not in SHORT and name not in SETTINGS and not name.startswith(f"{FILES}."):
            raise UserError(f"{name} is no column; the nearest setting is {nearest(name)}")
    changes = {SHORT.get(name, name): value for name, value in row.items()}
    options = train_options(None, changes, overwrite=overwrite)
    for path in filter(None, (*options.train_paths, options.dev, options.test)):
        if not path.exists():
            raise UserError(f"{path}: no such file or directory")
    find_training_set(options)
    check_outside(options.output, options.train_paths)
    if not overwrite and options.output.exists() and is_model(options.output):
        if report_of_the_same(options) is None:
            raise UserError(
                f"{options.output}: exists already, made with other files, settings or version; "
                "replaced only on demand (overwrite)"
            )
        return options
    check_places(options)
    return options


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place of each row, and its cells that are not empty, by column."""
    suffix = path.suffix.lower()
    if suffix not in (*DELIMITERS, TOML):
        raise UserError(f"{path}: no table; its name must end in {', '.join(DELIMITERS)} or {TOML}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: no UTF-8 text; save it as such") from error
    yield from _toml(path, text) if suffix == TOML else _delimited(path, text, DELIMITERS[suffix])


def _delimited(path: Path, text: str, delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    names: list[str] = []
    for cells in reader:
        place = f"{path}:{reader.line_num}"
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        if not names:
            names = [cell.strip() for cell in cells]
            twice = {name for name in names if not name or names.count(name) > 1}
            if twice:
                raise UserError(f"{place}: columns must have names that differ, not {min(twice)!r}")
            continue
        if len(cells) > len(names):
            raise UserError(f"{place}: {len(cells)} cells, but {len(names)} columns")
        given = zip(names, (cell.strip() for cell in cells), strict=False)
        yield place, {name: load_value(cell) for name, cell in given if cell}


def _toml(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: no TOML: {error}") from error
    runs = tables.pop(ARRAY, [])
    if tables or not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise UserError(f"{path}: expected a [[{ARRAY}]] for each run, and nothing beside them")
    heads = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.match(rf"\s*\[\[\s*{ARRAY}\s*\]\]", line)
    ]
    for i, run in enumerate(runs):
        line = heads[i] if len(heads) == len(runs) else i + 1
        yield f"{path}:{line}", dict(_flat(run))


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
