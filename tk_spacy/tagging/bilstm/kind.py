"""What the neural tagger says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.tagging.kinds import TaggerKind

FACTORY = "tk_bilstm_tagger"
FORMAT = "tk-spacy BiLSTM tagger"


def _line(about: Mapping[str, Any]) -> str:
    layers = about["layers"]
    size = f"{layers} layer{'s' * (layers > 1)} of width {about['width']}"
    return f"a BiLSTM, {size}, {about['epochs']} epochs or {about['steps']} steps"


KIND = TaggerKind(
    name="bilstm",
    summary="a neural network on the biaffine parser's encoder",
    make="tk_spacy.tagging.bilstm.spec:make",
    factory=FACTORY,
    format=FORMAT,
    model="tk_spacy.tagging.bilstm.tagger:BilstmTagger",
    line=_line,
)
