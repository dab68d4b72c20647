"""Parsers trained on the whole treebank, resumable.

Their trainings are tasks, so that they can run beside the folds of the jackknife: they are one
training more than there are folds, and would leave cores idle if they came before or after them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tk_spacy.ensemble.jackknife import FoldProgress
from tk_spacy.ensemble.trained_parsers import (
    State,
    train_and_record,
    trained_state,
    training_fingerprint,
)
from tk_spacy.errors import UserError
from tk_spacy.parallel.executor import Surroundings, Task, TaskError, make_executor, run_all
from tk_spacy.parallel.plain_data import files_of
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.treebank.conllu import Sentence


class WholeTraining:
    """Trains the parsers on all of train.

    directory: where each parser is kept in a directory of its name; one that is there for the same
        data and settings is taken instead of training.
    """

    def __init__(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        parsers: Sequence[ParserSpec],
        *,
        directory: str | os.PathLike[str],
    ) -> None:
        self.directory = Path(directory)
        self._data = train, dev
        texts = [[sentence.to_conllu() for sentence in part] for part in self._data]
        self._jobs = [
            (parser, self.directory / parser.name, training_fingerprint(parser, *texts))
            for parser in parsers
            if not parser.given
        ]

    @property
    def kept(self) -> list[str]:
        """Names of the parsers that are there already."""
        return self._of_state("kept")

    @property
    def damaged(self) -> list[str]:
        """Names of the parsers that are there, but not as they were written: made again."""
        return self._of_state("damaged")

    def _of_state(self, state: State) -> list[str]:
        return [
            parser.name for parser, place, key in self._jobs if trained_state(place, key) == state
        ]

    def tasks(self) -> list[Task]:
        """The trainings that are missing; they report `FoldProgress` of no fold."""
        kept = self.kept
        words = sum(map(len, self._data[0]))
        return [
            Task(
                name=f"training {parser.name} on all of train",
                work=_train,
                args=(*self._data, parser, directory, fingerprint),
                cost=parser.seconds(words),
                reads=files_of(parser),
                writes=(directory,),
            )
            for parser, directory, fingerprint in self._jobs
            if parser.name not in kept
        ]

    def run(
        self,
        *,
        processes: int = 1,
        n_threads: int | None = None,
        progress: Callable[[FoldProgress], None] | None = None,
    ) -> None:
        """Train what is missing, with no folds beside it.

        processes: parsers trained at a time, each on one thread; 1 trains them in this process, on
            n_threads.
        Raises UserError where a training cannot be done, or its process was killed.
        """
        tasks = self.tasks()
        executor = make_executor(tasks, processes=processes, n_threads=n_threads)
        try:
            run_all(executor, tasks, report=progress and (lambda _, step: progress(step)))
        except TaskError as error:
            raise UserError(f"{error}; what is finished is kept in {self.directory}") from error


def _train(
    here: Surroundings,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    parser: ParserSpec,
    directory: Path,
    fingerprint: str,
) -> None:
    def on_step(done: int, of: int) -> None:
        here.report(FoldProgress(None, "train", done, of, parser.name))

    train_and_record(
        parser, train, dev, directory,
        fingerprint=fingerprint, n_threads=here.n_threads, report=on_step,
    )  # fmt: skip
