"""The spaCy component `tk_biaffine`: the biaffine parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model, Optimizer

from tk_spacy.errors import UserError
from tk_spacy.parsers.biaffine.kind import FACTORY as TK_BIAFFINE
from tk_spacy.parsers.biaffine.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)

if TYPE_CHECKING:
    from tk_spacy.kbest.candidates import LabelInventory
    from tk_spacy.kbest.sources import ParserSource
    from tk_spacy.parsers.base import ParserSpec
    from tk_spacy.parsers.biaffine.parser import BiaffineParser, RecentScores
    from tk_spacy.parsers.biaffine.scorer import Scores, Slopes
    from tk_spacy.parsers.biaffine.settings import BiaffineSettings  # noqa: F401  (in a text below)
    from tk_spacy.parsers.biaffine.source import BiaffineSource
    from tk_spacy.pipeline.doc_parsing import ParsedSentence


@Language.factory(
    TK_BIAFFINE,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}, "model": None, "scorer": DEPENDENCY_SCORER},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_biaffine(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    model: Model | None,
    scorer: Callable[..., ScoreDict] | None,
) -> "TkBiaffine":
    """Make the component; its config is described at `TkBiaffine`."""
    return TkBiaffine(nlp, name, settings=settings, model=model, scorer=scorer)


def add_biaffine(
    nlp: Language,
    parser: "BiaffineParser | None" = None,
    *,
    name: str = TK_BIAFFINE,
    settings: dict[str, Any] | None = None,
) -> "TkBiaffine":
    """Add a `tk_biaffine` with a trained parser at the end of a pipeline, and return it."""
    architecture = None if parser is None else parser.architecture
    config = {"settings": settings or {}, "model": architecture}
    return add_component(nlp, TkBiaffine, parser, factory=TK_BIAFFINE, name=name, config=config)


class TkBiaffine(ParserComponent["BiaffineParser", "BiaffineSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    model:     `tk_spacy.BiaffineParser.v1` with an encoder of one's choice.  It is trained as
               spaCy's own components are, by `update`, with [training]'s batches, optimizer and
               dropout.  Without a model, `initialize` does the whole training by the settings.
    settings:  of the parser's training, by the names in
               `tk_spacy.parsers.biaffine.settings`, where they are not at their defaults.  Beside a
               model only xpos and label_share count.
    scorer:    of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.
    It works on one thread.  A parser that was loaded, or set, is trained further by `update`.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self,
        nlp: Language,
        name: str = TK_BIAFFINE,
        *,
        settings: dict[str, Any] | None = None,
        model: Model | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        super().__init__(nlp, name, settings=settings, scorer=scorer)
        self._given = model
        self._is_done = False
        self._recent: RecentScores | None = None

    # The model

    @property
    def model(self) -> Model | None:
        """The thinc model: the parser's, or else the config's; None where there is neither."""
        return self._given if self._trained is None else self._trained.model

    @property
    def is_trainable(self) -> bool:
        """Whether `update` teaches it anything: not where `initialize` was the whole training.

        Nor where it has several networks, which learn apart.
        """
        if self._trained is None or self._is_done:
            return False
        return self._trained.settings.networks == 1 or self._trained.architecture is not None

    def _take(self, value: "BiaffineParser | None") -> None:
        super()._take(value)
        self._is_done = False
        self._recent = None

    @property
    def label_data(self) -> tuple[str, ...]:
        """The labels, as `initialize` takes them."""
        return self.labels

    # Application

    def predict(self, docs: Sequence[Doc]) -> "list[list[ParsedSentence]]":
        """The trees of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained.
        """
        from tk_spacy.parallel.blas import one_thread  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.encoder import rooted_of  # noqa: PLC0415

        parser = self._needed()
        if parser.architecture is None:
            # It learnt from sentences alone, and what it says of one is the same when it is asked
            # for a list.
            return self._parse(docs, _Remembering(parser, self._scores_of_sentences()))
        reading = rooted_of(parser.model)
        words = [[not token.is_space for token in doc] for doc in docs]
        if reading is None or not any(map(any, words)):
            return super().predict(docs)
        with one_thread():
            found = reading.layers[0].predict(list(docs))
        xp = reading.ops.xp
        vectors = [own[xp.asarray(kept)] for own, kept in zip(found, words, strict=True) if kept]
        return self._parse(docs, _InDocs(parser, xp.concatenate(vectors)))

    def _scores_of_sentences(self) -> "RecentScores":
        """What the parser said last, as long as its weights are the same."""
        from tk_spacy.parsers.biaffine.parser import RecentScores  # noqa: PLC0415

        if self._recent is None:
            self._recent = RecentScores()
        return self._recent

    def source(
        self,
        parser: "BiaffineParser",
        *,
        inventory: "LabelInventory",
        n_threads: int | None,
        name: str | None = None,
    ) -> "ParserSource":
        """A parser as a source of candidates, which reads sentences alone.

        What its model listens to in the pipeline becomes a part of it.
        """
        from tk_spacy.parsers.biaffine.listening import without_listeners  # noqa: PLC0415

        alone = without_listeners(parser, self.nlp, self.name)
        source = super().source(alone, inventory=inventory, n_threads=n_threads, name=name)
        if parser is self._trained and parser.architecture is None:
            cast("BiaffineSource", source).recent = self._scores_of_sentences()
        return source

    def spec(self, *, seed: int, name: str | None = None) -> "ParserSpec":
        """The spec of parsers like this one; the settings' own seed goes before `seed`.

        Raises UserError where the model is one that the settings do not describe.
        """
        if self._given is not None or getattr(self._trained, "architecture", None) is not None:
            raise UserError(
                f"{self.name}: a reranker learns from parsers like this one that are trained on "
                "parts of the treebank, and they are trained by [settings] alone; leave out its "
                "[model], or give the reranker a file of candidates"
            )
        return super().spec(seed=seed, name=name)

    # Training

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        model: str | Path | None = None,
        labels: list[str] | None = None,
    ) -> None:
        """Prepare the model for training, train a parser where it has none, or load a parser.

        Tags are those of the predicted Docs where they have some, else the references'.
        get_examples: gives the training data; not called with a model.
        model: directory of a parser, or of a pipeline with a component of this one's name.
        labels: the relations that it can give, as UD names them; by default those of the examples.

        Raises UserError where the settings do not fit, or the examples have no trees.
        """
        if model is not None or self._given is None:
            if labels is not None:
                raise UserError(
                    f"{self.name}: labels can be given where [components.{self.name}.model] is, "
                    "and no trained parser"
                )
            super().initialize(get_examples, nlp=nlp, model=model)
            self._is_done = model is None
            return
        from tk_spacy.parsers.biaffine.examples import batch_of_examples  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.parser import BiaffineParser  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.roots import root_labels_of  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.training import (  # noqa: PLC0415
            SAMPLE,
            labels_of,
            prepare,
        )
        from tk_spacy.spacy_io.gold import gold_sentences  # noqa: PLC0415

        settings = self._check_settings()
        examples = list(get_examples())
        sentences = gold_sentences(examples)
        known = labels_of(sentences) if labels is None else tuple(labels)
        some = [example for example in examples if len(example.predicted)][:SAMPLE]
        prepare(self._given, sentences, batch_of_examples(some, known), known, xpos=settings.xpos)
        self._take(
            BiaffineParser(
                model=self._given,
                labels=known,
                root_labels=root_labels_of(sentences, known),
                settings=settings,
                architecture=self._described(),
            )
        )

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        """Learn from a batch of Examples.

        drop: rate of the dropout.  sgd: changes the weights; None leaves that to `finish_update`.
        losses: where the loss is added, under the component's name.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        if not self.is_trainable or not any(len(example.predicted) for example in examples):
            return losses
        from thinc.api import set_dropout_rate  # noqa: PLC0415

        from tk_spacy.parallel.blas import one_thread  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.examples import batch_of_examples  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.loss import find_loss  # noqa: PLC0415

        parser = self._needed()
        batch = batch_of_examples(examples, parser.labels)
        if not batch.sentences:
            return losses
        set_dropout_rate(parser.model, drop)
        with one_thread():
            scores, backprop = parser.model.begin_update(batch)
            of_heads, of_labels, slopes = find_loss(scores, batch)
            backprop(slopes)
            if sgd is not None:
                self.finish_update(sgd)
        losses[self.name] += of_heads + of_labels
        return losses

    def get_loss(self, examples: Iterable[Example], scores: "Scores") -> "tuple[float, Slopes]":
        """The loss of a model's scores of Examples, and the slopes to hand back to it."""
        from tk_spacy.parsers.biaffine.examples import batch_of_examples  # noqa: PLC0415
        from tk_spacy.parsers.biaffine.loss import find_loss  # noqa: PLC0415

        batch = batch_of_examples(list(examples), self._needed().labels)
        of_heads, of_labels, slopes = find_loss(scores, batch)
        return of_heads + of_labels, slopes

    def finish_update(self, sgd: Optimizer) -> None:
        """Change the weights by the gradients since the last time."""
        from tk_spacy.parallel.blas import one_thread  # noqa: PLC0415

        if self.is_trainable:
            self._recent = None
            with one_thread():
                self._needed().model.finish_update(sgd)

    def use_params(self, params: dict[Any, Any]) -> Iterator[None]:
        """Other weights, such as an optimizer's averages, until the generator goes on."""
        if self.model is None:
            yield
            return
        try:
            with self.model.use_params(params):
                self._recent = None
                yield
        finally:
            self._recent = None

    # Storage

    def _described(self) -> dict[str, Any]:
        """The model of the pipeline's config, with the values of variables in it."""
        config: dict[str, Any] = self.nlp.config.interpolate()["components"][self.name]["model"]
        return config

    def _note_architecture(self) -> None:
        """Take over what has become of the model, as where a listener was replaced."""
        from dataclasses import replace  # noqa: PLC0415

        if self._trained is not None and self._trained.architecture is not None:
            self._trained = replace(self._trained, architecture=self._described())

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model; empty where there is none."""
        self._note_architecture()
        return super().to_bytes(exclude=exclude)

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model as a directory, empty where there is none; replaces what is there."""
        self._note_architecture()
        super().to_disk(path, exclude=exclude)


class _Remembering:
    """A parser that keeps what it says of sentences."""

    def __init__(self, parser: "BiaffineParser", recent: "RecentScores") -> None:
        self._parser, self._recent = parser, recent

    def parse(self, sentences: Sequence[Any], *, n_threads: int | None = None) -> Any:
        return self._parser.parse(sentences, recent=self._recent)


class _InDocs:
    """A parser that gets the vectors of its sentences' words from what has read their Docs."""

    def __init__(self, parser: "BiaffineParser", vectors: Any) -> None:
        self._parser, self._vectors = parser, vectors

    def parse(self, sentences: Sequence[Any], *, n_threads: int | None = None) -> Any:
        return self._parser.parse(sentences, vectors=self._vectors)
