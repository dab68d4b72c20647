"""The spaCy component `tk_projective`: the projective parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from tk_spacy.parsers.projective.kind import FACTORY as TK_PROJECTIVE
from tk_spacy.parsers.projective.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)

if TYPE_CHECKING:
    from tk_spacy.parsers.projective.parser import ProjectiveParser
    from tk_spacy.parsers.projective.settings import (  # noqa: F401  (in a text below)
        ProjectiveSettings,
    )


@Language.factory(
    TK_PROJECTIVE,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}, "scorer": DEPENDENCY_SCORER},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_projective(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkProjective":
    """Make the component; its config is described at `TkProjective`."""
    return TkProjective(nlp, name, settings=settings, scorer=scorer)


def add_projective(
    nlp: Language,
    parser: "ProjectiveParser | None" = None,
    *,
    name: str = TK_PROJECTIVE,
    settings: dict[str, Any] | None = None,
) -> "TkProjective":
    """Add a `tk_projective` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}}
    return add_component(nlp, TkProjective, parser, factory=TK_PROJECTIVE, name=name, config=config)


class TkProjective(ParserComponent["ProjectiveParser", "ProjectiveSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:      the pipeline.
    settings: of the parser's training, by the names in
               `tk_spacy.parsers.projective.settings`, where they are not at their defaults.
    scorer:   of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self,
        nlp: Language,
        name: str = TK_PROJECTIVE,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        super().__init__(nlp, name, settings=settings, scorer=scorer)
