"""How long work tells whoever started it where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tk_spacy.utils.timing import Meter


class Progress:
    """Receives the progress of a command; this one ignores it.

    A stage begins, may report how many of its steps are done, and ends or fails.  Stages do not
    overlap.
    """

    def begin(self, stage: str) -> None:
        """A stage begins."""

    def update(self, stage: str, done: int, total: int) -> None:
        """So many of a stage's steps are done; a stage may have several names within it."""

    def end(self, stage: str) -> None:
        """A stage has ended well; of one that fails nothing more is heard."""

    def note(self, text: str) -> None:
        """Something worth a line, but no reason to worry."""

    def warn(self, text: str) -> None:
        """Something the user should know, one line."""


class Within(Progress):
    """Tells another one the same, each stage with the name of the work that it belongs to.

    what: that name.
    """

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress, self._what = progress, what

    def _named(self, stage: str) -> str:
        return f"{self._what}: {stage.strip()}"

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._progress.begin(self._named(stage))

    def update(self, stage: str, done: int, total: int) -> None:
        """So many of a stage's steps are done."""
        self._progress.update(self._named(stage), done, total)

    def end(self, stage: str) -> None:
        """A stage has ended well."""
        self._progress.end(self._named(stage))

    def note(self, text: str) -> None:
        """Something worth a line."""
        self._progress.note(self._named(text))

    def warn(self, text: str) -> None:
        """Something the user should know."""
        self._progress.warn(self._named(text))


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The stages of one command: timed, and reported."""

    progress: Progress
    meter: Meter

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """A timed stage; yields what takes its progress."""
        self.progress.begin(name)
        with self.meter.stage(name):
            yield lambda done, total: self.progress.update(name, done, total)
        self.progress.end(name)
