"""The parsers of a loaded spaCy pipeline."""

from __future__ import annotations

from spacy.language import Language
from spacy.pipeline import DependencyParser

from tk_spacy.parsers.spacy_transition.loading import find_parser
from tk_spacy.pipeline.parser_base import ParserComponent
from tk_spacy.pipeline.tk_reranker import TkReranker
from tk_spacy.reranker.model import Reranker


def find_reranker(nlp: Language) -> TkReranker | None:
    """The pipeline's first trained tk_reranker, None where it has none."""
    pipes = (pipe for _, pipe in nlp.components if isinstance(pipe, TkReranker))
    return next((pipe for pipe in pipes if pipe.reranker is not None), None)


def proposing_parser(nlp: Language, *, where: str) -> str:
    """Name of the parser of a pipeline without a reranker.

    Its dependency parser, or else the first of ours.  Raises UserError where it has none.
    """
    own = [name for name, pipe in nlp.components if isinstance(pipe, ParserComponent)]
    if own and not any(isinstance(pipe, DependencyParser) for _, pipe in nlp.pipeline):
        return own[0]
    return find_parser(nlp, where=where)


def proposing_parsers(nlp: Language, *, where: str) -> tuple[tuple[str, ...], Reranker | None]:
    """Names of the parsers that propose trees, the main one first, and the model that wants them.

    Those of the pipeline's trained tk_reranker; without one `proposing_parser`.
    Raises UserError where it has none.
    """
    component = find_reranker(nlp)
    if component is not None:
        return component.sources, component.reranker
    return (proposing_parser(nlp, where=where),), None
