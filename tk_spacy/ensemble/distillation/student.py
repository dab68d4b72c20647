"""A parser that is trained on a lesson: resumable, as all trainings are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.distillation.lesson import Lesson
from tk_spacy.ensemble.training_job import TrainingJob
from tk_spacy.errors import UserError
from tk_spacy.parsers.base import StepReport, StoredParser
from tk_spacy.parsers.trainable import TrainableParser
from tk_spacy.treebank.conllu import Sentence

FORMAT = 1
"""Part of every fingerprint: raise it when the same lesson gives another parser than before."""


def check_student(spec: Any) -> None:
    """Raises UserError for a parser that cannot learn from shares of arcs."""
    if not isinstance(spec, TrainableParser):
        raise UserError(
            f"the {spec.name} parser cannot be distilled: it is not trained here by sentences "
            "alone; name another one, such as biaffine"
        )


@dataclass(frozen=True, eq=False)
class Student:
    """A parser and its lesson: what a `TrainingJob` trains.

    parser: a spec that `check_student` takes.  name: of the student, a directory's too.
    """

    parser: Any
    lesson: Lesson
    name: str

    given = False

    @property
    def kind(self) -> str:
        """Name of the parser's kind."""
        kind: str = self.parser.kind
        return kind

    @cached_property
    def _digest(self) -> str:
        return self.lesson.digest()

    def about(self) -> dict[str, Any]:
        """The parser's settings, and how many words there were to learn from."""
        return {**self.parser.about(), "words": self.lesson.words}

    def training_key(self) -> list[Any]:
        """All that the result depends on beside the sentences."""
        return [FORMAT, self.parser.training_key(), self._digest]

    def check(self, sentences: Sequence[Sentence]) -> None:
        """As the parser does."""
        self.parser.check(sentences)

    def seconds(self, words: int) -> float:
        """As a training of the parser on trees."""
        seconds: float = self.parser.seconds(words)
        return seconds

    def train(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
        *,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        """Train on the lesson, whose sentences `train` are, and write the parser's files."""
        parser: StoredParser = self.parser.fit_shares(
            train, self.lesson.shares, n_threads=n_threads, report=report
        )
        parser.write_files(directory)

    def open(self, directory: Path) -> StoredParser:
        """The parser that `train` wrote."""
        parser: StoredParser = self.parser.model_class().from_disk(directory)
        return parser

    def job(self, folder: Path) -> TrainingJob:
        """Its training, kept in a directory of its name in a folder."""
        return TrainingJob(
            name=f"training the fast {self.name} parser",
            spec=self,
            train=self.lesson.sentences,
            dev=[],
            directory=folder / self.name,
        )
