"""The parsers' parsers of the whole treebank, trained beside the folds of the jackknife, resumable.

They are one training more than there are folds, and would leave all cores but one idle if they came
before or after them.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tk_spacy.ensemble.trained_parsers import (
    State,
    train_and_record,
    trained_state,
    training_fingerprint,
)
from tk_spacy.errors import UserError
from tk_spacy.parallel.processes import begin_child, spawning
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.treebank.conllu import Sentence

ParserReport = Callable[[str, int, int], None]
"""Called with a parser's name, the steps of its training that are done, and their number."""


class WholeTraining:
    """Trains the parsers on all of train, one after the other, in a process of its own or in this.

    directory: where each parser is kept in a directory of its name; one that is there for the same
        data and settings is taken instead of training.
    Use it as a context manager: leaving the block stops a training that is not finished.
    """

    def __init__(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        parsers: Sequence[ParserSpec],
        *,
        directory: str | os.PathLike[str],
        n_threads: int | None = None,
        report: ParserReport | None = None,
    ) -> None:
        self.directory = Path(directory)
        self._data = train, dev
        texts = [[sentence.to_conllu() for sentence in part] for part in self._data]
        self._jobs = [
            (parser, self.directory / parser.name, training_fingerprint(parser, *texts))
            for parser in parsers
            if not parser.given
        ]
        self._n_threads = n_threads
        self._report = report or (lambda parser, done, total: None)
        self._process: Any = None
        self._receiver: Any = None
        self._error: BaseException | None = None

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

    @property
    def is_done(self) -> bool:
        """Whether all parsers are there."""
        return len(self.kept) == len(self._jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def start(self) -> None:
        """Begin in a process of its own; nothing to do where the parsers are there."""
        if self.is_done or self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_train_in_process, args=(*self._data, self._jobs, sender), daemon=True
        )
        with spawning():
            self._process.start()
        sender.close()

    def poll(self, timeout: float = 0.0) -> None:
        """Hand on the progress that the process has reported."""
        try:
            while self._receiver is not None and self._receiver.poll(timeout):
                message = self._receiver.recv()
                if isinstance(message, BaseException):
                    self._error = message
                else:
                    self._report(*message)
        except EOFError:  # the process is over
            self._receiver = None

    def finish(self) -> None:
        """Wait for the parsers, or train them here and now if `start` was not called.

        Raises UserError where a training cannot be done, RuntimeError where its process died.
        """
        if self._process is None and not self.is_done:
            _train(*self._data, self._jobs, self._n_threads, self._report)
        while self._receiver is not None:
            self.poll(0.2)
        if self._process is not None:
            self._process.join()
        if self._error is not None:
            raise self._error
        if not self.is_done:
            raise RuntimeError(
                "the process that trained spaCy's parser was killed (most often: out of memory)"
            )


def _train(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    jobs: Sequence[tuple[ParserSpec, Path, str]],
    n_threads: int | None,
    report: ParserReport,
) -> None:
    for parser, directory, fingerprint in jobs:

        def on_step(done: int, of: int, name: str = parser.name) -> None:
            report(name, done, of)

        train_and_record(
            parser, train, dev, directory,
            fingerprint=fingerprint, n_threads=n_threads, report=on_step,
        )  # fmt: skip


def _train_in_process(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    jobs: Sequence[tuple[ParserSpec, Path, str]],
    sender: Any,
) -> None:
    begin_child()
    try:
        # One thread: its neighbours are the folds' processes.
        _train(train, dev, jobs, 1, lambda *step: sender.send(step))
    except UserError as error:
        sender.send(error)
    except Exception as error:
        sender.send(RuntimeError(f"training spaCy's parser failed: {error!r}"))
    finally:
        sender.close()
