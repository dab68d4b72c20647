"""What the components of this package's own parsers have in common.

Annotations are not postponed: spaCy builds its schema of what `initialize` takes from them.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.errors import UserError
from tk_spacy.parsers.names import backward_name
from tk_spacy.pipeline.base import TrainedComponent
from tk_spacy.pipeline.checks import check_listener
from tk_spacy.pipeline.scorer import ScoreDict, score_dependencies

if TYPE_CHECKING:
    from tk_spacy.kbest.candidates import LabelInventory
    from tk_spacy.kbest.sources import ParserSource
    from tk_spacy.parsers.base import ParserSpec, Settings, StoredParser
    from tk_spacy.parsers.kinds import ParserKind
    from tk_spacy.pipeline.doc_parsing import ParsedSentence, Parses
    from tk_spacy.treebank.conllu import Sentence

OwnParser = TypeVar("OwnParser", bound="StoredParser")
OwnSettings = TypeVar("OwnSettings", bound="Settings")

PARSER_ASSIGNS = ["token.dep", "token.head", "token.is_sent_start", "doc.sents"]
"""What the factory of such a component declares that it sets."""

COLUMNS_OF_DOCS = {"TAG": "XPOS", "POS": "UPOS", "MORPH": "FEATS", "LEMMA": "LEMMA"}
"""The attributes of Docs, as spaCy names them, that hold columns of CoNLL-U."""


class ParserComponent(
    TrainedComponent[OwnParser, "ParsedSentence"], Generic[OwnParser, OwnSettings]
):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    KIND: name of the kind of its parsers, see `parsers.kinds`.
    settings: of the parser's training, by their names, where they are not at their defaults.
    scorer: of Examples, see `pipeline.scorer`; None for no scores.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND: ClassVar[str]
    ATTRIBUTE = "parser"
    n_threads: int | None = None

    def __init__(
        self,
        nlp: Language,
        name: str,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        super().__init__(nlp, name, scorer=scorer)
        self.settings = dict(settings or {})
        if self.settings:
            self._check_settings()

    # What a kind of parser says of itself, in its spec unless the component knows better

    @classmethod
    def kind(cls) -> "ParserKind":
        """The kind of its parsers."""
        from tk_spacy.parsers.kinds import get_kind  # noqa: PLC0415

        return get_kind(cls.KIND)

    @classmethod
    def _model_class(cls) -> type[OwnParser]:
        model: type[OwnParser] = cls.kind().spec_class().model_class()
        return model

    def _read_settings(self) -> OwnSettings:
        """The settings, complete.  Raises UserError for wrong ones."""
        settings: OwnSettings = self.kind().spec_class().read_settings(self.settings)
        return settings

    def _train(self, sentences: "Sequence[Sentence]", settings: OwnSettings) -> OwnParser:
        """A parser trained on sentences."""
        spec = self.kind().spec_class()(settings=settings)
        parser: OwnParser = spec.fit(
            sentences, [], n_threads=self.n_threads, report=lambda done, of: None
        )
        return parser

    def spec(self, *, seed: int, name: str | None = None) -> "ParserSpec":
        """The spec of parsers like this one; the settings' own seed goes before `seed`.

        name: what to call them, None for the name of their kind.
        """
        spec: ParserSpec = (
            self.kind().spec_class().from_settings({"seed": seed, **self.settings}, name=name)
        )
        return spec

    def source(
        self,
        parser: OwnParser,
        *,
        inventory: "LabelInventory",
        n_threads: int | None,
        name: str | None = None,
    ) -> "ParserSource":
        """A parser as a source of candidates.

        name: of its scores, None for that of the kind.
        """
        source: ParserSource = (
            self.kind()
            .spec_class()
            .source_of(parser, inventory=inventory, n_threads=n_threads, name=name or self.KIND)
        )
        return source

    def _warn_of_doc(self, parser: OwnParser, doc: Doc) -> None:
        """Warn where a Doc, which is not empty, lacks what the parser reads.

        A parser says so by an attribute `columns`; one without it reads words alone.
        """
        columns = getattr(parser, "columns", ())
        missing = [
            attribute
            for attribute, column in COLUMNS_OF_DOCS.items()
            if column in columns and not doc.has_annotation(attribute)
        ]
        self._warn_of_lack(missing, doc, reader="parser", verb="parse")

    # The parser

    @property
    def parser(self) -> OwnParser | None:
        """The trained parser."""
        return self._trained

    @parser.setter
    def parser(self, value: OwnParser | None) -> None:
        self._take(value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations that it can give, as UD names them."""
        return () if self._trained is None else self._trained.labels

    def _check_settings(self) -> OwnSettings:
        try:
            return self._read_settings()
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error

    # Application

    def predict(self, docs: Sequence[Doc]) -> "list[list[ParsedSentence]]":
        """The trees of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained, or what it needs not installed.
        """
        return self._parse(docs, self._needed())

    def _parse(self, docs: Sequence[Doc], parser: "Parses") -> "list[list[ParsedSentence]]":
        """The trees that something gives which parses as the trained parser does."""
        from tk_spacy.pipeline import doc_parsing, long_docs  # noqa: PLC0415

        trained = self._needed()
        for doc in docs:
            if len(doc):
                self._warn_of_doc(trained, doc)
                self._warn_of_length(long_docs.unbounded_words(doc))
                self._warn_of_inner_end(doc)
        return doc_parsing.parse_docs(parser, docs, n_threads=self.n_threads)

    def set_annotations(
        self, docs: Sequence[Doc], parsed: "Sequence[Sequence[ParsedSentence]]"
    ) -> None:
        """Write the trees and the sentence starts."""
        from tk_spacy.pipeline.doc_parsing import write_parse  # noqa: PLC0415

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
            self._load(model)
            self._search_as_told()
            return
        from tk_spacy.spacy_io.gold import gold_sentences  # noqa: PLC0415

        settings = self._check_settings()
        self.parser = self._train(gold_sentences(get_examples()), settings)

    def _search_as_told(self) -> None:
        """Have a loaded parser search as the settings say; it was trained as it was.

        Raises UserError for settings of another training than it had.
        """
        parser: Any = self._needed()
        told = self._read_settings().to_dict()
        own = parser.settings.to_dict()
        kind = self.kind().spec_class()
        for name in self.settings:
            if name not in kind.search_only and told[name] != own[name]:
                raise UserError(
                    f"{self.name}: {name} is {told[name]!r}, but the parser that is loaded was "
                    f"trained with {own[name]!r}; leave it out"
                )
        changed = {name: told[name] for name in self.settings if name in kind.search_only}
        if changed:
            settings = replace(parser.settings, **changed)
            self._take(replace(parser, settings=settings))

    def _warn_of_morph(self, sentences: "Sequence[Sentence]") -> None:
        """Warn where the sentences' FEATS say little."""
        from tk_spacy.features.schema import morph_note  # noqa: PLC0415

        if (note := morph_note(sentences)) is not None:
            warnings.warn(f"{self.name}: {note}", stacklevel=4)


