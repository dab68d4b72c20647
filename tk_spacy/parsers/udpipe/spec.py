"""The spec of UDPipe's parser: its settings, and how it is trained and opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Sentences, StepReport
from tk_spacy.parsers.trainable import TrainableParser
from tk_spacy.parsers.udpipe.kind import KIND
from tk_spacy.parsers.udpipe.library import version
from tk_spacy.parsers.udpipe.parser import UdpipeParser
from tk_spacy.parsers.udpipe.settings import SEARCH_ONLY, UdpipeSettings
from tk_spacy.parsers.udpipe.source import UdpipeSource
from tk_spacy.parsers.udpipe.training import train_udpipe_parser

SECONDS = 0.0002
"""Of a word in one iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpipeSpec(TrainableParser[UdpipeSettings]):
    """A UDPipe parser with its settings."""

    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 1
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> UdpipeSettings:
        """Settings, some changed from their defaults.

        Raises UserError for bad ones, and where UDPipe is not installed.
        """
        settings = UdpipeSettings.from_dict(changes)
        version()  # after them: what is wrong without UDPipe is wrong with it
        return settings

    @staticmethod
    def model_class() -> type[UdpipeParser]:
        """The class of the trained parsers."""
        return UdpipeParser

    @staticmethod
    def source_of(
        parser: UdpipeParser, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> UdpipeSource:
        """A trained parser as a source of candidates, on one thread."""
        return UdpipeSource(parser, inventory=inventory, name=name)

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description, and UDPipe's version."""
        return {**TrainableParser.about(self), "udpipe": version()}

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on."""
        number, kept = TrainableParser.training_key(self)
        return [number, version(), kept]

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        return words * self.settings.iterations * SECONDS

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> UdpipeParser:
        """A parser trained on sentences; with dev the best of its passes."""
        return train_udpipe_parser(sentences, dev, settings=self.settings, report=report)
