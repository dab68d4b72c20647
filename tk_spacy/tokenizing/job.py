"""The training of a tokenizer beside others, taken over where it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tk_spacy.ensemble.training_job import TrainingJob
from tk_spacy.tokenizing.spec import UdpipeTokenizerSpec
from tk_spacy.tokenizing.training_text import training_text
from tk_spacy.treebank.sentence import Sentence


def tokenizer_job(
    spec: UdpipeTokenizerSpec,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    directory: Path,
) -> TrainingJob:
    """The training; it is not done again for other tags and trees of the same text."""
    return TrainingJob(
        name="training the tokenizer",
        spec=spec,
        train=train,
        dev=dev,
        directory=directory,
        texts_of=training_text,
    )
