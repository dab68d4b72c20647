"""A neural tagger to be trained, with its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tk_spacy.parsers.base import StepReport
from tk_spacy.tagging.base import check_upos
from tk_spacy.tagging.bilstm.kind import KIND
from tk_spacy.tagging.bilstm.settings import BilstmSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.validation import check_names_of

if TYPE_CHECKING:
    from tk_spacy.tagging.bilstm.tagger import BilstmTagger

SECONDS = 0.00027
"""Of a word in one epoch, at the default widths."""


def make(name: str, settings: Mapping[str, Any], seed: int) -> BilstmTaggerSpec:
    """A spec from settings by name.  Raises UserError for bad ones."""
    found = BilstmSettings(**check_names_of(BilstmSettings, {"seed": seed, **settings}))
    return BilstmTaggerSpec(name=name, settings=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class BilstmTaggerSpec:
    """A neural tagger with its settings: a `TaggerSpec`."""

    kind: ClassVar[str] = KIND.name
    given: ClassVar[bool] = False
    format: ClassVar[int] = 1

    name: str = KIND.name
    settings: BilstmSettings = field(default_factory=BilstmSettings)

    def about(self) -> dict[str, Any]:
        """The settings."""
        return asdict(self.settings)

    def training_key(self) -> list[Any]:
        """All that a trained tagger depends on beside its sentences."""
        return [self.format, asdict(self.settings)]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Raises UserError where no word has a tag."""
        check_upos(sentences)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        own = self.settings
        return max(words * own.epochs, own.steps * own.batch) * SECONDS

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train a tagger, without a look at dev, and write its files."""
        from tk_spacy.tagging.bilstm.training import train_bilstm_tagger  # noqa: PLC0415

        tagger = train_bilstm_tagger(
            train, settings=self.settings, n_threads=n_threads, report=report
        )
        tagger.write_files(directory)

    def open(self, directory: Path) -> BilstmTagger:
        """The tagger that `train` wrote."""
        from tk_spacy.tagging.bilstm.tagger import BilstmTagger  # noqa: PLC0415

        return BilstmTagger.from_disk(directory)
