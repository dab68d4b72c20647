"""What UDPipe's parser says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.parsers.kinds import ParserKind

FACTORY = "tk_udpipe"
FORMAT = "tk-spacy UDPipe parser"


def _line(about: Mapping[str, Any]) -> str:
    return f"UDPipe, trained, {about['transition_system']}, {about['iterations']} iterations"


KIND = ParserKind(
    name="udpipe",
    summary="UDPipe 1's parser, one tree a sentence",
    spec="tk_spacy.parsers.udpipe.spec:UdpipeSpec",
    settings="tk_spacy.parsers.udpipe.settings:UdpipeSettings",
    factory=FACTORY,
    format=FORMAT,
    line=_line,
    one_tree=True,
)
