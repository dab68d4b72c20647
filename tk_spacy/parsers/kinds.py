"""The kinds of parsers: what each says of itself, and the one place where all are listed.

A kind of ours has one line in BUILT_IN; one of another package an entry point in the group
`tk_spacy_parsers`, or `parsers.register(NAME, func=KIND)`.  A kind is light: what it names as a
text ("module:object") is imported when a parser of the kind is made or opened, so that asking for
all kinds, as the help of a command does, imports no parser.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import catalogue

from tk_spacy.errors import UserError
from tk_spacy.parsers.names import FILE, FILE_PREFIX
from tk_spacy.utils.model_dirs import is_pipeline, kind_of

BUILT_IN: Mapping[str, str] = {
    "sampling": "tk_spacy.parsers.sampling.kind:KIND",
    "spacy": "tk_spacy.parsers.spacy_transition.kind:KIND",
    "biaffine": "tk_spacy.parsers.biaffine.kind:KIND",
    "udpipe": "tk_spacy.parsers.udpipe.kind:KIND",
    "transition": "tk_spacy.parsers.transition.kind:KIND",
    "projective": "tk_spacy.parsers.projective.kind:KIND",
    FILE: "tk_spacy.parsers.external_kind:KIND",
}
"""Where each kind of this package is declared, in the order in which they are told."""

parsers = catalogue.create("tk_spacy", "parsers", entry_points=True)
"""Kinds of other packages, by their names."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Without "-", which parts a kind's name from the settings in a parser's name, and ":"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserKind:
    """What a kind of parser says of itself.

    name: as a user asks for it, lower-case letters, digits and _.
    summary: what it is, in a few words, for the help of commands.
    spec: "module:class" of its `ParserSpec`s, a `TrainableParser` mostly; the class is asked for
        `make`, and, if its parsers are stored (`format`), for `model_class` and `source_of`.
    settings: "module:class" of its settings, a dataclass whose fields a user may set, with their
        defaults; None where there are none of this form.
    factory: of its spaCy component, a `ParserComponent`; None where a parser brings a pipeline with
        it, as spaCy's does, or is no part of a model.
    format: what meta.json of a stored parser calls it, None where it is not stored by us.
    line: the settings that tell most, in one line, from what `ParserSpec.about` gave.
    own_settings: whether one parser can differ from others of its kind ("sampling:order=2").
    shared_settings: those that are never one parser's alone, with a hint what to do instead.
    one_tree: whether it gives a single tree a sentence, so that alone it leaves no choice.
    parses_alone: whether a directory may hold such a parser alone for `tk-spacy parse` (what
        `train-parser` makes), which is then asked before a model's other parsers.
    """

    name: str
    summary: str
    spec: str
    line: Callable[[Mapping[str, Any]], str]
    settings: str | None = None
    factory: str | None = None
    format: str | None = None
    own_settings: bool = True
    shared_settings: Mapping[str, str] | None = None
    one_tree: bool = False
    parses_alone: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"the name of a kind of parsers is {self.name!r}; expected lower-case letters, "
                "digits and _, a letter first"
            )

    def spec_class(self) -> Any:
        """The class of its specs, imported when it is needed."""
        return pkgutil.resolve_name(self.spec)

    def settings_class(self) -> Any:
        """The dataclass of its settings, imported when it is needed; None where there is none."""
        return None if self.settings is None else pkgutil.resolve_name(self.settings)

    def parser_name(self, changes: Mapping[str, Any]) -> str:
        """What a parser is called in files and tables: the kind, and what is different.

        A word tells what it is a setting of: transition-backward, but biaffine-seed1.
        """
        told = [str(v) if _is_word(v) else f"{name}{v}" for name, v in changes.items()]
        return "-".join([self.name, *map(_safe, told)])

    def component_name(self, parser: str) -> str:
        """Name of a parser's component, by the parser's name: tk_biaffine_seed2 and the like."""
        if self.factory is None:
            raise ValueError(f"a {self.name} parser has no component of its own")
        _, *changes = parser.split("-")
        # A dot would end a section of spaCy's config.
        return "_".join([self.factory, *changes]).replace(".", "_")

    def concerns(self, setting: str) -> str:
        """What to call one of its settings in a message."""
        return f"{self.name}.{setting}"


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "", text)


def all_kinds() -> dict[str, ParserKind]:
    """All kinds that are trained here, ours first, by name; the parsers in files are not there."""
    own = {name: _built_in(name) for name in BUILT_IN if name != FILE}
    return own | {name: kind for name, kind in sorted(parsers.get_all().items()) if name not in own}


def parser_names() -> tuple[str, ...]:
    """The names of `all_kinds`."""
    return tuple(all_kinds())


def find_kind(name: str) -> ParserKind | None:
    """The kind of that name, FILE's too; None where there is none."""
    return _built_in(name) if name in BUILT_IN else all_kinds().get(name)


def get_kind(name: str) -> ParserKind:
    """The kind of that name.  Raises UserError, which names the others, where there is none."""
    kind = find_kind(name)
    if kind is None:
        raise UserError(
            f"unknown parser {name!r}; choose from {', '.join(parser_names())}, {FILE_PREFIX}NAME"
        )
    return kind


def kind_of_parser(name: str) -> ParserKind | None:
    """The kind of a parser by the parser's name, None where it is of a package that is not here."""
    return find_kind(FILE if name.startswith(FILE_PREFIX) else name.split("-", maxsplit=1)[0])


def factories() -> tuple[str, ...]:
    """The factories of all kinds' spaCy components."""
    return tuple(kind.factory for kind in all_kinds().values() if kind.factory is not None)


def stored_kind(path: Path) -> ParserKind | None:
    """The kind of the parser that a directory holds alone; None for any other directory."""
    return None if is_pipeline(path) else _of_format(kind_of(path), all_kinds().values())


def _of_format(format_: str | None, kinds: Iterable[ParserKind]) -> ParserKind | None:
    if format_ is None:
        return None
    return next((kind for kind in kinds if kind.format == format_), None)


def parser_line(name: str, about: Mapping[str, Any]) -> str:
    """One line about a parser of a model, from its name and what its spec told about it."""
    kind = kind_of_parser(name)
    return "of a kind that is not installed here" if kind is None else kind.line(about)


def parsers_help() -> str:
    """One line about all kinds, for the help of commands."""
    return ", ".join(
        [
            *(f"{name} ({kind.summary})" for name, kind in all_kinds().items()),
            f"{FILE_PREFIX}NAME ({_built_in(FILE).summary})",
        ]
    )


def _built_in(name: str) -> ParserKind:
    kind: ParserKind = pkgutil.resolve_name(BUILT_IN[name])
    return kind
