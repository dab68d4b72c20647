"""What the biaffine parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind

FACTORY = "tk_biaffine"
FORMAT = "tk-spacy biaffine parser"


def _line(about: Mapping[str, Any]) -> str:
    size = f"{about['layers']} layers of width {about['width']}"
    return f"trained, {size}, {about['epochs']} epochs"


KIND = ParserKind(
    name="biaffine",
    summary="a neural network that scores all arcs",
    spec="tk_spacy.parsers.biaffine.spec:BiaffineSpec",
    settings="tk_spacy.parsers.biaffine.settings:BiaffineSettings",
    factory=FACTORY,
    format=FORMAT,
    line=_line,
)
