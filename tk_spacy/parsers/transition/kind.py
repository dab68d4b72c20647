"""What the transition parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind

FACTORY = "tk_transition"
FORMAT = "tk-spacy transition parser"


def _line(about: Mapping[str, Any]) -> str:
    return f"trained, {about['direction']}, beam of {about['beam']}, {about['epochs']} epochs"


KIND = ParserKind(
    name="transition",
    summary="linear and quick, decides step by step",
    spec="tk_spacy.parsers.transition.spec:TransitionSpec",
    settings="tk_spacy.parsers.transition.settings:TransitionSettings",
    factory=FACTORY,
    format=FORMAT,
    line=_line,
)
