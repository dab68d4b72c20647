"""What spaCy's taggers say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.tagging.kinds import TaggerKind


def _line(about: Mapping[str, Any]) -> str:
    return f"spaCy's, {about['max_steps'] or 'the usual'} steps"


KIND = TaggerKind(
    name="spacy",
    summary="spaCy's tagger, morphologizer and trainable lemmatizer",
    make="tk_spacy.tagging.spacy_tagger.spec:make",
    line=_line,
)
