"""The spaCy component `tk_udpipe`: UDPipe 1's parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from tk_spacy.parsers.udpipe.kind import FACTORY as TK_UDPIPE
from tk_spacy.parsers.udpipe.kind import KIND
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import (
    DEPENDENCY_SCORER,
    SCORE_WEIGHTS,
    ScoreDict,
    score_dependencies,
)

if TYPE_CHECKING:
    from tk_spacy.parsers.udpipe.parser import UdpipeParser
    from tk_spacy.parsers.udpipe.settings import UdpipeSettings
    from tk_spacy.treebank.conllu import Sentence


@Language.factory(
    TK_UDPIPE,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}, "scorer": DEPENDENCY_SCORER},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_udpipe(
    nlp: Language,
    name: str,
    settings: dict[str, Any],
    scorer: Callable[..., ScoreDict] | None,
) -> "TkUdpipe":
    """Make the component; its config is described at `TkUdpipe`."""
    return TkUdpipe(nlp, name, settings=settings, scorer=scorer)


def add_udpipe(
    nlp: Language,
    parser: "UdpipeParser | None" = None,
    *,
    name: str = TK_UDPIPE,
    settings: dict[str, Any] | None = None,
) -> "TkUdpipe":
    """Add a `tk_udpipe` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}}
    return add_component(nlp, TkUdpipe, parser, factory=TK_UDPIPE, name=name, config=config)


class TkUdpipe(ParserComponent["UdpipeParser", "UdpipeSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:      the pipeline.
    settings: of the parser's training, by the names in
               `tk_spacy.parsers.udpipe.settings`, where they are not at their defaults.
    scorer:   of Examples, see `tk_spacy.pipeline.scorer`; None for no scores.

    The parser reads words, POS, MORPH and whatever else it was trained with (TAG, LEMMA); sentences
    and white space are as in `tk_parser`.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    KIND = KIND.name

    def __init__(
        self,
        nlp: Language,
        name: str = TK_UDPIPE,
        *,
        settings: dict[str, Any] | None = None,
        scorer: Callable[..., ScoreDict] | None = score_dependencies,
    ) -> None:
        super().__init__(nlp, name, settings=settings, scorer=scorer)

    def _read_settings(self) -> "UdpipeSettings":
        from tk_spacy.parsers.udpipe.settings import UdpipeSettings  # noqa: PLC0415

        return UdpipeSettings.from_dict(self.settings)

    def _train(self, sentences: "Sequence[Sentence]", settings: "UdpipeSettings") -> "UdpipeParser":
        from tk_spacy.parsers.udpipe.training import train_udpipe_parser  # noqa: PLC0415

        self._warn_of_morph(sentences)
        return train_udpipe_parser(sentences, settings=settings)
