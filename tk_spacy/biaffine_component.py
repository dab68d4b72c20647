"""The spaCy component `tk_biaffine`: the biaffine parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.upstream.trained_component import TrainedComponent

if TYPE_CHECKING:
    from tk_spacy.biaffine.parser import BiaffineParser
    from tk_spacy.biaffine.settings import BiaffineSettings
    from tk_spacy.upstream.doc_parsing import ParsedSentence

FACTORY = "tk_biaffine"


@Language.factory(
    FACTORY,
    assigns=["token.dep", "token.head", "token.is_sent_start", "doc.sents"],
    default_config={"settings": {}},
    default_score_weights={
        "dep_uas": 0.5,
        "dep_las": 0.5,
        "dep_las_per_type": None,
        "dep_uas_with_punct": None,
        "dep_las_with_punct": None,
    },
)
def make_tk_biaffine(nlp: Language, name: str, settings: dict[str, Any]) -> "TkBiaffine":
    """Make the component; its config is described at `TkBiaffine`."""
    return TkBiaffine(nlp, name, settings=settings)


def add_biaffine(
    nlp: Language,
    parser: "BiaffineParser | None" = None,
    *,
    name: str = FACTORY,
    settings: dict[str, Any] | None = None,
) -> "TkBiaffine":
    """Add a `tk_biaffine` with a trained parser at the end of a pipeline, and return it."""
    component = nlp.add_pipe(FACTORY, name=name, config={"settings": settings or {}})
    assert isinstance(component, TkBiaffine)
    component.parser = parser
    return component


class TkBiaffine(TrainedComponent["BiaffineParser", "ParsedSentence"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in `tk_spacy.biaffine.settings`, where they
               are not at their defaults.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.
    It works on one thread.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    ATTRIBUTE = "parser"
    BATCH_SIZE = 128

    def __init__(
        self, nlp: Language, name: str = FACTORY, *, settings: dict[str, Any] | None = None
    ) -> None:
        super().__init__(nlp, name)
        self.settings = dict(settings or {})
        if self.settings:
            self._check_settings()

    def _check_settings(self) -> "BiaffineSettings":
        from tk_spacy.biaffine.settings import BiaffineSettings  # noqa: PLC0415

        try:
            return BiaffineSettings.from_dict(self.settings)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error

    @property
    def parser(self) -> "BiaffineParser | None":
        """The trained parser."""
        return self._trained

    @parser.setter
    def parser(self, value: "BiaffineParser | None") -> None:
        self._take(value)

    @staticmethod
    def _model_class() -> "type[BiaffineParser]":
        from tk_spacy.biaffine.parser import BiaffineParser  # noqa: PLC0415

        return BiaffineParser

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
            missing = [name for name in parser.vocabulary.needs if not doc.has_annotation(name)]
            if len(doc) and missing:
                self._warn_of(missing)
        return doc_parsing.parse_docs(parser, docs)

    def _warn_of(self, missing: Sequence[str]) -> None:
        self._warn(
            "missing",
            f"the parser uses {', '.join(missing)}, which a Doc lacks: it will parse worse; put "
            f"the components that set them before it in the pipeline",
        )

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
        model: directory of a parser, as a pipeline keeps it under this component's name.

        Raises UserError where the settings do not fit, or the examples have no trees.
        """
        if model is not None:
            self.parser = self._model_class().from_disk(model)
            return
        from tk_spacy.biaffine.training import train_biaffine_parser  # noqa: PLC0415
        from tk_spacy.upstream.gold import gold_sentences  # noqa: PLC0415

        self.parser = train_biaffine_parser(
            gold_sentences(get_examples()), settings=self._check_settings()
        )
