"""The spec of the transition parser: its settings, and how it is trained and opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Sentences, Shared, StepReport
from tk_spacy.parsers.trainable import TrainableParser
from tk_spacy.parsers.transition.kind import KIND
from tk_spacy.parsers.transition.parser import TransitionParser
from tk_spacy.parsers.transition.settings import SEARCH_ONLY, TransitionSettings
from tk_spacy.parsers.transition.source import TransitionSource
from tk_spacy.parsers.transition.training import train_transition_parser

SECONDS = 0.00001
"""Of a word in one epoch, for each state of the beam."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionSpec(TrainableParser[TransitionSettings]):
    """A transition parser with its settings."""

    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 1
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> TransitionSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""
        return TransitionSettings.from_dict(changes)

    @staticmethod
    def model_class() -> type[TransitionParser]:
        """The class of the trained parsers."""
        return TransitionParser

    @staticmethod
    def source_of(
        parser: TransitionParser, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> TransitionSource:
        """A trained parser as a source of candidates."""
        return TransitionSource(parser, inventory=inventory, n_threads=n_threads, name=name)

    @classmethod
    def make(cls, name: str, settings: Mapping[str, Any], shared: Shared) -> Self:
        """One for a training; XPOS is read where all parsers may."""
        return cls.from_settings({"seed": shared.seed, "xpos": shared.xpos, **settings}, name=name)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        return words * self.settings.epochs * (1 + self.settings.training_beam) * SECONDS

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> TransitionParser:
        """A parser trained on sentences, on one thread, and without a look at dev."""
        return train_transition_parser(sentences, settings=self.settings, report=report)
