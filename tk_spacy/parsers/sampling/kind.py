"""What the sampling parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind
from tk_spacy.utils.serialization import PARSER_FORMAT

FACTORY = "tk_parser"


def _line(about: Mapping[str, Any]) -> str:
    extra = f", with {', '.join(about['extra'])}" if about.get("extra") else ""
    return f"trained, order {about['order']}, {about['epochs']} epochs{extra}"


KIND = ParserKind(
    name="sampling",
    summary="needs nothing but the treebank",
    spec="tk_spacy.parsers.sampling.spec:SamplingSpec",
    settings="tk_spacy.parsers.sampling.settings:SamplingSettings",
    factory=FACTORY,
    format=PARSER_FORMAT,
    line=_line,
    shared_settings={"extra": "give the names to all sampling parsers (parsers.sampling.extra)"},
    parses_alone=True,
)
