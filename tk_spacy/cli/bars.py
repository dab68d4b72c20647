"""Progress on stderr: bars with the time left on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

from tk_spacy.cli.shell import Shell
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.tables import show_seconds

ROOM_FOR_A_BAR = 100
"""Columns of a terminal from which on there are bars beside the figures."""


@contextmanager
def progress_of(shell: Shell) -> Iterator[Progress]:
    """The progress that fits the command's mode and its stderr."""
    if shell.quiet:
        yield Progress()
    elif shell.err.is_terminal:
        with Bars(shell) as bars:
            yield bars
    else:
        yield Lines(shell)


class Lines(Progress):
    """One line when a stage or a step of it ends: for logs, where bars are noise."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._began: dict[str, float] = {}
        self._finished: set[str] = set()

    def begin(self, stage: str) -> None:
        """Remember when."""
        self._finished.clear()
        self._began[stage] = time.perf_counter()
        self._shell.note(f"{stage} ...")

    def update(self, stage: str, done: int, total: int) -> None:
        """Of a stage's own steps nothing is said; of each named one within it, when it is done."""
        if stage not in self._began and stage not in self._finished and done >= total:
            self._finished.add(stage)
            self._shell.note(f"{stage}: done")

    def end(self, stage: str) -> None:
        """Say how long it took."""
        spent = time.perf_counter() - self._began.pop(stage, time.perf_counter())
        self._shell.note(f"{stage}: {show_seconds(spent)}")

    def note(self, text: str) -> None:
        """Show it."""
        self._shell.note(text)

    def warn(self, text: str) -> None:
        """Show it."""
        self._shell.warn(text)


class TimesColumn(ProgressColumn):
    """How long a stage has taken, and about how long it will take yet."""

    def render(self, task: Task) -> Text:
        """Such as "1:02 elapsed, 3:20 left"; what is left follows from what is done."""
        spent = (task.finished_time if task.finished else task.elapsed) or 0.0
        text = Text(f"{clock(spent)} elapsed", style="progress.elapsed")
        if not task.finished and task.total and task.completed:
            left = spent * (task.total - task.completed) / task.completed
            text.append(f", {clock(left)} left", style="progress.remaining")
        return text


def clock(seconds: float) -> str:
    """Seconds as 0:42, 12:05 or 1:02:33."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class Bars(Progress):
    """One bar for each stage, and for each named step of it that counts."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        # On a narrow terminal the figures matter more than the picture; names fold, times do not.
        bar = [BarColumn(bar_width=30)] if shell.err.width >= ROOM_FOR_A_BAR else []
        self._rich = RichProgress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}", markup=False, table_column=Column()),
            *bar,
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimesColumn(table_column=Column(no_wrap=True)),
            console=shell.err,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bars:
        self._rich.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._rich.stop()

    def begin(self, stage: str) -> None:
        """A bar that only moves until it is told how much there is to do."""
        self._tasks[stage] = self._rich.add_task(stage, total=None)

    def update(self, stage: str, done: int, total: int) -> None:
        """Move a bar."""
        if stage not in self._tasks:
            self._tasks[stage] = self._rich.add_task(stage, total=total)
        self._rich.update(self._tasks[stage], completed=done, total=total)

    def end(self, stage: str) -> None:
        """Fill the bar."""
        task = self._tasks.pop(stage, None)
        if task is not None:
            total = self._rich.tasks[self._rich.task_ids.index(task)].total or 1
            self._rich.update(task, completed=total, total=total)

    def note(self, text: str) -> None:
        """Show it above the bars."""
        self._shell.note(text)

    def warn(self, text: str) -> None:
        """Show it above the bars."""
        self._shell.warn(text)
