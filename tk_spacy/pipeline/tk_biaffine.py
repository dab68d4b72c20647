"""The spaCy component `tk_biaffine`: the biaffine parser, trained from a treebank alone.

Every `Language()` imports this module through its entry point, so all that is heavy waits until it
is used.  Annotations are not postponed: spaCy builds its config schemas from them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc

from tk_spacy.parsers.names import TK_BIAFFINE
from tk_spacy.pipeline.base import add_component
from tk_spacy.pipeline.parser_base import PARSER_ASSIGNS, ParserComponent
from tk_spacy.pipeline.scorer import SCORE_WEIGHTS

if TYPE_CHECKING:
    from tk_spacy.kbest.candidates import LabelInventory
    from tk_spacy.parsers.biaffine.parser import BiaffineParser
    from tk_spacy.parsers.biaffine.settings import BiaffineSettings
    from tk_spacy.parsers.biaffine.source import BiaffineSource
    from tk_spacy.parsers.biaffine.spec import BiaffineSpec
    from tk_spacy.treebank.conllu import Sentence


@Language.factory(
    TK_BIAFFINE,
    assigns=PARSER_ASSIGNS,
    default_config={"settings": {}},
    default_score_weights=SCORE_WEIGHTS,
)
def make_tk_biaffine(nlp: Language, name: str, settings: dict[str, Any]) -> "TkBiaffine":
    """Make the component; its config is described at `TkBiaffine`."""
    return TkBiaffine(nlp, name, settings=settings)


def add_biaffine(
    nlp: Language,
    parser: "BiaffineParser | None" = None,
    *,
    name: str = TK_BIAFFINE,
    settings: dict[str, Any] | None = None,
) -> "TkBiaffine":
    """Add a `tk_biaffine` with a trained parser at the end of a pipeline, and return it."""
    config = {"settings": settings or {}}
    return add_component(nlp, TkBiaffine, parser, factory=TK_BIAFFINE, name=name, config=config)


class TkBiaffine(ParserComponent["BiaffineParser", "BiaffineSettings"]):
    """Parses Docs, sentence by sentence: sets heads, labels and sentence starts.

    nlp:       the pipeline.
    settings:  of the parser's training, by the names in
               `tk_spacy.parsers.biaffine.settings`, where they are not at their defaults.

    Words, tags, sentences and white space are taken as `tk_parser` takes them; LEMMA always counts.
    It works on one thread.

    The attribute `parser` is the trained parser, None before `initialize`; it may be set.
    """

    def __init__(
        self, nlp: Language, name: str = TK_BIAFFINE, *, settings: dict[str, Any] | None = None
    ) -> None:
        super().__init__(nlp, name, settings=settings)

    @staticmethod
    def _model_class() -> "type[BiaffineParser]":
        from tk_spacy.parsers.biaffine.parser import BiaffineParser  # noqa: PLC0415

        return BiaffineParser

    def _read_settings(self) -> "BiaffineSettings":
        from tk_spacy.parsers.biaffine.settings import BiaffineSettings  # noqa: PLC0415

        return BiaffineSettings.from_dict(self.settings)

    def _read_model(self, path: Path) -> "BiaffineParser":
        return self._model_class().from_disk(path)

    def _train(
        self, sentences: "Sequence[Sentence]", settings: "BiaffineSettings"
    ) -> "BiaffineParser":
        from tk_spacy.parsers.biaffine.training import train_biaffine_parser  # noqa: PLC0415

        return train_biaffine_parser(sentences, settings=settings)

    def _warn_of_doc(self, parser: "BiaffineParser", doc: Doc) -> None:
        missing = [name for name in parser.vocabulary.needs if not doc.has_annotation(name)]
        self._warn_of_lack(missing, reader="parser", verb="parse")

    def spec(self, *, seed: int) -> "BiaffineSpec":
        """The parser that trains parsers like this one."""
        from tk_spacy.parsers.biaffine.spec import BiaffineSpec  # noqa: PLC0415

        return BiaffineSpec.from_settings({"seed": seed, **self.settings})

    def source(
        self,
        parser: "BiaffineParser",
        *,
        inventory: "LabelInventory",
        n_threads: int | None,
        name: str | None = None,
    ) -> "BiaffineSource":
        """A parser as a source of candidates; on one thread."""
        from tk_spacy.parsers.biaffine.source import NAME, BiaffineSource  # noqa: PLC0415

        return BiaffineSource(parser, inventory=inventory, name=name or NAME)
