"""Properties of words beside the columns of Table 1: affixes, shapes, MISC attributes, tables.

Source: affixes and shapes as in part-of-speech taggers (Ratnaparkhi, EMNLP 1996); word clusters cut
to prefixes of their bit strings as in Koo, Carreras and Collins (ACL 2008).  A user asks for them
by name; `choices` says by which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.treebank.conllu import Sentence, parse_feats

LONGEST = 5
"""Characters of an affix, at most."""

LEMMA_NAME = "lemma"
CHOICES = (
    f"{LEMMA_NAME}, lower, shape, prefix1 to prefix{LONGEST}, suffix1 to suffix{LONGEST}, "
    "misc:NAME, table:FILE, table:FILE:LENGTH"
)
"""The names that there are, for messages and help."""

_PLAIN = re.compile(rf"(lemma|lower|shape)|(prefix|suffix)([1-{LONGEST}])")
_TABLE = re.compile(r"table:(.+?)(?::([1-9][0-9]{0,3}))?")

Tables = Mapping[str, Mapping[str, str]]
"""By the file's name: the value of each form."""


@dataclass(frozen=True, slots=True)
class Extra:
    """One such property.

    name: as a model calls it.  kind: lemma, lower, shape, prefix, suffix, misc or table.
    argument: the MISC attribute, or the table's file.
    length: characters of an affix or of a table's value that count; 0 for all.
    """

    name: str
    kind: str
    argument: str = ""
    length: int = 0

    @classmethod
    def parse(cls, name: str) -> Extra:
        """The property of that name (see CHOICES).  Raises UserError for an unknown one."""
        if found := _PLAIN.fullmatch(name):
            plain, affix, length = found.groups()
            return cls(name, plain or affix, length=int(length or 0))
        if name.startswith("misc:") and re.fullmatch(r"[^\s=|,]+", name[5:]):
            return cls(name, "misc", name[5:])
        if found := _TABLE.fullmatch(name):
            file, length = found.groups()
            # A model keeps the table itself; where its file was is nobody's business.
            own = f"table:{Path(file).name}" + (f":{length}" if length else "")
            return cls(own, "table", file, int(length or 0))
        raise UserError(f"unknown property {name!r}; choose from {CHOICES}")

    @property
    def table(self) -> str:
        """The name by which its table is kept."""
        return Path(self.argument).name

    def values(self, sentence: Sentence, tables: Tables) -> list[str | None]:
        """The value of each word, None where it has none.

        An affix of a word that is shorter is the whole word.  A table is asked for the form as it
        stands, then for the form in lower case.
        """
        if self.kind == "misc":
            return [_attribute(self.argument, misc) for misc in sentence.misc]
        column = sentence.lemmas if self.kind == "lemma" else sentence.forms
        table = tables[self.table] if self.kind == "table" else {}
        return [None if text == "_" else self._value(text, table) for text in column]

    def _value(self, text: str, table: Mapping[str, str]) -> str | None:
        match self.kind:
            case "lower":
                return text.lower()
            case "shape":
                return shape(text)
            case "prefix":
                return text.lower()[: self.length]
            case "suffix":
                return text.lower()[-self.length :]
            case "table":
                found = table.get(text)
                found = table.get(text.lower()) if found is None else found
                return found[: self.length] if found and self.length else found
        return text


def check_names(what: str, names: object) -> tuple[str, ...]:
    """The names of properties, as a setting has them.

    what: the setting's name.  Raises UserError where they are no list of different known names.
    """
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{what} is {names!r}; give a list of names: {CHOICES}")
    own = [Extra.parse(name).name for name in names]
    for name in own:
        if own.count(name) > 1:
            raise UserError(f"{what} names {name} twice; name it once")
    return tuple(names)


def read_tables(extras: Iterable[Extra]) -> dict[str, dict[str, str]]:
    """The tables that properties need, by name.  Raises UserError where one cannot be used."""
    tables: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    for extra in extras:
        if extra.kind != "table":
            continue
        known = files.setdefault(extra.table, extra.argument)
        if known != extra.argument:
            raise UserError(
                f"{known} and {extra.argument} are tables of the same name; rename one of them"
            )
        if extra.table not in tables:
            tables[extra.table] = read_table(Path(extra.argument))
    return tables


def read_table(path: Path) -> dict[str, str]:
    """A file of lines FORM <tab> VALUE, as UTF-8; blank lines do not count.

    Raises UserError, with file and line, for one that cannot be read or holds something else.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot read the table: {error.strerror}") from error
    table: dict[str, str] = {}
    for number, raw in enumerate(lines, start=1):
        try:
            line = raw.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}:{number}: not UTF-8; convert the file") from error
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise UserError(
                f"{path}:{number}: {line!r} is not a form, a tab and its value; write one such "
                "pair a line"
            )
        form, value = columns
        if table.setdefault(form, value) != value:
            raise UserError(
                f"{path}:{number}: {form!r} has the value {value!r} here and {table[form]!r} "
                "before; keep one"
            )
    if not table:
        raise UserError(f"{path}: the table is empty; give lines of a form, a tab and its value")
    return table


def tables_to_lists(tables: Tables) -> dict[str, list[list[str]]]:
    """Forms and values of each table, as a model stores them."""
    return {name: [list(table), list(table.values())] for name, table in tables.items()}


def tables_from_lists(
    data: Mapping[str, list[list[str]]], extras: Iterable[Extra]
) -> dict[str, dict[str, str]]:
    """The inverse of `tables_to_lists`.  Raises ValueError where they are not what extras need."""
    tables = {name: dict(zip(*columns, strict=True)) for name, columns in data.items()}
    if set(tables) != {extra.table for extra in extras if extra.kind == "table"}:
        raise ValueError(f"the tables are {sorted(tables)}, not those of the extras")
    for name, table in tables.items():
        if not all(isinstance(text, str) for pair in table.items() for text in pair):
            raise ValueError(f"the table {name!r} holds something else than strings")
    return tables


def check_extras(names: Sequence[str], train: Sequence[Sentence], *, where: str) -> None:
    """Raises UserError for a property that no word of the training sentences has.

    names: of properties.  where: the file, for the message.  Reads the tables.
    """
    extras = [Extra.parse(name) for name in names]
    tables = read_tables(extras)
    for extra in extras:
        if any(value is not None for s in train for value in extra.values(s, tables)):
            continue
        if extra.kind == "misc":
            there = sorted({name for s in train for misc in s.misc for name in parse_feats(misc)})
            shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
            reason = f"no word has {extra.argument} in MISC (there are: {shown or 'none'})"
        elif extra.kind == "table":
            reason = f"{extra.argument} has none of its words"
        else:
            reason = "no word has it"
        raise UserError(f"{where}: property {extra.name} is asked for, but {reason}; leave it out")


@lru_cache(maxsize=1 << 16)
def shape(form: str) -> str:
    """The kinds of a form's characters, runs of one kind shortened to two."""
    found = ""
    for c in form:
        kind = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c
        if not found.endswith(kind * 2):
            found += kind
    return found


def _attribute(name: str, misc: str) -> str | None:
    # Most words have no such attribute, and most MISC columns are "_".
    value = parse_feats(misc).get(name) if name in misc else None
    return None if value == "_" else value
