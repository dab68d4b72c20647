"""The spec of the sampling parser: its settings, and how it is trained and opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.features.word_properties import Extra
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Sentences, StepReport
from tk_spacy.parsers.sampling.kind import KIND
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.settings import SEARCH_ONLY, SamplingSettings
from tk_spacy.parsers.sampling.source import SamplingSource
from tk_spacy.parsers.sampling.training import EpochProgress, train_sampling_parser
from tk_spacy.parsers.trainable import TrainableParser
from tk_spacy.utils.workdir import fingerprint

SECONDS = {1: 0.00022, 2: 0.0004, 3: 0.00066}
"""Of a word in one epoch, by the order of the parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSpec(TrainableParser[SamplingSettings]):
    """A sampling parser with its settings."""

    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 1
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> SamplingSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""
        return SamplingSettings.from_dict({**SamplingSettings().to_dict(), **changes})

    @staticmethod
    def model_class() -> type[SamplingParser]:
        """The class of the trained parsers."""
        return SamplingParser

    @staticmethod
    def source_of(
        parser: SamplingParser, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> SamplingSource:
        """A trained parser as a source of candidates."""
        return SamplingSource(parser, inventory=inventory, n_threads=n_threads, name=name)

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on."""
        tables = [e for e in map(Extra.parse, self.settings.extra) if e.kind == "table"]
        return [
            *TrainableParser.training_key(self),
            *(fingerprint(Path(extra.argument)) for extra in tables),
        ]

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        return words * self.settings.epochs * SECONDS[self.settings.order]

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> SamplingParser:
        """A parser trained on sentences; with dev the best of its epochs."""
        return train_sampling_parser(
            sentences,
            dev,
            settings=self.settings,
            n_threads=n_threads,
            progress=Counter(report),
        )


class Counter:
    """Makes steps of one count out of a training's stages and epochs."""

    def __init__(self, report: StepReport) -> None:
        self._report = report
        self._before: dict[str, int] = {}
        self._size: dict[str, int] = {}

    def __call__(self, progress: EpochProgress) -> None:
        """Report where the training stands; later stages add to the number of steps."""
        stage = progress.stage
        if stage not in self._size:
            self._before[stage] = sum(self._size.values())
            self._size[stage] = progress.epochs * progress.total
        done = (progress.epoch - 1) * progress.total + progress.done
        self._report(self._before[stage] + done, sum(self._size.values()))
