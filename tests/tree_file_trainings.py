"""Files with trees of made-up parsers, and small trainings with them, made once."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainings import (
    QUICK_SAMPLING,
    folder,
    list_files,
    parser_options,
    treebank,
)

from tk_spacy.evaluation.report import TrainReport
from tk_spacy.treebank.conllu import Sentence, check_tree, load_treebank, write_conllu
from tk_spacy.workflows.train.pipeline import train_pipeline


def some(*words: str, heads: Sequence[int] | None = None, sent_id: str | None = None) -> Sentence:
    chain = list(range(len(words))) if heads is None else heads
    return Sentence.from_columns(
        forms=words, heads=chain, deprels=["root"] * len(words), sent_id=sent_id, single_root=False
    )


def noisy(sentence: Sentence, rng: random.Random, share: float) -> Sentence:
    """The sentence as a parser with many errors would parse it."""
    heads = sentence.heads.tolist()
    for word in range(len(heads)):
        if heads[word] and rng.random() < share:
            changed = [*heads[:word], rng.randint(1, len(heads)), *heads[word + 1 :]]
            heads = changed if check_tree(changed) is None else heads
    return sentence.with_tree(heads, sentence.deprels)


@functools.cache
def single() -> dict[str, Path]:
    """Files with one tree for each sentence of the treebank's parts."""
    place = folder() / "single"
    place.mkdir()
    rng = random.Random(5)
    for name, path in treebank().items():
        parsed = [noisy(sentence, rng, 0.25) for sentence in load_treebank(path)]
        write_conllu(place / f"{name}.conllu", parsed)
    return {name: place / f"{name}.conllu" for name in treebank()}


def file_options(output: Path, *parsers: str, **changes: Any) -> Any:
    """Options of a training with the parsers "single" and "lists" in files."""
    files = {"single": single(), "lists": list_files()}
    given = {name: files[name] for name in files if f"file:{name}" in parsers}
    own = {"parsers": parsers, "parser_files": given, "max_steps": None}
    if "sampling" in parsers:
        own["sampling"] = QUICK_SAMPLING
    else:
        own |= {"folds": None, "processes": None}
    return parser_options(output, **{**own, **changes})


@functools.cache
def mixed_training() -> tuple[Path, TrainReport]:
    """A model with a sampling parser and a parser of single trees."""
    path = folder() / "mixed-model"
    return path, train_pipeline(file_options(path, "sampling", "file:single"))


@functools.cache
def files_training() -> tuple[Path, TrainReport]:
    """A model of files alone."""
    path = folder() / "files-model"
    return path, train_pipeline(file_options(path, "file:lists", "file:single"))
