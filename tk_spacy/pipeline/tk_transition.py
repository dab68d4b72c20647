"""The spaCy component `tk_transition`: the transition parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from tk_spacy.parsers.transition.kind import FACTORY as TK_TRANSITION
from tk_spacy.parsers.transition.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)

if TYPE_CHECKING:
    from tk_spacy.parsers.transition.parser import TransitionParser
    from tk_spacy.parsers.transition.settings import (  # noqa: F401  (in a text below)
        TransitionSettings,
    )


@Language.factory(
    TK_TRANSITION,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}, "scorer": DEPENDENCY_SCORER},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_transition(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkTransition":
    """Make the component; its config is described at `TkTransition`."""
    return TkTransition(nlp, name, settings=settings, scorer=scorer)


def add_transition(
    nlp: Language,
    parser: "TransitionParser | None" = None,
    *,
    name: str = TK_TRANSITION,
    settings: dict[str, Any] | None = None,
) -> "TkTransition":
    """Add a `tk_transition` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}}
    return add_component(nlp, TkTransition, parser, factory=TK_TRANSITION, name=name, config=config)


class TkTransition(ParserComponent["TransitionParser", "TransitionSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:      the pipeline.
    settings: of the parser's training, by the names in
               `tk_spacy.parsers.transition.settings`, where they are not at their defaults.
    scorer:   of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self,
        nlp: Language,
        name: str = TK_TRANSITION,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        super().__init__(nlp, name, settings=settings, scorer=scorer)
