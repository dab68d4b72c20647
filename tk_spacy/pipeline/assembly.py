"""A spaCy pipeline of trained parsers and their reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import spacy

from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.names import BIAFFINE, SAMPLING, UDPIPE
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.pipeline.tk_biaffine import add_biaffine
from tk_spacy.pipeline.tk_parser import add_parser
from tk_spacy.pipeline.tk_reranker import add_reranker
from tk_spacy.pipeline.tk_udpipe import add_udpipe
from tk_spacy.reranker.model import Reranker
from tk_spacy.spacy_io.saved_config import resolve_optimizer

if TYPE_CHECKING:
    from spacy.language import Language


COMPONENTS = {SAMPLING: "tk_parser", BIAFFINE: "tk_biaffine", UDPIPE: "tk_udpipe"}
ADD = {SAMPLING: add_parser, BIAFFINE: add_biaffine, UDPIPE: add_udpipe}


def component_name(source: str) -> str:
    """Name of a parser's component: tk_parser, tk_biaffine_seed2 and the like."""
    kind, *changes = source.split("-")
    return "_".join([COMPONENTS[kind], *changes])


def make_pipeline(
    sources: Sequence[ParserSource], reranker: Reranker, *, k: int, search: str
) -> Language:
    """The parsers' parsers and the reranker behind them.

    The first parser's parser parses a Doc; the others are disabled, so that they run where the
    reranker asks for their candidates only.  A spaCy parser brings its whole pipeline.
    """
    given = next((source for source in sources if isinstance(source, SpacySource)), None)
    nlp = spacy.blank("xx") if given is None else given.nlp
    names = []
    for source in sources:
        if isinstance(source, SpacySource):
            names.append(source.component)
        else:
            first = source.names[0]
            parser: Any = source.parser  # type: ignore[attr-defined]
            add: Any = ADD[first.split("-")[0]]
            names.append(add(nlp, parser, name=component_name(first)).name)
    add_reranker(nlp, reranker, source=names[0] if len(names) == 1 else names, search=search, k=k)
    for name in names[1:]:
        nlp.disable_pipe(name)
    resolve_optimizer(nlp)
    return nlp
