"""A spaCy pipeline of trained parsers and their reranker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import spacy

from tk_spacy.errors import UserError
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.kinds import get_kind
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.pipeline.tk_reranker import add_reranker
from tk_spacy.pipeline.tk_udpipe_tokenizer import set_tokenizer
from tk_spacy.reranker.model import Reranker
from tk_spacy.spacy_io.saved_config import resolve_optimizer

if TYPE_CHECKING:
    from spacy.language import Language

    from tk_spacy.tokenizing.udpipe import UdpipeTokenizer


def check_factories(kinds: Iterable[str]) -> None:
    """Raises UserError where spaCy does not know the component of a kind: before all is trained."""
    nlp = spacy.blank("xx")  # which looks for the entry points
    for name in kinds:
        factory = get_kind(name).factory
        if factory is not None and not nlp.has_factory(factory):
            raise UserError(
                f"spaCy knows no component {factory!r}, in which the {name} parser is saved; give "
                "it an entry point in the group spacy_factories, and install its package again"
            )


def make_pipeline(
    sources: Sequence[ParserSource],
    reranker: Reranker,
    *,
    kinds: Sequence[str],
    k: int,
    search: str,
    tagger: Any = None,
    tagger_factory: str | None = None,
    tokenizer: UdpipeTokenizer | None = None,
) -> Language:
    """The parsers and the reranker behind them, and before them the tagger, where there is one.

    sources: opened parsers, the main one first.  kinds: name of each one's kind.
    The first parser parses a Doc; the others are disabled, so that they run where the reranker asks
    for their candidates only.  A spaCy parser brings its whole pipeline.
    tagger: opened.  tagger_factory: of its component; None where it has components of its own.
    tokenizer: that takes the place of spaCy's.
    """
    given = next((source for source in sources if isinstance(source, SpacySource)), None)
    nlp = spacy.blank("xx") if given is None else given.nlp
    names = []
    for source, of in zip(sources, kinds, strict=True):
        if isinstance(source, SpacySource):
            names.append(source.component)
            continue
        kind = get_kind(of)
        name = kind.component_name(source.names[0])
        component: Any = nlp.add_pipe(kind.factory or "", name=name)
        component.parser = source.parser  # type: ignore[attr-defined]
        names.append(name)
    add_reranker(nlp, reranker, source=names[0] if len(names) == 1 else names, search=search, k=k)
    for name in names[1:]:
        nlp.disable_pipe(name)
    if tagger is not None:
        _add_tagger(nlp, tagger, tagger_factory)
    if tokenizer is not None:
        set_tokenizer(nlp, tokenizer)
    resolve_optimizer(nlp)
    return nlp


def _add_tagger(nlp: Language, tagger: Any, factory: str | None) -> None:
    """Put a tagger's components before all others."""
    if factory is not None:
        component: Any = nlp.add_pipe(factory, first=True)
        component.tagger = tagger
        return
    for place, name in enumerate(tagger.names):
        nlp.add_pipe(name, source=tagger.nlp, before=place)
