"""The spaCy component `tk_udpipe_tagger`: UDPipe 1's tagger, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.pipeline.base import TrainedComponent
from tk_spacy.pipeline.scorer import TAGGING_SCORER, ScoreDict, score_tagging
from tk_spacy.tagging.udpipe.kind import FACTORY

if TYPE_CHECKING:
    from tk_spacy.tagging.base import Tags
    from tk_spacy.tagging.udpipe.tagger import UdpipeTagger


@Language.factory(
    FACTORY,
    assigns=["token.tag", "token.pos", "token.morph", "token.lemma"],
    default_config={"settings": {}, "scorer": TAGGING_SCORER},
    default_score_weights={"tag_acc": 0.0, "pos_acc": 0.5, "morph_acc": 0.5, "lemma_acc": 0.0},
)
def make_tk_udpipe_tagger(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkUdpipeTagger":
    """Make the component; its config is described at `TkUdpipeTagger`."""
    return TkUdpipeTagger(nlp, name, settings=settings, scorer=scorer)


class TkUdpipeTagger(TrainedComponent["UdpipeTagger", "tuple[Sequence[int], Tags]"]):
    """Sets TAG, POS, MORPH and LEMMA of Docs, sentence by sentence.

    nlp:      the pipeline.
    settings: of the tagger's training, by the names in
               `tk_spacy.tagging.udpipe.settings`, where they are not at their defaults.
    scorer:   of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    A Doc without sentence starts is tagged as one sentence.  White space gets no tags.  It needs
    ufal.udpipe when it tags or is trained, not when it is loaded.

    The attribute `tagger` is the trained tagger, None before `initialize`; it may be set.
    """

    ATTRIBUTE = "tagger"
    BATCH_SIZE = 128

    def __init__(
        self,
        nlp: Language,
        name: str = FACTORY,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_tagging,
    ) -> None:
        super().__init__(nlp, name, scorer=scorer)
        self.settings = dict(settings or {})

    @staticmethod
    def _model_class() -> "type[UdpipeTagger]":
        from tk_spacy.tagging.udpipe.tagger import UdpipeTagger  # noqa: PLC0415

        return UdpipeTagger

    @property
    def tagger(self) -> "UdpipeTagger | None":
        """The trained tagger."""
        return self._trained

    @tagger.setter
    def tagger(self, value: "UdpipeTagger | None") -> None:
        self._take(value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The UPOS tags that it can give, for meta.json; empty where they are not known."""
        return () if self._trained is None else self._trained.labels

    def predict(self, docs: Sequence[Doc]) -> "list[list[tuple[Sequence[int], Tags]]]":
        """Places and tags of the words of each Doc's sentences; the Docs stay as they are.

        Raises UserError where the component is not trained, or UDPipe not installed.
        """
        from tk_spacy.pipeline.doc_parsing import sentence_spans  # noqa: PLC0415
        from tk_spacy.spacy_io.conversion import sentence_of_tokens  # noqa: PLC0415

        tagger = self._needed()
        found: list[list[tuple[Sequence[int], Tags]]] = []
        for doc in docs:
            words = [
                [token.i for token in doc[start:end] if not token.is_space]
                for start, end in sentence_spans(doc)
            ]
            words = [places for places in words if places]
            sentences = [sentence_of_tokens([doc[i] for i in places]) for places in words]
            found.append(list(zip(words, tagger.tag(sentences), strict=True)))
        return found

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
            path = Path(model)
            is_pipeline = (path / "config.cfg").is_file()
            self.tagger = self._model_class().from_disk(path / self.name if is_pipeline else path)
            return
        from tk_spacy.spacy_io.gold import gold_sentences  # noqa: PLC0415
        from tk_spacy.tagging.udpipe.spec import make  # noqa: PLC0415
        from tk_spacy.tagging.udpipe.training import train_udpipe_tagger  # noqa: PLC0415

        spec = make(self.name, self.settings, 0)
        sentences = gold_sentences(get_examples(), tags="gold")
        spec.check(sentences)
        self.tagger = train_udpipe_tagger(sentences, settings=spec.settings)
