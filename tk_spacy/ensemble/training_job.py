"""One training of a parser, tagger or tokenizer as a task, taken over where it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from tk_spacy.ensemble.trained_parsers import (
    train_and_record,
    trained_state,
    training_fingerprint,
    training_seconds,
)
from tk_spacy.parallel.executor import Surroundings, Task
from tk_spacy.parallel.plain_data import files_of
from tk_spacy.parsers.base import Trainable
from tk_spacy.treebank.sentence import Sentence


class _Opens(Trainable, Protocol):
    """What opens itself with nothing but its directory."""

    def open(self, directory: Path) -> Any: ...


def conllu_texts(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Each sentence as CoNLL-U."""
    return (sentence.to_conllu() for sentence in sentences)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingJob:
    """One training, as plain data for its process.

    name: of its task.  spec: what is trained.
    directory: where the result is kept; what an earlier run trained on the same with the same
        settings is taken over.
    texts_of: a function of a module that gives all it learns from of sentences; what else they
        have may change without a new training.
    """

    name: str
    spec: _Opens
    train: Sequence[Sentence]
    dev: Sequence[Sentence]
    directory: Path
    texts_of: Callable[[Sequence[Sentence]], Iterable[str]] = conllu_texts

    @cached_property
    def fingerprint(self) -> str:
        """Of all that the result depends on."""
        return training_fingerprint(self.spec, self.texts_of(self.train), self.texts_of(self.dev))

    @property
    def is_kept(self) -> bool:
        """Whether it is done."""
        return trained_state(self.directory, self.fingerprint) == "kept"

    @property
    def task(self) -> Task:
        """The training; it reports the share that is done."""
        words = sum(map(len, self.train))
        return Task(
            name=self.name,
            work=_train,
            args=(self,),
            cost=self.spec.seconds(words),
            reads=files_of(self.spec),
            writes=(self.directory,),
        )

    @property
    def seconds(self) -> float:
        """Wall time of the training, also where it was taken over."""
        return training_seconds(self.directory)

    def open(self) -> Any:
        """What was trained."""
        return self.spec.open(self.directory)


def _train(here: Surroundings, job: TrainingJob) -> None:
    job.directory.parent.mkdir(parents=True, exist_ok=True)
    train_and_record(
        job.spec, job.train, job.dev, job.directory,
        fingerprint=job.fingerprint, n_threads=here.n_threads,
        report=lambda done, of: here.report(done / max(of, 1)),
    )  # fmt: skip
