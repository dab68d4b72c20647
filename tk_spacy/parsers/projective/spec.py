"""The parser of the projective parser, trained here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.base import Sentences, StepReport
from tk_spacy.parsers.projective.kind import KIND
from tk_spacy.parsers.projective.parser import ProjectiveParser
from tk_spacy.parsers.projective.settings import SEARCH_ONLY, ProjectiveSettings
from tk_spacy.parsers.projective.source import ProjectiveSource
from tk_spacy.parsers.projective.training import check_labels, train_projective_parser
from tk_spacy.parsers.trainable import TrainableParser

SECONDS = 0.0001
"""Of a word in one epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveSpec(TrainableParser[ProjectiveSettings]):
    """A projective parser with its settings."""

    kind: ClassVar[str] = KIND.name
    format: ClassVar[int] = 1
    search_only: ClassVar[tuple[str, ...]] = SEARCH_ONLY

    name: str = KIND.name

    @staticmethod
    def read_settings(changes: Mapping[str, Any]) -> ProjectiveSettings:
        """Settings, some changed from their defaults.  Raises UserError for bad ones."""
        return ProjectiveSettings.from_dict(changes)

    @staticmethod
    def model_class() -> type[ProjectiveParser]:
        """The class of the trained parsers."""
        return ProjectiveParser

    @staticmethod
    def source_of(
        parser: ProjectiveParser, *, inventory: LabelInventory, n_threads: int | None, name: str
    ) -> ProjectiveSource:
        """A trained parser as a source of candidates."""
        return ProjectiveSource(parser, inventory=inventory, n_threads=n_threads, name=name)

    def seconds(self, words: int) -> float:
        """About how long a training takes on one core."""
        return words * self.settings.epochs * SECONDS

    def check(self, sentences: Sentences) -> None:
        """Raises UserError, naming the place, for labels that hold the marks of lifted arcs."""
        check_labels(sentences)

    def fit(
        self, sentences: Sentences, dev: Sentences, *, n_threads: int | None, report: StepReport
    ) -> ProjectiveParser:
        """A parser trained on sentences, without a look at dev."""
        return train_projective_parser(
            sentences, settings=self.settings, n_threads=n_threads, report=report
        )
