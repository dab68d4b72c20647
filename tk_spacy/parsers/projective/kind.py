"""What the projective parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind

FACTORY = "tk_projective"
FORMAT = "tk-spacy projective parser"


def _line(about: Mapping[str, Any]) -> str:
    return (
        f"trained, third order, exact; {about['epochs']} epochs with the "
        f"{about['training_k']} best trees"
    )


KIND = ParserKind(
    name="projective",
    summary="linear, finds the best trees without crossing arcs exactly",
    spec="tk_spacy.parsers.projective.spec:ProjectiveSpec",
    settings="tk_spacy.parsers.projective.settings:ProjectiveSettings",
    factory=FACTORY,
    format=FORMAT,
    line=_line,
)
