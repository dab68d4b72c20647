"""The upstream parser of the whole treebank, trained beside the folds of the jackknife, resumable.

It is one training more than there are folds, and would leave all cores but one idle if it came
before or after them.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import spacy

from tk_spacy.errors import UserError
from tk_spacy.files import replace_directory
from tk_spacy.processes import begin_child, spawning
from tk_spacy.treebank import Sentence
from tk_spacy.upstream.jackknife import UpstreamSettings
from tk_spacy.upstream.train_parser import TrainingStep, load_upstream_config, train_upstream

if TYPE_CHECKING:
    from spacy.language import Language

FORMAT = 1
RECORD = "training.json"
Report = Callable[[int, int], None]


class WholeTraining:
    """Trains a parser on all of train, in a process of its own or in this one.

    directory: where the pipeline is kept; one that is there for the same data and settings is
        taken instead of training.
    report: called with the training steps done and their number.
    Use it as a context manager: leaving the block stops a training that is not finished.
    """

    def __init__(
        self,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        *,
        directory: str | os.PathLike[str],
        settings: UpstreamSettings,
        report: Report | None = None,
    ) -> None:
        self.directory = Path(directory)
        self._train, self._dev, self._settings = train, dev, settings
        self._report = report or (lambda done, total: None)
        self._fingerprint = _fingerprint(train, dev, settings)
        self._process: Any = None
        self._receiver: Any = None
        self._error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether the pipeline is there."""
        try:
            record = json.loads((self.directory / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(record == {"fingerprint": self._fingerprint})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None and self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def start(self) -> None:
        """Begin in a process of its own; nothing to do where the pipeline is there."""
        if self.is_done or self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_train_in_process,
            args=(
                self._train,
                self._dev,
                self.directory,
                self._settings,
                self._fingerprint,
                sender,
            ),
            daemon=True,
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

    def result(self) -> Language:
        """The pipeline, trained here and now if `start` was not called.

        Raises UserError where the training cannot be done, RuntimeError where its process died.
        """
        if self._process is None and not self.is_done:
            _train(
                self._train, self._dev, self.directory, self._settings, self._fingerprint,
                self._report,
            )  # fmt: skip
        while self._receiver is not None:
            self.poll(0.2)
        if self._process is not None:
            self._process.join()
        if self._error is not None:
            raise self._error
        if not self.is_done:
            raise RuntimeError(
                "the process that trained the upstream parser was killed (most often: out of "
                "memory)"
            )
        return spacy.load(self.directory)


def _fingerprint(
    train: Sequence[Sentence], dev: Sequence[Sentence], settings: UpstreamSettings
) -> str:
    config = load_upstream_config(settings.config, max_steps=settings.max_steps, seed=settings.seed)
    digest = hashlib.sha256(
        json.dumps([FORMAT, spacy.about.__version__, settings.backward, config.to_str()]).encode()
    )
    for name, part in (("train", train), ("dev", dev)):
        digest.update(name.encode())
        for sentence in part:
            digest.update(sentence.to_conllu().encode())
    return digest.hexdigest()


def _train(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    directory: Path,
    settings: UpstreamSettings,
    fingerprint: str,
    report: Report,
) -> None:
    def on_step(step: TrainingStep) -> None:
        report(step.step, step.of)

    nlp = train_upstream(
        train,
        dev=dev,
        config=settings.config,
        max_steps=settings.max_steps,
        seed=settings.seed,
        backward=settings.backward,
        progress=on_step,
    )
    with replace_directory(directory) as temporary:
        nlp.to_disk(temporary)
        (temporary / RECORD).write_text(
            json.dumps({"fingerprint": fingerprint}) + "\n", encoding="utf-8"
        )


def _train_in_process(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    directory: Path,
    settings: UpstreamSettings,
    fingerprint: str,
    sender: Any,
) -> None:
    begin_child()
    try:
        _train(train, dev, directory, settings, fingerprint, lambda *step: sender.send(step))
    except UserError as error:
        sender.send(error)
    except Exception as error:
        sender.send(RuntimeError(f"training the upstream parser failed: {error!r}"))
    finally:
        sender.close()
