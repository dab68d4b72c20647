"""The spaCy component `tk_parser`: the sampling parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.upstream.component_checks import check_count
from tk_spacy.upstream.trained_component import TrainedComponent

if TYPE_CHECKING:
    from tk_spacy.sampling.parser import SamplingParser
    from tk_spacy.upstream.doc_parsing import ParsedSentence

FACTORY = "tk_parser"


@Language.factory(
    FACTORY,
    assigns=["token.dep", "token.head", "token.is_sent_start", "doc.sents"],
    default_config={"settings": {}, "n_threads": None},
    default_score_weights={
        "dep_uas": 0.5,
        "dep_las": 0.5,
        "dep_las_per_type": None,
        "dep_uas_with_punct": None,
        "dep_las_with_punct": None,
    },
)
def make_tk_parser(
    nlp: Language, name: str, settings: dict[str, Any], n_threads: int | None
) -> "TkParser":
    """Make the component; its config is described at `TkParser`."""
    return TkParser(nlp, name, settings=settings, n_threads=n_threads)


def add_parser(
    nlp: Language,
    parser: "SamplingParser | None" = None,
    *,
    name: str = FACTORY,
    settings: dict[str, Any] | None = None,
    n_threads: int | None = None,
) -> "TkParser":
    """Add a `tk_parser` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}, "n_threads": n_threads}
    component = nlp.add_pipe(FACTORY, name=name, config=config)
    assert isinstance(component, TkParser)
    component.parser = parser
    return component


class TkParser(TrainedComponent["SamplingParser", "ParsedSentence"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in `tk_spacy.sampling.settings`, where they
               are not at their defaults.
    n_threads: None for all that are available; the result does not depend on it.

    The parser reads words, TAG, POS, MORPH and perhaps LEMMA, from components before it or from the
    Doc as it comes; what `extra` in the settings names of MISC from `token._.tk_misc`, which holds
    the column as CoNLL-U has it.  Sentences are those that the Doc has (from a `senter`, or
    preset); a Doc without any is one sentence.  White space is left out, and hangs on the word
    before it.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    ATTRIBUTE = "parser"
    BATCH_SIZE = 128

    def __init__(
        self,
        nlp: Language,
        name: str = FACTORY,
        *,
        settings: dict[str, Any] | None = None,
        n_threads: int | None = None,
    ) -> None:
        if n_threads is not None:
            check_count(name, "n_threads", n_threads)
        super().__init__(nlp, name)
        self.settings = dict(settings or {})
        self.n_threads = n_threads
        if self.settings:
            self._check_settings()

    def _check_settings(self) -> Any:
        from tk_spacy.views.sampling_view import SamplingView  # noqa: PLC0415

        try:
            return SamplingView.from_settings(self.settings).settings
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error

    @property
    def parser(self) -> "SamplingParser | None":
        """The trained parser."""
        return self._trained

    @parser.setter
    def parser(self, value: "SamplingParser | None") -> None:
        self._take(value)

    @staticmethod
    def _model_class() -> "type[SamplingParser]":
        from tk_spacy.sampling.parser import SamplingParser  # noqa: PLC0415

        return SamplingParser

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations that it can give, as UD names them."""
        return () if self._trained is None else self._trained.labels

    # Application

    def predict(self, docs: Sequence[Doc]) -> "list[list[ParsedSentence]]":
        """The trees of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained.
        """
        from tk_spacy.upstream import doc_parsing  # noqa: PLC0415

        parser = self._needed()
        for doc in docs:
            if len(doc):
                self._warn_of_missing(parser.schema, doc, reader="parser", verb="parse")
        return doc_parsing.parse_docs(parser, docs, n_threads=self.n_threads)

    def set_annotations(
        self, docs: Sequence[Doc], parsed: "Sequence[Sequence[ParsedSentence]]"
    ) -> None:
        """Write the trees and the sentence starts."""
        from tk_spacy.upstream.doc_parsing import write_parse  # noqa: PLC0415

        for doc, own in zip(docs, parsed, strict=True):
            write_parse(doc, own)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        model: str | Path | None = None,
    ) -> None:
        """Train a parser from the examples' trees, or load a trained one.

        Tags are those of the predicted Docs where they have some, else the references'.
        get_examples: gives the training data; not called with a model.
        model: directory of a parser, or of a pipeline with a component of this one's name.

        Raises UserError where the settings do not fit, or the examples have no trees.
        """
        from tk_spacy.models import read_parser  # noqa: PLC0415

        if model is not None:
            self.parser = read_parser(Path(model), component=self.name)
            return
        from tk_spacy.extras import check_extras  # noqa: PLC0415
        from tk_spacy.properties import morph_note  # noqa: PLC0415
        from tk_spacy.sampling.training import train_sampling_parser  # noqa: PLC0415
        from tk_spacy.upstream.gold import gold_sentences  # noqa: PLC0415

        settings = self._check_settings()
        sentences = gold_sentences(get_examples())
        check_extras(settings.extra, sentences, where=f"{self.name}: the training examples")
        if (note := morph_note(sentences)) is not None:
            warnings.warn(f"{self.name}: {note}", stacklevel=2)
        self.parser = train_sampling_parser(sentences, settings=settings, n_threads=self.n_threads)
