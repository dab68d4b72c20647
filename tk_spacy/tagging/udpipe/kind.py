"""What UDPipe's tagger says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tk_spacy.tagging.kinds import TaggerKind

FACTORY = "tk_udpipe_tagger"
FORMAT = "tk-spacy UDPipe tagger"


def _line(about: Mapping[str, Any]) -> str:
    models = about["models"]
    return f"UDPipe, {models} model{'s' * (models > 1)}, {about['iterations']} iterations"


KIND = TaggerKind(
    name="udpipe",
    summary="UDPipe 1's: fast, needs nothing but the treebank",
    make="tk_spacy.tagging.udpipe.spec:make",
    factory=FACTORY,
    format=FORMAT,
    model="tk_spacy.tagging.udpipe.tagger:UdpipeTagger",
    line=_line,
)
