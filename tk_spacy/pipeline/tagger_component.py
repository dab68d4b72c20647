"""What the components of taggers that are trained from a treebank alone have in common.

Annotations are not postponed: spaCy builds its config schemas from those of factories.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.pipeline.base import TrainedComponent
from tk_spacy.pipeline.scorer import TAGGING_SCORER, ScoreDict, score_tagging

if TYPE_CHECKING:
    from tk_spacy.tagging.base import Tags
    from tk_spacy.treebank.conllu import Sentence
    from tk_spacy.utils.serialization import StoredModel

Trained = TypeVar("Trained", bound="StoredModel")

ASSIGNS = ["token.tag", "token.pos", "token.morph", "token.lemma"]
SCORE_WEIGHTS: dict[str, float | None] = {
    "tag_acc": 0.0,
    "pos_acc": 0.5,
    "morph_acc": 0.5,
    "lemma_acc": 0.0,
}
DEFAULT_CONFIG: dict[str, Any] = {"settings": {}, "scorer": TAGGING_SCORER}
"""Of the factories of such components."""


class TaggerComponent(TrainedComponent[Trained, "tuple[Sequence[int], Tags]"]):
    """Sets TAG, POS, MORPH and LEMMA of Docs, sentence by sentence.

    nlp:      the pipeline.
    settings: of the tagger's training, by their names, where they are not at their defaults.
    scorer:   of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    A Doc without sentence starts is tagged as one sentence.  White space gets no tags.

    The attribute `tagger` is the trained tagger, None before `initialize`; it may be set.
    """

    ATTRIBUTE = "tagger"

    def __init__(
        self,
        nlp: Language,
        name: str,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_tagging,
    ) -> None:
        super().__init__(nlp, name, scorer=scorer)
        self.settings = dict(settings or {})

    @abstractmethod
    def _train(self, sentences: "Sequence[Sentence]") -> Trained:
        """A tagger of sentences.  Raises UserError where they or the settings do not fit."""

    @property
    def tagger(self) -> Trained | None:
        """The trained tagger."""
        return self._trained

    @tagger.setter
    def tagger(self, value: Trained | None) -> None:
        self._take(value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The UPOS tags that it can give, for meta.json; empty where they are not known."""
        tagger: Any = self._trained
        return () if tagger is None else tagger.upos_tags

    def predict(self, docs: Sequence[Doc]) -> "list[list[tuple[Sequence[int], Tags]]]":
        """Places and tags of the words of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained.
        """
        from tk_spacy.spacy_io.conversion import sentence_of_tokens  # noqa: PLC0415
        from tk_spacy.spacy_io.sentence_spans import (  # noqa: PLC0415
            sentence_spans,
            words_of_spans,
        )

        tagger: Any = self._needed()
        words = [
            [places.tolist() for places in words_of_spans(doc, sentence_spans(doc)) if len(places)]
            for doc in docs
        ]
        sentences = [
            sentence_of_tokens([doc[i] for i in places], misc=False)
            for doc, of_doc in zip(docs, words, strict=True)
            for places in of_doc
        ]
        found = iter(tagger.tag(sentences))
        return [[(places, next(found)) for places in of_doc] for of_doc in words]

    def set_annotations(
        self, docs: Sequence[Doc], decisions: "Sequence[Sequence[tuple[Sequence[int], Tags]]]"
    ) -> None:
        """Write the tags."""
        for doc, own in zip(docs, decisions, strict=True):
            for places, tags in own:
                for place, lemma, upos, xpos, feats in zip(places, *tags, strict=True):
                    token: Any = doc[place]
                    token.lemma_ = "" if lemma == "_" and token.text != "_" else lemma
                    token.pos_ = "" if upos == "_" else upos
                    token.tag_ = "" if xpos == "_" else xpos
                    token.set_morph("" if feats == "_" else feats)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        model: str | Path | None = None,
    ) -> None:
        """Train a tagger from the references' tags, or load a trained one.

        model: directory of a tagger, or of a pipeline with a component of this one's name.
        Raises UserError where the settings do not fit, or the examples have no tags.
        """
        if model is not None:
            self._load(model)
            return
        from tk_spacy.spacy_io.gold import tagged_sentences  # noqa: PLC0415

        self.tagger = self._train(tagged_sentences(get_examples()))
