"""The training of a tokenizer as a task beside others, taken over where it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tk_spacy.ensemble.trained_parsers import (
    train_and_record,
    trained_state,
    training_fingerprint,
    training_seconds,
)
from tk_spacy.parallel.executor import Surroundings, Task
from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec
from tk_spacy.tokenizing.training_text import training_text
from tk_spacy.tokenizing.udpipe import UdpipeTokenizer
from tk_spacy.treebank.sentence import Sentence

COST_OF_AN_EPOCH = 8_000.0
"""Of how many words a tagger is trained in the same time: an epoch is as long for any treebank."""


class TokenizerJob:
    """One training, as plain data for its process.

    directory: where the tokenizer is kept; what an earlier run trained on the same text with the
        same settings is taken over, whatever has become of tags and trees.
    """

    def __init__(
        self,
        spec: UdpipeTokenizerSpec,
        train: Sequence[Sentence],
        dev: Sequence[Sentence],
        directory: Path,
    ) -> None:
        self.spec, self.train, self.dev, self.directory = spec, train, dev, directory
        any_spec: Any = spec  # its key and name are asked for, as a parser's are
        self.fingerprint = training_fingerprint(any_spec, training_text(train), training_text(dev))

    @property
    def is_kept(self) -> bool:
        """Whether it is done."""
        return trained_state(self.directory, self.fingerprint) == "kept"

    def tasks(self) -> list[Task]:
        """What is to be done: the training, or nothing."""
        if self.is_kept:
            return []
        cost = self.spec.settings.epochs * COST_OF_AN_EPOCH
        return [Task(name="training the tokenizer", work=_train, args=(self,), cost=cost)]

    def open(self) -> UdpipeTokenizer:
        """The trained tokenizer."""
        opened: UdpipeTokenizer = self.spec.open(self.directory)
        return opened

    @property
    def seconds(self) -> float:
        """Wall time of the training, also where it was taken over."""
        return training_seconds(self.directory)


def _train(here: Surroundings, job: TokenizerJob) -> None:
    any_spec: Any = job.spec
    job.directory.parent.mkdir(parents=True, exist_ok=True)
    train_and_record(
        any_spec, job.train, job.dev, job.directory,
        fingerprint=job.fingerprint, n_threads=here.n_threads,
        report=lambda done, of: here.report(done / max(of, 1)),
    )  # fmt: skip
