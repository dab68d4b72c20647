"""What a user writes for a parser: its kind, and settings in which it differs from others of it.

sampling   spacy   sampling:order=2   sampling:order=2:seed=7
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.kinds import all_kinds, get_kind, parser_names
from tk_spacy.parsers.names import FILE, FILE_PREFIX
from tk_spacy.utils.requests import split_request


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """One parser as it was asked for.

    kind: name of a kind of parsers, or FILE.
    changes: settings that are this parser's alone, by name.
    file: what the user calls the parser whose trees are in files.  text: what the user wrote.
    """

    kind: str
    changes: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    text: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What the parser is called, in files and tables: the kind, and what is different."""
        if self.file:
            return f"{FILE_PREFIX}{self.file}"
        return get_kind(self.kind).parser_name(self.changes)


def parse_specs(texts: Sequence[str]) -> tuple[ParserRequest, ...]:
    """The parsers that were asked for; raises UserError for none, an unknown one, or one twice."""
    specs = tuple(_parse(text) for text in texts)
    names = [spec.name for spec in specs]
    if not names or len(set(names)) < len(names):
        raise UserError(
            f"parsers are {','.join(texts) or 'none'}; name one or more different ones of "
            f"{', '.join(parser_names())} (a second sampling parser differs in a setting, as in "
            "sampling:order=2)"
        )
    return specs


def kinds(texts: Sequence[str]) -> set[str]:
    """The kinds of the parsers that were asked for."""
    return {spec.kind for spec in parse_specs(texts)}


def _parse(text: str) -> ParserRequest:
    kind = text.partition(":")[0]
    if kind == FILE:
        if not text.startswith(FILE_PREFIX) or text == FILE_PREFIX:
            raise UserError(f"parser {text!r}: write {FILE_PREFIX}NAME, and its trees' place")
        return ParserRequest(FILE, file=text.removeprefix(FILE_PREFIX))
    _, changes = split_request(text, what="parser", example="sampling:order=2:seed=7")
    if changes and not get_kind(kind).own_settings:
        able = [name for name, known in all_kinds().items() if known.own_settings]
        raise UserError(
            f"parser {text!r}: only a {', '.join(able[:-1])} or {able[-1]} parser has settings of "
            "its own"
        )
    get_kind(kind)
    return ParserRequest(kind, changes, text=text)
