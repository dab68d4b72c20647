"""What the parsers whose trees are in files say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind
from tk_spacy.parsers.names import FILE


def _line(about: Mapping[str, Any]) -> str:
    kind = "k-best lists" if about["scored"] else "one tree a sentence"
    return f"trees from {', '.join(about['files'].values())} ({kind})"


KIND = ParserKind(
    name=FILE,
    summary="any other parser, its trees in parsers.files",
    spec="tk_spacy.parsers.external:ExternalParser",
    line=_line,
    own_settings=False,
)
