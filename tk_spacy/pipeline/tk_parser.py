"""The spaCy component `tk_parser`: the sampling parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc

from tk_spacy.parsers.sampling.kind import FACTORY as TK_PARSER
from tk_spacy.parsers.sampling.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.checks import check_count
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)

if TYPE_CHECKING:
    from tk_spacy.parsers.sampling.parser import SamplingParser
    from tk_spacy.parsers.sampling.settings import SamplingSettings
    from tk_spacy.treebank.conllu import Sentence


@Language.factory(
    TK_PARSER,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}, "n_threads": None, "scorer": DEPENDENCY_SCORER},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_parser(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    n_threads: int | None,
    scorer: Callable[..., ScoreDict] | None,
) -> "TkParser":
    """Make the component; its config is described at `TkParser`."""
    return TkParser(nlp, name, settings=settings, n_threads=n_threads, scorer=scorer)


def add_parser(
    nlp: Language,
    parser: "SamplingParser | None" = None,
    *,
    name: str = TK_PARSER,
    settings: dict[str, Any] | None = None,
    n_threads: int | None = None,
) -> "TkParser":
    """Add a `tk_parser` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}, "n_threads": n_threads}
    return add_component(nlp, TkParser, parser, factory=TK_PARSER, name=name, config=config)


class TkParser(ParserComponent["SamplingParser", "SamplingSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in
               `tk_spacy.parsers.sampling.settings`, where they are not at their defaults.
    n_threads: None for all that are available; the result does not depend on it.
    scorer:    of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    The parser reads words, TAG, POS, MORPH and perhaps LEMMA, from components before it or from the
    Doc as it comes; what `extra` in the settings names of MISC from `token._.tk_misc`, which holds
    the column as CoNLL-U has it.  Sentences are those that the Doc has (from a `senter`, or
    preset); a Doc without any is one sentence.  White space is left out, and hangs on the word
    before it.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self,
        nlp: Language,
        name: str = TK_PARSER,
        *,
        settings: dict[str, Any] | None = None,
        n_threads: int | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        if n_threads is not None:
            check_count(name, "n_threads", n_threads)
        super().__init__(nlp, name, settings=settings, scorer=scorer)
        self.n_threads = n_threads

    def _train(
        self, sentences: "Sequence[Sentence]", settings: "SamplingSettings"
    ) -> "SamplingParser":
        from tk_spacy.features.word_properties import check_extras  # noqa: PLC0415
        from tk_spacy.parsers.sampling.training import train_sampling_parser  # noqa: PLC0415

        check_extras(settings.extra, sentences, where=f"{self.name}: the training examples")
        self._warn_of_morph(sentences)
        return train_sampling_parser(sentences, settings=settings, n_threads=self.n_threads)

    def _warn_of_doc(self, parser: "SamplingParser", doc: Doc) -> None:
        self._warn_of_missing(parser.schema, doc, reader="parser", verb="parse")
