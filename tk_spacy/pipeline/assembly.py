"""A spaCy pipeline of trained parsers and their reranker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import spacy
from spacy.util import load_config_from_str

from tk_spacy.errors import UserError
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.base import ParserSpec, StoredParser
from tk_spacy.parsers.kinds import get_kind
from tk_spacy.parsers.names import backward_name
from tk_spacy.parsers.spacy_transition.loading import load_pipeline
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.parsers.spacy_transition.spec import GivenSpacySpec, SpacySpec
from tk_spacy.parsers.spacy_transition.training import own_tok2vec
from tk_spacy.pipeline.tk_reranker import add_reranker
from tk_spacy.pipeline.tk_udpipe_tokenizer import set_tokenizer
from tk_spacy.reranker.model import Reranker
from tk_spacy.spacy_io.saved_config import resolve_optimizer
from tk_spacy.tagging.spacy_tagger.config import SHARED
from tk_spacy.tagging.spacy_tagger.tagger import sets_tags

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


def check_shared_name(parsers: Iterable[ParserSpec]) -> None:
    """Raises UserError where a spaCy parser's pipeline uses a name that spaCy's tagger needs.

    Components that set tags make room for the tagger's; what these listen to needs its own name.
    """
    for parser in parsers:
        if isinstance(parser, GivenSpacySpec):
            where, names = parser.pipeline, load_pipeline(parser.pipeline).component_names
        elif isinstance(parser, SpacySpec):
            config = load_config_from_str(parser.config, interpolate=False)
            where, names = f"the config of the {parser.name} parser", config["nlp"]["pipeline"]
        else:
            continue
        if SHARED in names:
            raise UserError(
                f"{where}: has a component {SHARED!r}, as the spacy tagger brings one of that "
                "name; rename it, or choose another tagger (tags.tagger)"
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
    for their candidates only.  The first spaCy parser brings its whole pipeline, which the others
    join, and their twins with them.
    tagger: opened; takes the place of all others.  tagger_factory: of its component; None where it
        has components of its own.
    tokenizer: that takes the place of spaCy's.
    """
    host = next((source for source in sources if isinstance(source, SpacySource)), None)
    nlp = spacy.blank("xx") if host is None else host.nlp
    names = []
    if host is not None:
        _call_by_name(host)
    for source, of in zip(sources, kinds, strict=True):
        if isinstance(source, SpacySource):
            if source is not host:
                _add_spacy_parser(nlp, source)
            names.append(component_name(source.component, source.name))
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


def parser_pipeline(
    parser: StoredParser,
    *,
    kind: str,
    tagger: Any = None,
    tagger_factory: str | None = None,
    tokenizer: UdpipeTokenizer | None = None,
) -> Language:
    """One parser of ours, and before it the tagger, where there is one.

    kind: of the parser, by name.  The rest as in `make_pipeline`.
    """
    nlp = spacy.blank("xx")
    component: Any = nlp.add_pipe(get_kind(kind).factory or "")
    component.parser = parser
    if tagger is not None:
        _add_tagger(nlp, tagger, tagger_factory)
    if tokenizer is not None:
        set_tokenizer(nlp, tokenizer)
    resolve_optimizer(nlp)
    return nlp


def _add_tagger(nlp: Language, tagger: Any, factory: str | None) -> None:
    """Put a tagger's components before all others, and take out what sets tags there already.

    A config of spaCy's parser, or a given pipeline, may have such.  The parsers have learnt from
    the tags of this tagger.
    """
    for name in [name for name in nlp.component_names if sets_tags(nlp, name)]:
        nlp.remove_pipe(name)
    if factory is not None:
        component: Any = nlp.add_pipe(factory, first=True)
        component.tagger = tagger
        return
    for place, name in enumerate(tagger.names):
        nlp.add_pipe(name, source=tagger.nlp, before=place)


# Several spaCy parsers in one pipeline


def component_name(component: str, parser: str) -> str:
    """Name of a spaCy parser's component in a model: parser, parser_seed1 and the like.

    component: its name in the config that it is trained by.  parser: name of the parser.
    """
    _, *changes = parser.split("-")
    # A dot would end a section of spaCy's config.
    return "_".join([component, *changes]).replace(".", "_")


def check_one_pipeline(parsers: Sequence[ParserSpec]) -> None:
    """Raises UserError for spaCy parsers that cannot share a pipeline: before all is trained.

    What a pipeline knows of words (its language, word vectors, tables) is the same for all of its
    parsers; another one's would see other words than it was trained on.
    """
    of_spacy = [parser for parser in parsers if isinstance(parser, SpacySpec)]
    if len(of_spacy) < 2:
        return
    first, *others = of_spacy
    config = load_config_from_str(first.config, interpolate=False)
    known = _word_knowledge(first)
    taken = {component_name(first.component, first.name)}
    taken |= {name for name in config["nlp"]["pipeline"] if name != first.component}
    for parser in others:
        for key, value in _word_knowledge(parser).items():
            if value != known[key]:
                raise UserError(
                    f"the parsers {first.name} and {parser.name} cannot be in one model, which is "
                    f"one spaCy pipeline: {key} is {known[key]!r} in the config of the first and "
                    f"{value!r} in that of the other; give both the same"
                )
        name = component_name(parser.component, parser.name)
        if name in taken:
            raise UserError(
                f"the component of the {parser.name} parser would be called {name!r}, as another "
                "one of the model; change a component's name in the config"
            )
        taken.add(name)


def _word_knowledge(parser: SpacySpec) -> dict[str, Any]:
    config = load_config_from_str(parser.config, interpolate=True)
    found: dict[str, Any] = {"[nlp] lang": config["nlp"].get("lang")}
    for key in ("vectors", "vocab_data", "lookups", "before_init", "after_init"):
        found[f"[initialize] {key}"] = config.get("initialize", {}).get(key)
    return found


def _call_by_name(host: SpacySource) -> None:
    """Give a parser and its twin the names of components that belong to the parser's name.

    `Language.rename_pipe` would leave variables in their configs that name the old component, and
    forget which are disabled; what a pipeline takes from itself has neither.
    """
    nlp, old = host.nlp, host.component
    new = component_name(old, host.name)
    if new == old:
        return
    for before, after in ((old, new), (backward_name(old), backward_name(new))):
        if before not in nlp.component_names:
            continue
        disabled = before in nlp.disabled
        of_components = nlp.config["initialize"]["components"]
        settings = of_components.get(before)
        nlp.add_pipe(before, source=nlp, name=after, before=before)
        nlp.remove_pipe(before)
        if settings is not None:
            of_components[after] = settings
        if disabled:
            nlp.disable_pipe(after)


def _add_spacy_parser(nlp: Language, source: SpacySource) -> None:
    """Add a further parser, and its twin, with a tok2vec of their own where they listen to one."""
    name = component_name(source.component, source.name)
    own_tok2vec(source.nlp, source.component)
    nlp.add_pipe(source.component, source=source.nlp, name=name)
    if source.backward:
        twin = backward_name(source.component)
        nlp.add_pipe(twin, source=source.nlp, name=backward_name(name))
        nlp.disable_pipe(backward_name(name))
