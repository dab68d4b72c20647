"""A parser that listens to another component's tok2vec, made one that stands alone."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spacy.ty import ListenedToComponent

from tk_spacy.errors import UserError
from tk_spacy.parsers.biaffine.encoder import rooted_of

if TYPE_CHECKING:
    from spacy.language import Language

    from tk_spacy.parsers.biaffine.parser import BiaffineParser


def without_listeners(parser: BiaffineParser, nlp: Language, name: str) -> BiaffineParser:
    """The parser with what it listens to in the place of its listeners; itself where it has none.

    nlp, name: the pipeline, and the parser's component there.
    Raises UserError where it listens to a component that the pipeline lacks.
    """
    reading = rooted_of(parser.model)
    nodes = [] if reading is None else [n for n in reading.walk() if hasattr(n, "upstream_name")]
    if not nodes:
        return parser
    components: list[Any] = [pipe for _, pipe in nlp.components]
    pipes = [pipe for pipe in components if isinstance(pipe, ListenedToComponent)]
    model = parser.model.copy()
    copies = dict(zip(parser.model.walk(), model.walk(), strict=True))
    for node in nodes:
        heard = next((p for p in pipes if node in p.listener_map.get(name, [])), None)
        if heard is None:
            raise UserError(
                f"{name}: it listens to {node.upstream_name!r}, which the pipeline lacks before "
                "it; add that component"
            )
        model.replace_node(copies[node], _unheard(node, heard))
    return replace(parser, model=model)


def _unheard(listener: Any, pipe: Any) -> Any:
    """What a listener hears, as a layer of its own; transformers say how theirs is made."""
    replacement = pipe.model.attrs.get("replace_listener")
    if replacement is None:
        return pipe.model
    model = pipe.model.copy()
    if len(inspect.signature(replacement).parameters) == 1:
        return replacement(model)
    return replacement(model, listener, pipe)
