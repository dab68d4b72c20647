"""What the specs of parsers that are trained here have in common, and those of given ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.sources import ParserSource
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.base import Sentences, Settings, Shared, StepReport, StoredParser

SECONDS_A_WORD = 0.003

OwnSettings = TypeVar("OwnSettings", bound=Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainableParser(ABC, Generic[OwnSettings]):
    """A parser that is trained here, with its settings: a `ParserSpec`.

    kind: name of its kind.
    name: of the parser and its scores; that of the kind, unless there are several of it.
    format: part of every fingerprint; to be raised when the same settings give another parser than
        before.  search_only: the settings that a trained parser does not depend on.
    """

    kind: ClassVar[str]
    format: ClassVar[int]
    search_only: ClassVar[tuple[str, ...]] = ()
    given: ClassVar[bool] = False

    settings: OwnSettings
    name: str = ""  # each kind has its own

    @staticmethod
    @abstractmethod
    def read_settings(changes: Mapping[str, Any]) -> OwnSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""

    @staticmethod
    @abstractmethod
    def model_class() -> type[StoredParser]:
        """The class of the trained parsers."""

    @staticmethod
    @abstractmethod
    def source_of(
        parser: Any, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> ParserSource:
        """A trained parser as a source of candidates; name: of its scores."""

    @classmethod
    def make(cls, name: str, settings: Mapping[str, Any], shared: Shared) -> Self:
        """One for a training, with settings changed from their defaults.

        Raises UserError for bad ones.
        """
        return cls.from_settings({"seed": shared.seed, **settings}, name=name)

    @classmethod
    def from_settings(cls, changes: Mapping[str, Any], *, name: str | None = None) -> Self:
        """One with some settings changed from their defaults.  Raises UserError for bad ones."""
        parser = cls(settings=cls.read_settings(changes))
        return parser if name is None else replace(parser, name=name)

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
        kept = {name: settings[name] for name in settings if name not in self.search_only}
        return [self.format, kept]

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core: as many a parser's; see `Trainable`."""
        return words * SECONDS_A_WORD

    def search_key(self) -> list[Any]:
        """What its lists depend on besides."""
        return [getattr(self.settings, name) for name in self.search_only]

    def check(self, sentences: Sentences) -> None:
        """Nothing to check: every sentence that can be read can be parsed."""

    @abstractmethod
    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> StoredParser:
        """A parser trained on sentences; dev may be empty."""

    def fit_shares(
        self,
        sentences: Sentences,
        shares: Sequence[ArcShares],
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> StoredParser:
        """A parser that learns from shares of each sentence's arcs in the place of trees.

        sentences: have trees, too.  One that can only learn from trees gets the likeliest ones.
        The result does not depend on n_threads.
        """
        trees = [own.likeliest_tree(s) for s, own in zip(sentences, shares, strict=True)]
        return self.fit(trees, (), n_threads=n_threads, report=report)

    def train(
        self,
        train: Sentences,
        dev: Sentences,
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train a parser and write its files."""
        self.fit(train, dev, n_threads=n_threads, report=report).write_files(directory)

    def open(
        self, directory: Path, *, inventory: LabelInventory, n_threads: int | None = None
    ) -> ParserSource:
        """The parser that `train` wrote, searching as the settings say now."""
        parser: Any = self.model_class().from_disk(directory)
        parser = replace(parser, settings=self.settings)
        return self.source_of(parser, inventory=inventory, n_threads=n_threads, name=self.name)


class GivenParser:
    """A parser that is there already, or its trees are: no training of a `ParserSpec`."""

    __slots__ = ()
    given: ClassVar[bool] = True

    def seconds(self, words: int) -> float:
        """Nothing is trained."""
        return 0.0

    def train(
        self,
        train: Sentences,
        dev: Sentences,
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Nothing: it is trained."""
