"""The spaCy component `tk_udpipe_tagger`: UDPipe 1's tagger and lemmatizer.

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
from tk_spacy.tagging.udpipe.kind import FACTORY

if TYPE_CHECKING:
    from tk_spacy.tagging.udpipe.tagger import UdpipeTagger
    from tk_spacy.treebank.conllu import Sentence


@Language.factory(
    FACTORY,
    assigns=ASSIGNS,
    default_config=DEFAULT_CONFIG,
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_udpipe_tagger(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkUdpipeTagger":
    """Make the component; its config is described at `TkUdpipeTagger`."""
    return TkUdpipeTagger(nlp, name, settings=settings, scorer=scorer)


class TkUdpipeTagger(TaggerComponent["UdpipeTagger"]):
    """Sets TAG, POS, MORPH and LEMMA by UDPipe's tagger; see `TaggerComponent`.

    settings: by the names in `tk_spacy.tagging.udpipe.settings`.

    It needs ufal.udpipe when it tags or is trained, not when it is loaded.
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
    def _model_class() -> "type[UdpipeTagger]":
        from tk_spacy.tagging.udpipe.tagger import UdpipeTagger  # noqa: PLC0415

        return UdpipeTagger

    def _train(self, sentences: "Sequence[Sentence]") -> "UdpipeTagger":
        from tk_spacy.tagging.udpipe.spec import make  # noqa: PLC0415
        from tk_spacy.tagging.udpipe.training import train_udpipe_tagger  # noqa: PLC0415

        spec = make(self.name, self.settings, 0)
        spec.check(sentences)
        return train_udpipe_tagger(sentences, settings=spec.settings)
