"""The kinds of taggers, and the one place where all are listed.

A kind of ours has one line in BUILT_IN; one of another package an entry point in the group
`tk_spacy_taggers`, or `taggers.register(NAME, func=KIND)`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import catalogue

from tk_spacy.errors import UserError
from tk_spacy.utils.requests import split_request

if TYPE_CHECKING:
    from tk_spacy.tagging.base import TaggerSpec

BUILT_IN: Mapping[str, str] = {
    "bilstm": "tk_spacy.tagging.bilstm.kind:KIND",
    "udpipe": "tk_spacy.tagging.udpipe.kind:KIND",
    "spacy": "tk_spacy.tagging.spacy_tagger.kind:KIND",
}
"""Where each kind of this package is declared, the default first."""

DEFAULT = next(iter(BUILT_IN))

taggers = catalogue.create("tk_spacy", "taggers", entry_points=True)
"""Kinds of other packages, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerKind:
    """What a kind of tagger says of itself.

    name: as a user asks for it.  summary: what it is, in a few words, for the help of commands.
    make: "module:function" that makes a `TaggerSpec` from its name, its settings by name (texts or
        numbers) and the seed of the training; it raises UserError for bad ones.
    factory: of the spaCy component that holds a trained one as its attribute `tagger`; None where
        the opened tagger brings spaCy components of its own (an attribute `nlp`).
    line: the settings that tell most, in one line, from what `TaggerSpec.about` gave.
    format, model: what meta.json of a trained one calls it, and "module:class" of that
        `StoredModel`, which a saved pipeline's tagger is opened by without spaCy; None where it has
        no such form.
    """

    name: str
    summary: str
    make: str
    line: Callable[[Mapping[str, Any]], str]
    factory: str | None = None
    format: str | None = None
    model: str | None = None

    def model_class(self) -> Any:
        """The class of trained ones, imported when it is needed; None where there is none."""
        return None if self.model is None else pkgutil.resolve_name(self.model)


def all_kinds() -> dict[str, TaggerKind]:
    """All kinds, ours first, by name."""
    own: dict[str, TaggerKind] = {n: pkgutil.resolve_name(p) for n, p in BUILT_IN.items()}
    return own | {name: kind for name, kind in sorted(taggers.get_all().items()) if name not in own}


def get_kind(name: str) -> TaggerKind:
    """The kind of that name.  Raises UserError, which names the others, where there is none."""
    kinds = all_kinds()
    if name not in kinds:
        raise UserError(f"unknown tagger {name!r}; choose from {', '.join(kinds)}")
    return kinds[name]


def make_tagger(text: str, *, seed: int = 0) -> TaggerSpec:
    """The tagger that a user asks for: "bilstm", or "bilstm:epochs=20" with settings.

    Raises UserError for an unknown kind or setting.
    """
    name, settings = split_request(text, what="tagger", example=f"{DEFAULT}:epochs=20")
    kind = get_kind(name)
    try:
        spec: TaggerSpec = pkgutil.resolve_name(kind.make)(
            "-".join([name, *(f"{n}{v}" for n, v in settings.items())]), settings, seed
        )
    except UserError as error:
        raise UserError(f"tagger {text!r}: {error}" if settings else str(error)) from error
    return spec


def tagger_line(kind: str, about: Mapping[str, Any]) -> str:
    """One line about a model's tagger, from its kind and what its spec told about it."""
    known = all_kinds().get(kind)
    return "of a kind that is not installed here" if known is None else known.line(about)


def taggers_help() -> str:
    """One line about all kinds, for the help of commands."""
    return ", ".join(f"{name} ({kind.summary})" for name, kind in all_kinds().items())
