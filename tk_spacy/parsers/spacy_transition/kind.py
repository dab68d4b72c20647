"""What spaCy's transition parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind


def _line(about: Mapping[str, Any]) -> str:
    if "pipeline" in about:
        return str(about["pipeline"])
    twin = ", with right-to-left twin" if about["backward"] else ""
    steps = f", {about['max_steps']} steps" if about["max_steps"] else ""
    seed = f", seed {about['seed']}" if "seed" in about else ""
    xpos = ", without XPOS" if about.get("xpos") is False else ""
    return f"trained, config {about['config']}{steps}{seed}{xpos}{twin}"


KIND = ParserKind(
    name="spacy",
    summary="spaCy's neural network, which decides step by step",
    spec="tk_spacy.parsers.spacy_transition.spec:SpacySpec",
    line=_line,
    shared_settings={
        "pipeline": "name it for the spaCy parser as such (parsers.spacy.pipeline)",
        "search": "choose it for all spaCy parsers (parsers.spacy.search)",
    },
)
