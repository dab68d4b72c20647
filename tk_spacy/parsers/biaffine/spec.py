"""The parser of the biaffine parser, trained here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Report, Sentences
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.settings import SEARCH_ONLY, BiaffineSettings
from tk_spacy.parsers.biaffine.source import BiaffineSource
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.parsers.names import BIAFFINE
from tk_spacy.parsers.trainable import TrainableParser


@dataclass(frozen=True, slots=True, kw_only=True)
class BiaffineSpec(TrainableParser[BiaffineSettings]):
    """A biaffine parser with its settings."""

    format: ClassVar[int] = 1
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = BIAFFINE

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> BiaffineSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""
        return BiaffineSettings.from_dict(changes)

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: Report
    ) -> BiaffineParser:
        """A parser trained on sentences, on one thread, and without a look at dev."""
        return train_biaffine_parser(sentences, settings=self.settings, report=report)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> BiaffineSource:
        """The parser that `train` wrote, searching as the settings say now."""
        parser = replace(BiaffineParser.from_disk(directory), settings=self.settings)
        return BiaffineSource(parser, inventory=inventory)
