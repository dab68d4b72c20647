"""Parsers by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import ParserSpec, Shared
from tk_spacy.parsers.kinds import get_kind
from tk_spacy.parsers.names import SPACY
from tk_spacy.parsers.specs import ParserRequest, parse_specs


def make_parsers(
    names: Sequence[str],
    *,
    seed: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    files: Mapping[str, Mapping[str, tuple[Path, Path]]] | None = None,
    spacy_pipeline: str | None = None,
    config: Path | None = None,
    max_steps: int | None = None,
    backward: bool = True,
    search: str = "discrepancy",
    xpos: bool = True,
) -> tuple[ParserSpec, ...]:
    """The parsers of those names (see `specs`), in order; the first is the main one.

    settings: of all parsers of a kind, by its name, those that are not at their defaults.
    files: of each file parser its files, by part (see `ExternalParser.read`).  The rest is
    spaCy's parser's: spacy_pipeline is a pipeline to take instead of training one.
    xpos: whether the parsers may read the XPOS column.
    Raises UserError where a setting makes no sense.
    """
    shared = Shared(seed=seed, search=search, xpos=xpos)
    of_kinds: dict[str, Mapping[str, Any]] = dict(settings or {})
    of_kinds[SPACY] = {
        "pipeline": spacy_pipeline,
        "config": config,
        "max_steps": max_steps,
        "backward": backward,
        **of_kinds.get(SPACY, {}),
    }
    parsers: list[ParserSpec] = []
    for request in parse_specs(names):
        own = (files or {}).get(request.file, {}) if request.file else of_kinds.get(request.kind)
        with _of_parser(request):
            made = get_kind(request.kind).spec_class()
            parsers.append(made.make(request.name, {**(own or {}), **request.changes}, shared))
    _check_different(parsers)
    return tuple(parsers)


@contextmanager
def _of_parser(spec: ParserRequest) -> Iterator[None]:
    """Mistakes in the settings of a parser of its own name it."""
    for name, instead in (get_kind(spec.kind).shared_settings or {}).items():
        if name in spec.changes:
            raise UserError(
                f"parser {spec.text!r}: {name} cannot be one parser's alone; leave it out, and "
                f"{instead}"
            )
    try:
        yield
    except UserError as error:
        raise UserError(f"parser {spec.text!r}: {error}" if spec.changes else str(error)) from error


def _check_different(parsers: Sequence[ParserSpec]) -> None:
    """Raises UserError for parsers of one kind that are the same but for their names."""
    known: list[tuple[object, str]] = []
    for parser in parsers:
        settings = getattr(parser, "settings", None)
        if settings is None:
            continue
        for other, name in known:
            if type(other) is type(settings) and other == settings:
                raise UserError(
                    f"the parsers {name} and {parser.name} have the same settings and would be the "
                    "same parser; leave one out, or give it another seed"
                )
        known.append((settings, parser.name))
