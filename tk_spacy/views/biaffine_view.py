"""The view of the biaffine parser, trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.biaffine.parser import BiaffineParser
from tk_spacy.biaffine.settings import SEARCH_ONLY, BiaffineSettings
from tk_spacy.biaffine.source import BiaffineSource
from tk_spacy.biaffine.training import train_biaffine_parser
from tk_spacy.candidates import LabelInventory
from tk_spacy.treebank import Sentence
from tk_spacy.views.protocol import BIAFFINE, Report

# Part of every fingerprint: raise it when the same settings give another parser than before.
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BiaffineView:
    """A biaffine parser with its settings."""

    given: ClassVar[bool] = False

    settings: BiaffineSettings
    name: str = BIAFFINE

    @classmethod
    def from_settings(cls, changes: Mapping[str, Any], *, name: str = BIAFFINE) -> BiaffineView:
        """A view with some settings changed from their defaults.  Raises UserError for bad ones."""
        return cls(settings=BiaffineSettings.from_dict(changes), name=name)

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
        return [FORMAT, {name: settings[name] for name in settings if name not in SEARCH_ONLY}]

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
        """Train a parser and write its files; on one thread, and without a look at dev."""
        train_biaffine_parser(train, settings=self.settings, report=report).write_files(directory)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> BiaffineSource:
        """The parser that `train` wrote, searching as the settings say now."""
        parser = replace(BiaffineParser.from_disk(directory), settings=self.settings)
        return BiaffineSource(parser, inventory=inventory)
