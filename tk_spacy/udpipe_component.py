"""The spaCy component `tk_udpipe`: UDPipe 1's parser, trained from a treebank alone.

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
from tk_spacy.upstream.trained_component import TrainedComponent

if TYPE_CHECKING:
    from tk_spacy.udpipe.parser import UdpipeParser
    from tk_spacy.upstream.doc_parsing import ParsedSentence

FACTORY = "tk_udpipe"


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
def make_tk_udpipe(nlp: Language, name: str, settings: dict[str, Any]) -> "TkUdpipe":
    """Make the component; its config is described at `TkUdpipe`."""
    return TkUdpipe(nlp, name, settings=settings)


def add_udpipe(
    nlp: Language,
    parser: "UdpipeParser | None" = None,
    *,
    name: str = FACTORY,
    settings: dict[str, Any] | None = None,
) -> "TkUdpipe":
    """Add a `tk_udpipe` with a trained parser at the end of a pipeline, and return it."""
    component = nlp.add_pipe(FACTORY, name=name, config={"settings": settings or {}})
    assert isinstance(component, TkUdpipe)
    component.parser = parser
    return component


class TkUdpipe(TrainedComponent["UdpipeParser", "ParsedSentence"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:      the pipeline.
    settings: of the parser's training, by the names in `tk_spacy.udpipe.settings`, where they are
              not at their defaults.

    The parser reads words, POS, MORPH and whatever else it was trained with (TAG, LEMMA); sentences
    and white space are as in `tk_parser`.  It needs the extra `udpipe` when it parses or is
    trained, not when it is loaded.

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

    def _check_settings(self) -> Any:
        from tk_spacy.udpipe.settings import UdpipeSettings  # noqa: PLC0415

        try:
            return UdpipeSettings.from_dict(self.settings)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error

    @property
    def parser(self) -> "UdpipeParser | None":
        """The trained parser."""
        return self._trained

    @parser.setter
    def parser(self, value: "UdpipeParser | None") -> None:
        self._take(value)

    @staticmethod
    def _model_class() -> "type[UdpipeParser]":
        from tk_spacy.udpipe.parser import UdpipeParser  # noqa: PLC0415

        return UdpipeParser

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations that it can give, as UD names them."""
        return () if self._trained is None else self._trained.labels

    # Application

    def predict(self, docs: Sequence[Doc]) -> "list[list[ParsedSentence]]":
        """The trees of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained, or UDPipe not installed.
        """
        from tk_spacy.upstream import doc_parsing  # noqa: PLC0415

        return doc_parsing.parse_docs(self._needed(), docs)

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
        if model is not None:
            path = Path(model)
            is_pipeline = (path / "config.cfg").is_file()
            self.parser = self._model_class().from_disk(path / self.name if is_pipeline else path)
            return
        from tk_spacy.properties import morph_note  # noqa: PLC0415
        from tk_spacy.udpipe.training import train_udpipe_parser  # noqa: PLC0415
        from tk_spacy.upstream.gold import gold_sentences  # noqa: PLC0415

        settings = self._check_settings()
        sentences = gold_sentences(get_examples())
        if (note := morph_note(sentences)) is not None:
            warnings.warn(f"{self.name}: {note}", stacklevel=2)
        self.parser = train_udpipe_parser(sentences, settings=settings)
