"""Parsers by their names, as a user asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.parsers.names import BIAFFINE, FILE, SAMPLING, SPACY, UDPIPE
from tk_spacy.parsers.specs import ParserRequest, parse_specs


def make_parsers(
    names: Sequence[str],
    *,
    seed: int = 0,
    sampling: Mapping[str, Any] | None = None,
    biaffine: Mapping[str, Any] | None = None,
    udpipe: Mapping[str, Any] | None = None,
    files: Mapping[str, Mapping[str, tuple[Path, Path]]] | None = None,
    spacy_pipeline: str | None = None,
    config: Path | None = None,
    max_steps: int | None = None,
    backward: bool = True,
    search: str = "discrepancy",
    xpos: bool = True,
) -> tuple[ParserSpec, ...]:
    """The parsers of those names (see `specs`), in order; the first is the main one.

    sampling, biaffine, udpipe: settings of all these parsers that are not at their defaults.
    files: of each file parser its files, by part (see `ExternalParser.read`).  The rest is
    spaCy's:     parser: spacy_pipeline is a pipeline to take instead of training one.
    xpos: whether the parsers may read the XPOS column.
    Raises UserError where a setting makes no sense.
    """
    parsers: list[ParserSpec] = []
    for spec in parse_specs(names):
        if spec.kind == SAMPLING:
            from tk_spacy.parsers.sampling.spec import SamplingSpec  # noqa: PLC0415

            settings = {"seed": seed, **(sampling or {}), **spec.changes}
            with _of_parser(spec):
                parsers.append(SamplingSpec.from_settings(settings, name=spec.name))
            continue
        if spec.kind == BIAFFINE:
            from tk_spacy.parsers.biaffine.spec import BiaffineSpec  # noqa: PLC0415

            settings = {"seed": seed, "xpos": xpos, **(biaffine or {}), **spec.changes}
            with _of_parser(spec):
                parsers.append(BiaffineSpec.from_settings(settings, name=spec.name))
            continue
        if spec.kind == FILE:
            from tk_spacy.parsers.external import ExternalParser  # noqa: PLC0415

            parsers.append(ExternalParser.read(spec.file, (files or {}).get(spec.file, {})))
            continue
        if spec.kind == UDPIPE:
            from tk_spacy.parsers.udpipe.spec import UdpipeSpec  # noqa: PLC0415

            parsers.append(UdpipeSpec.from_settings({"seed": seed, **(udpipe or {})}))
            continue
        assert spec.kind == SPACY
        from tk_spacy.parsers.spacy_transition.spec import (  # noqa: PLC0415  (imports spaCy)
            GivenSpacySpec,
            SpacySpec,
        )

        if spacy_pipeline is not None:
            parsers.append(GivenSpacySpec.from_pipeline(spacy_pipeline, search=search))  # type: ignore[arg-type]
        else:
            parsers.append(
                SpacySpec.from_config(
                    config,
                    max_steps=max_steps,
                    seed=seed,
                    xpos=xpos,
                    backward=backward,
                    search=search,
                )
            )
    _check_different(parsers)
    return tuple(parsers)


@contextmanager
def _of_parser(spec: ParserRequest) -> Iterator[None]:
    """Mistakes in the settings of a parser of its own name it."""
    if "extra" in spec.changes:
        raise UserError(
            f"parser {spec.text!r}: extra cannot be one parser's alone; leave it out, and give the "
            "names to all sampling parsers (parsers.sampling.extra)"
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
