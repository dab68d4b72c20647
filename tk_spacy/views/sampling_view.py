"""The view of the sampling parser, trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.candidates import LabelInventory
from tk_spacy.extras import Extra
from tk_spacy.places import fingerprint
from tk_spacy.sampling.parser import SamplingParser
from tk_spacy.sampling.settings import SEARCH_ONLY, SamplingSettings
from tk_spacy.sampling.source import SamplingSource
from tk_spacy.sampling.training import EpochProgress, train_sampling_parser
from tk_spacy.treebank import Sentence
from tk_spacy.views.protocol import SAMPLING, Report

# Part of every fingerprint: raise it when the same settings give another parser than before.
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingView:
    """A sampling parser with its settings.

    name: of the view and its scores; that of the kind, unless there are several of it.
    """

    given: ClassVar[bool] = False

    settings: SamplingSettings
    name: str = SAMPLING

    @classmethod
    def from_settings(cls, changes: Mapping[str, Any], *, name: str = SAMPLING) -> SamplingView:
        """A view with some settings changed from their defaults.  Raises UserError for bad ones."""
        settings = SamplingSettings.from_dict({**SamplingSettings().to_dict(), **changes})
        return cls(settings=settings, name=name)

    @property
    def sources(self) -> tuple[str, ...]:
        """What its scores are called."""
        return (self.name,)

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description."""
        return self.settings.to_dict()

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on."""
        settings = self.settings.to_dict()
        key: list[Any] = [FORMAT, {n: settings[n] for n in settings if n not in SEARCH_ONLY}]
        tables = [e for e in map(Extra.parse, self.settings.extra) if e.kind == "table"]
        return key + [fingerprint(Path(extra.argument)) for extra in tables]

    def search_key(self) -> list[Any]:
        """What its lists depend on besides."""
        return [getattr(self.settings, name) for name in SEARCH_ONLY]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """Nothing to check: every sentence that can be read can be parsed."""

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: Report,
    ) -> None:
        """Train a parser and write its files."""
        parser = train_sampling_parser(
            train,
            dev,
            settings=self.settings,
            n_threads=n_threads,
            progress=Counter(report),
        )
        parser.write_files(directory)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> SamplingSource:
        """The parser that `train` wrote, searching as the settings say now."""
        parser = replace(SamplingParser.from_disk(directory), settings=self.settings)
        return SamplingSource(parser, inventory=inventory, n_threads=n_threads, name=self.name)


class Counter:
    """Makes steps of one count out of a training's stages and epochs."""

    def __init__(self, report: Report) -> None:
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
