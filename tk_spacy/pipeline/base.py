"""What the spaCy components have in common: how they are applied, warn, and are stored."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import raise_error

from tk_spacy.errors import UserError
from tk_spacy.parallel.batches import MOST, in_parts
from tk_spacy.pipeline.checks import untrained
from tk_spacy.pipeline.homes import Homes, calling_pipeline, holds
from tk_spacy.pipeline.scorer import ScoreDict, score_dependencies
from tk_spacy.spacy_io.saved_config import resolve_optimizer

if TYPE_CHECKING:
    from spacy.language import Language

    from tk_spacy.features.schema import Schema
    from tk_spacy.utils.serialization import StoredModel

Trained = TypeVar("Trained", bound="StoredModel")
Decision = TypeVar("Decision")
"""What a component decides about one sentence."""

BOUNDS = "bounds"
"""The kind of warning about Docs without sentence bounds."""

ErrorHandler = Callable[[str, Any, list[Doc], Exception], None]


class TrainedComponent(ABC, Generic[Trained, Decision]):
    """A component with one trained model, which it applies to Docs in place.

    ATTRIBUTE: what the component calls its model.
    BATCH_SIZE: Docs that `pipe` takes at a time, at most.
    """

    ATTRIBUTE: ClassVar[str]
    BATCH_SIZE: ClassVar[int] = MOST

    def __init__(
        self,
        nlp: Language,
        name: str,
        *,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        self.scorer = scorer
        self._homes = Homes(nlp)
        self._name = name
        self._trained: Trained | None = None
        self._warned: set[str] = set()
        self._error_handler: ErrorHandler = raise_error

    @staticmethod
    @abstractmethod
    def _model_class() -> type[Trained]:
        """The class of the model, imported when it is needed."""

    @abstractmethod
    def predict(self, docs: Sequence[Doc]) -> list[list[Decision]]:
        """The decisions for the sentences of each Doc; the Docs stay as they are."""

    @abstractmethod
    def set_annotations(self, docs: Sequence[Doc], decisions: Sequence[Sequence[Decision]]) -> None:
        """Write what `predict` gave."""

    # Its pipeline

    @property
    def nlp(self) -> Language:
        """The pipeline that it stands in, of several the one that took it last."""
        return self._homes.newest

    @property
    def name(self) -> str:
        """Its name in the pipeline."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        # By `add_pipe(source=...)`, before it adds the component; later by every change of one.
        nlp = calling_pipeline()
        if nlp is not None:
            if not holds(nlp, self):
                self._check_home(nlp, value)
            self._homes.add(nlp)
        self._name = value

    def _check_home(self, nlp: Language, name: str) -> None:
        """Raise UserError where a pipeline that it is to join lacks what it needs."""

    def _home_of(self, docs: Sequence[Doc]) -> Language:
        """The pipeline that hands it these Docs."""
        return self._homes.of(self, docs[0] if docs else None)

    # The model

    def _take(self, value: Trained | None) -> None:
        kind = self._model_class()
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f"{self.ATTRIBUTE} is a {type(value).__name__}, expected a {kind.__name__} or None"
            )
        self._trained = value
        self._warned = set()
        resolve_optimizer(self.nlp)  # which spaCy does not where it makes one by itself

    def _load(self, path: str | Path) -> None:
        """Take the model in a directory: one alone, or that of a pipeline's component.

        Raises UserError where there is none; see `component_place`.
        """
        from tk_spacy.utils.model_dirs import component_place  # noqa: PLC0415

        kind = self._model_class()
        self._take(kind.from_disk(component_place(Path(path), self.name, kind.FORMAT)))

    def _needed(self) -> Trained:
        """The model.  Raises UserError where there is none."""
        if self._trained is None:
            raise UserError(untrained(self.name, self.ATTRIBUTE))
        return self._trained

    # Application

    def __call__(self, doc: Doc) -> Doc:
        """Apply the model to one Doc, in place."""
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            self._error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int | None = None) -> Iterator[Doc]:
        """Apply the model to a stream of Docs, in place.

        batch_size: Docs at a time, at most BATCH_SIZE: with spaCy's usual thousand, what one
            component has read of a Doc would be forgotten before the next one asks for it.
        """
        for docs in self._batches(stream, batch_size):
            yield from self._apply(docs)

    def _batches(self, stream: Iterable[Doc], batch_size: int | None) -> Iterator[list[Doc]]:
        size = self.BATCH_SIZE if batch_size is None else max(1, batch_size)
        return in_parts(stream, len, most=min(size, self.BATCH_SIZE))

    def _apply(self, docs: list[Doc]) -> list[Doc]:
        """Apply the model to a batch; none of it is left where the error handler takes an error."""
        try:
            self.set_annotations(docs, self.predict(docs))
        except Exception as error:
            self._error_handler(self.name, self, docs, error)
            return []
        return docs

    def set_error_handler(self, error_handler: ErrorHandler) -> None:
        """What to do about Docs that raise an error; see `Language.set_error_handler`."""
        self._error_handler = error_handler

    def get_error_handler(self) -> ErrorHandler:
        """The error handler that is set."""
        return self._error_handler

    def _warn(self, kind: str, text: str) -> None:
        """Warn, once of a kind."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(f"{self.name}: {text}", stacklevel=2)

    def _warn_of_missing(self, schema: Schema, doc: Doc, *, reader: str, verb: str) -> None:
        """Warn where the Doc lacks what the model reads."""
        from tk_spacy.spacy_io.doc_trees import missing_attributes  # noqa: PLC0415

        if "missing" not in self._warned:
            self._warn_of_lack(missing_attributes(schema, doc), doc, reader=reader, verb=verb)

    def _warn_of_lack(self, missing: Sequence[str], doc: Doc, *, reader: str, verb: str) -> None:
        """Warn where there are attributes that the model reads and a Doc lacks, of its words."""
        if missing and not all(token.is_space for token in doc):
            self._warn(
                "missing",
                f"the {reader} uses {', '.join(missing)}, which a Doc lacks: it will {verb} worse; "
                f"put the components that set them before it in the pipeline",
            )

    def _warn_of_length(self, words: int) -> None:
        """Warn where a Doc without sentence bounds has so many words, 0 for a usual number."""
        if words:
            from tk_spacy.pipeline.long_docs import LONG_ADVICE  # noqa: PLC0415

            self._warn(BOUNDS, f"a Doc of {words} words has no sentence bounds: {LONG_ADVICE}")

    def _warn_of_inner_end(self, doc: Doc) -> None:
        """Warn where a Doc without sentence bounds seems to hold several sentences."""
        if BOUNDS in self._warned or doc.has_annotation("SENT_START"):
            return
        from tk_spacy.pipeline.tk_sentences import inner_end  # noqa: PLC0415

        words = [token.text for token in doc]
        if (end := inner_end(words)) is not None:
            self._warn(
                BOUNDS,
                f"a Doc of {len(words)} words has no sentence bounds, but {end!r} inside: it is "
                "parsed as one sentence; set them as Doc(..., sent_starts=...), or put a component "
                "that does (senter, sentencizer) before it in the pipeline",
            )

    # Training and scoring

    def update(
        self, examples: Iterable[Example], *, losses: dict[str, float] | None = None, **_: Any
    ) -> dict[str, float]:
        """Do nothing: the whole training is `initialize`."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        return losses

    def score(self, examples: Iterable[Example], **kwargs: Any) -> ScoreDict:
        """What the component's scorer says; nothing where it has none."""
        return {} if self.scorer is None else self.scorer(examples, **kwargs)

    # Storage: the config is the pipeline's matter; here is the model only

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model; empty where there is none."""
        return b"" if self._trained is None else self._trained.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        """Take the model of `to_bytes`.  Raises ModelError where the bytes are none."""
        self._take(self._model_class().from_bytes(data) if data else None)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model as a directory, empty where there is none; replaces what is there."""
        from tk_spacy.utils.atomic_files import replace_directory  # noqa: PLC0415

        with replace_directory(Path(path)) as directory:
            if self._trained is not None:
                self._trained.write_files(directory)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        """Read what `to_disk` wrote.  Raises ModelError where it is not there."""
        path = Path(path)
        is_empty = path.is_dir() and not any(path.iterdir())
        self._take(None if is_empty else self._model_class().from_disk(path))
        return self


Component = TypeVar("Component", bound=TrainedComponent)


def add_component(
    nlp: Language,
    kind: type[Component],
    trained: StoredModel | None,
    *,
    factory: str,
    name: str,
    config: dict[str, Any],
) -> Component:
    """Add a component of a kind with a trained model at the end of a pipeline, and return it."""
    component = nlp.add_pipe(factory, name=name, config=config)
    assert isinstance(component, kind)
    component._take(trained)
    return component
