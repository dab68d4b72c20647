"""The view of UDPipe's parser, trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from tk_spacy.candidates import LabelInventory
from tk_spacy.treebank import Sentence
from tk_spacy.udpipe.library import version
from tk_spacy.udpipe.parser import UdpipeParser
from tk_spacy.udpipe.settings import SEARCH_ONLY, UdpipeSettings
from tk_spacy.udpipe.source import UdpipeSource
from tk_spacy.udpipe.training import train_udpipe_parser
from tk_spacy.views.protocol import UDPIPE, Report

# Part of every fingerprint: raise it when the same settings give another parser than before.
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpipeView:
    """A UDPipe parser with its settings."""

    name: ClassVar[str] = UDPIPE
    sources: ClassVar[tuple[str, ...]] = UdpipeSource.names
    given: ClassVar[bool] = False

    settings: UdpipeSettings

    @classmethod
    def from_settings(cls, changes: Mapping[str, Any]) -> UdpipeView:
        """A view with some settings changed from their defaults.

        Raises UserError for bad ones, and where UDPipe is not installed.
        """
        version()
        return cls(settings=UdpipeSettings.from_dict(changes))

    def about(self) -> dict[str, Any]:
        """The settings for the model's own description."""
        return {**self.settings.to_dict(), "udpipe": version()}

    def training_key(self) -> list[Any]:
        """All that a trained parser depends on."""
        settings = self.settings.to_dict()
        kept = {name: settings[name] for name in settings if name not in SEARCH_ONLY}
        return [FORMAT, version(), kept]

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
        train_udpipe_parser(train, dev, settings=self.settings, report=report).write_files(
            directory
        )

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> UdpipeSource:
        """The parser that `train` wrote, searching as the settings say now."""
        parser = replace(UdpipeParser.from_disk(directory), settings=self.settings)
        return UdpipeSource(parser, inventory=inventory)
