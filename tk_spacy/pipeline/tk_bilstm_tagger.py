"""The spaCy component `tk_bilstm_tagger`: a neural tagger, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from tk_spacy.pipeline.scorer import ScoreDict, score_tagging
from tk_spacy.pipeline.tagger_component import (
    ASSIGNS,
    DEFAULT_CONFIG,
    SCORE_WEIGHTS,
    TaggerComponent,
)
from tk_spacy.tagging.bilstm.kind import FACTORY

if TYPE_CHECKING:
    from tk_spacy.tagging.bilstm.tagger import BilstmTagger
    from tk_spacy.treebank.conllu import Sentence


@Language.factory(
    FACTORY,
    assigns=ASSIGNS,
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_bilstm_tagger(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkBilstmTagger":
    """Make the component; its config is described at `TkBilstmTagger`."""
    return TkBilstmTagger(nlp, name, settings=settings, scorer=scorer)


class TkBilstmTagger(TaggerComponent["BilstmTagger"]):
    """Sets TAG, POS, MORPH and LEMMA by a neural tagger; see `TaggerComponent`.

    settings: by the names in `tk_spacy.tagging.bilstm.settings`.
    """

    def __init__(
        self,
        nlp: Language,
        name: str = FACTORY,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_tagging,
    ) -> None:
        super().__init__(nlp, name, settings=settings, scorer=scorer)

    @staticmethod
    def _model_class() -> "type[BilstmTagger]":
        from tk_spacy.tagging.bilstm.tagger import BilstmTagger  # noqa: PLC0415

        return BilstmTagger

    def _train(self, sentences: "Sequence[Sentence]") -> "BilstmTagger":
        from tk_spacy.tagging.bilstm.spec import make  # noqa: PLC0415
        from tk_spacy.tagging.bilstm.training import train_bilstm_tagger  # noqa: PLC0415

        spec = make(self.name, self.settings, 0)
        spec.check(sentences)
        return train_bilstm_tagger(sentences, settings=spec.settings)
