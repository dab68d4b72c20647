"""A spaCy pipeline of trained views and their reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import spacy

from tk_spacy.biaffine.source import BiaffineSource
from tk_spacy.component import add_reranker
from tk_spacy.reranker import Reranker
from tk_spacy.upstream.spacy_parser import SpacySource
from tk_spacy.views.protocol import ViewSource

if TYPE_CHECKING:
    from spacy.language import Language


def make_pipeline(
    sources: Sequence[ViewSource], reranker: Reranker, *, k: int, search: str
) -> Language:
    """The views' parsers and the reranker behind them.

    The first view's parser parses a Doc; the others are disabled, so that they run where the
    reranker asks for their candidates only.  A spaCy view brings its whole pipeline.
    """
    given = next((source for source in sources if isinstance(source, SpacySource)), None)
    nlp = spacy.blank("xx") if given is None else given.nlp
    names = []
    for source in sources:
        if isinstance(source, SpacySource):
            names.append(source.component)
        elif isinstance(source, BiaffineSource):
            from tk_spacy.biaffine_component import add_biaffine  # noqa: PLC0415

            names.append(add_biaffine(nlp, source.parser).name)
        else:
            from tk_spacy.parser_component import add_parser  # noqa: PLC0415

            names.append(add_parser(nlp, source.parser).name)  # type: ignore[attr-defined]
    add_reranker(nlp, reranker, source=names[0] if len(names) == 1 else names, search=search, k=k)
    for name in names[1:]:
        nlp.disable_pipe(name)
    return nlp
