"""The spaCy component `tk_biaffine`: the biaffine parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc

from tk_spacy.parsers.biaffine.kind import FACTORY as TK_BIAFFINE
from tk_spacy.parsers.biaffine.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import SCORE_WEIGHTS

if TYPE_CHECKING:
    from tk_spacy.parsers.biaffine.parser import BiaffineParser
    from tk_spacy.parsers.biaffine.settings import BiaffineSettings  # noqa: F401  (in a text below)


@Language.factory(
    TK_BIAFFINE,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_biaffine(nlp: Language, name: str, settings: dict[str, Any]) -> "TkBiaffine":
    """Make the component; its config is described at `TkBiaffine`."""
    return TkBiaffine(nlp, name, settings=settings)


def add_biaffine(
    nlp: Language,
    parser: "BiaffineParser | None" = None,
    *,
    name: str = TK_BIAFFINE,
    settings: dict[str, Any] | None = None,
) -> "TkBiaffine":
    """Add a `tk_biaffine` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}}
    return add_component(nlp, TkBiaffine, parser, factory=TK_BIAFFINE, name=name, config=config)


class TkBiaffine(ParserComponent["BiaffineParser", "BiaffineSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in
               `tk_spacy.parsers.biaffine.settings`, where they are not at their defaults.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.
    It works on one thread.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self, nlp: Language, name: str = TK_BIAFFINE, *, settings: dict[str, Any] | None = None
    ) -> None:
        super().__init__(nlp, name, settings=settings)

    def _warn_of_doc(self, parser: "BiaffineParser", doc: Doc) -> None:
        missing = [name for name in parser.vocabulary.needs if not doc.has_annotation(name)]
        self._warn_of_lack(missing, reader="parser", verb="parse")
