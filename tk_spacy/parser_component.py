"""The spaCy component `tk_parser`: the sampling parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch, raise_error

from tk_spacy.errors import UserError
from tk_spacy.upstream.component_checks import check_count, score_dependencies, untrained

if TYPE_CHECKING:
    from tk_spacy.sampling.parser import SamplingParser
    from tk_spacy.upstream.doc_parsing import ParsedSentence

FACTORY = "tk_parser"

ErrorHandler = Callable[[str, Any, list[Doc], Exception], None]


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


class TkParser:
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in `tk_spacy.sampling.settings`, where they
               are not at their defaults.
    n_threads: None for all that are available; the result does not depend on it.

    The parser reads words, TAG, POS, MORPH and perhaps LEMMA, from components before it or from the
    Doc as it comes.  Sentences are those that the Doc has (from a `senter`, or preset); a Doc
    without any is one sentence.  White space is left out, and hangs on the word before it.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

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
        self.nlp = nlp
        self.name = name
        self.settings = dict(settings or {})
        self.n_threads = n_threads
        self._parser: SamplingParser | None = None
        self._warned = False
        self._error_handler: ErrorHandler = raise_error
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
        return self._parser

    @parser.setter
    def parser(self, value: "SamplingParser | None") -> None:
        from tk_spacy.sampling.parser import SamplingParser  # noqa: PLC0415

        if value is not None and not isinstance(value, SamplingParser):
            raise TypeError(
                f"parser is a {type(value).__name__}, expected a SamplingParser or None"
            )
        self._parser = value
        self._warned = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations that it can give, as UD names them."""
        return () if self._parser is None else self._parser.labels

    # Application

    def __call__(self, doc: Doc) -> Doc:
        """Parse one Doc, in place."""
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            self._error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse a stream of Docs, in place."""
        for docs in minibatch(stream, size=batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception as error:
                self._error_handler(self.name, self, docs, error)
            else:
                yield from docs

    def predict(self, docs: Sequence[Doc]) -> "list[list[ParsedSentence]]":
        """The trees of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained.
        """
        from tk_spacy.upstream import doc_parsing  # noqa: PLC0415
        from tk_spacy.upstream.doc_trees import missing_attributes  # noqa: PLC0415

        if self._parser is None:
            raise UserError(untrained(self.name, "parser"))
        for doc in docs:
            if len(doc) and not self._warned:
                missing = missing_attributes(self._parser.schema, doc)
                if missing:
                    self._warned = True
                    warnings.warn(
                        f"{self.name}: the parser uses {', '.join(missing)}, which a Doc lacks: it "
                        f"will parse worse; put the components that set them before it in the "
                        f"pipeline",
                        stacklevel=2,
                    )
        return doc_parsing.parse_docs(self._parser, docs, n_threads=self.n_threads)

    def set_annotations(
        self, docs: Sequence[Doc], parsed: "Sequence[Sequence[ParsedSentence]]"
    ) -> None:
        """Write the trees and the sentence starts."""
        from tk_spacy.upstream.doc_parsing import write_parse  # noqa: PLC0415

        for doc, own in zip(docs, parsed, strict=True):
            write_parse(doc, own)

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """What to do about Docs that raise an error; see `Language.set_error_handler`."""
        self._error_handler = error_handler

    def get_error_handler(self) -> ErrorHandler:
        """The error handler that is set."""
        return self._error_handler

    # Training and scoring

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
        from tk_spacy.properties import morph_note  # noqa: PLC0415
        from tk_spacy.sampling.training import train_sampling_parser  # noqa: PLC0415
        from tk_spacy.upstream.gold import gold_sentences  # noqa: PLC0415

        settings = self._check_settings()
        sentences = gold_sentences(get_examples())
        if (note := morph_note(sentences)) is not None:
            warnings.warn(f"{self.name}: {note}", stacklevel=2)
        self.parser = train_sampling_parser(sentences, settings=settings, n_threads=self.n_threads)

    def update(
        self, examples: Iterable[Example], *, losses: dict[str, float] | None = None, **_: Any
    ) -> dict[str, float]:
        """Do nothing: the whole training is `initialize`."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """Attachment scores as `TkReranker.score` gives them."""
        return score_dependencies(examples, **kwargs)

    # Storage: the config is the pipeline's matter; here is the parser only

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The parser; empty where there is none."""
        return b"" if self._parser is None else self._parser.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "TkParser":
        """Take the parser of `to_bytes`.  Raises ModelError where the bytes are none."""
        from tk_spacy.sampling.parser import SamplingParser  # noqa: PLC0415

        self.parser = SamplingParser.from_bytes(data) if data else None
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the parser as a directory, empty where there is none; replaces what is there."""
        from tk_spacy.files import replace_directory  # noqa: PLC0415
        from tk_spacy.model_files import write_files  # noqa: PLC0415

        with replace_directory(Path(path)) as directory:
            write_files(directory, self._parser.to_files() if self._parser else {})

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "TkParser":
        """Read what `to_disk` wrote.  Raises ModelError where it is not there."""
        from tk_spacy.sampling.parser import SamplingParser  # noqa: PLC0415

        path = Path(path)
        is_untrained = path.is_dir() and not any(path.iterdir())
        self.parser = None if is_untrained else SamplingParser.from_disk(path)
        return self
