"""The spec of the biaffine parser: its settings, and how it is trained and opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.base import Sentences, Shared, StepReport
from tk_spacy.parsers.biaffine.kind import KIND
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.settings import SEARCH_ONLY, BiaffineSettings
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.trainable import TrainableParser

SECONDS = 0.00019
"""Of a word in one epoch, at the default widths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiaffineSpec(TrainableParser[BiaffineSettings]):
    """A biaffine parser with its settings."""

    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 4
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> BiaffineSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""
        return BiaffineSettings.from_dict(changes)

    @staticmethod
    def model_class() -> type[BiaffineParser]:
        """The class of the trained parsers."""
        return BiaffineParser

    @staticmethod
    def source_of(
        parser: BiaffineParser, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> BiaffineSource:
        """A trained parser as a source of candidates, on one thread."""
        return BiaffineSource(parser, inventory=inventory, name=name)

    @classmethod
    def make(cls, name: str, settings: Mapping[str, Any], shared: Shared) -> Self:
        """One for a training; XPOS is read where all parsers may."""
        return cls.from_settings({"seed": shared.seed, "xpos": shared.xpos, **settings}, name=name)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        own = self.settings
        return max(words * own.epochs, own.batch * own.steps) * SECONDS * own.networks

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> BiaffineParser:
        """A parser trained on sentences, without a look at dev."""
        return train_biaffine_parser(
            sentences, settings=self.settings, n_threads=n_threads, report=report
        )

    def fit_shares(
        self,
        sentences: Sentences,
        shares: Sequence[ArcShares],
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> BiaffineParser:
        """The same by shares of arcs in the place of trees; see `TrainableParser`."""
        return train_biaffine_parser(
            sentences, settings=self.settings, shares=shares, n_threads=n_threads, report=report
        )
