"""The parsers of a loaded spaCy pipeline."""

from __future__ import annotations

from pathlib import Path

from spacy.language import Language
from spacy.pipeline import DependencyParser

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.spacy_transition.loading import find_parser, load_pipeline
from tk_spacy.pipeline.parser_base import ParserComponent
from tk_spacy.pipeline.sources import pipeline_sources
from tk_spacy.pipeline.tk_reranker import TkReranker
from tk_spacy.reranker.model import Reranker


def proposing_parsers(nlp: Language, *, where: str) -> tuple[tuple[str, ...], Reranker | None]:
    """Names of the parsers that propose trees, the main one first, and the model that wants them.

    Those of the pipeline's trained tk_reranker; without one its dependency parser, or else the
    first of ours (tk_parser, tk_biaffine, tk_udpipe).  Raises UserError where it has none.
    """
    for _, pipe in nlp.components:
        if isinstance(pipe, TkReranker) and pipe.reranker is not None:
            return pipe.sources, pipe.reranker
    own = [name for name, pipe in nlp.components if isinstance(pipe, ParserComponent)]
    if own and not any(isinstance(pipe, DependencyParser) for _, pipe in nlp.pipeline):
        return (own[0],), None
    return (find_parser(nlp, where=where),), None


def first_source(
    path: Path, *, inventory: LabelInventory, n_threads: int | None = None
) -> ParserSource:
    """The main parser of a pipeline's directory, alone: without the others, or spaCy's twin.

    Raises UserError where it has none.
    """
    nlp = load_pipeline(path)
    names, _ = proposing_parsers(nlp, where=str(path))
    (source,) = pipeline_sources(
        nlp, names[:1], inventory=inventory, n_threads=n_threads, twins=False
    )
    return source