def check_source(nlp: Language, name: str, source: str, *, twin: bool = False) -> None:
    """Raise UserError where `source` is no parser of the pipeline, or one without its tok2vec.

    twin: whether a spaCy parser must have its right-to-left twin beside it.
    """
    from spacy.pipeline import DependencyParser  # noqa: PLC0415

    if source not in nlp.component_names:
        raise UserError(
            f"{name}: the pipeline has no component {source!r} to propose trees (it has: "
            f"{', '.join(nlp.component_names) or 'none'}); add it, or set source to its name"
        )
    from tk_spacy.parsers.kinds import factories  # noqa: PLC0415

    parser = nlp.get_pipe(source)
    if not isinstance(parser, DependencyParser | ParserComponent):
        known = ("parser", "beam_parser", *factories())
        raise UserError(
            f"{name}: source {source!r} is a {type(parser).__name__}, but must be a "
            f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        )
    if not isinstance(parser, DependencyParser):
        return
    if twin and backward_name(source) not in nlp.component_names:
        raise UserError(
            f"{name}: the model learnt from the trees of a right-to-left twin of {source!r} too, "
            f"but the pipeline has no component {backward_name(source)!r} (it has: "
            f"{', '.join(nlp.component_names)}); add it from where {source!r} is, and disable it"
        )
    for needed in (source, backward_name(source)) if twin else (source,):
        check_listener(nlp, name, needed)
