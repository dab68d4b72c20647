"""Folders as a Universal Dependencies release has them, made up, for several test modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memorising_parser import gold_sentences

from tk_spacy.treebank.conllu import write_conllu

QUICK: dict[str, Any] = {
    "parsers.names": "sampling",
    "tags.source": "gold",
    "lists.k": 4,
    "machine.processes": 1,
    "parsers.sampling.epochs": 1,
    "parsers.sampling.order": 1,
    "parsers.sampling.pruner_epochs": 1,
    "parsers.sampling.bits": 14,
    "parsers.sampling.pruner_bits": 12,
    "parsers.sampling.restarts": 2,
    "reranker.iterations": 1,
    "reranker.bits": 10,
    "reranker.manual_parts": "arc",
    "training.tuning_folds": 0,
}
"""Settings of a training that takes a second; what its model is worth does not matter."""


def quick_arguments() -> list[str]:
    """The same for the command line."""
    return [part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")]


def write_folder(folder: Path, *, start: int, stem: str | None = "x_syn", **sizes: int) -> Path:
    """A folder of a treebank with so many sentences in each part (train, dev, test).

    The sentences are those from number `start` on, none twice: see `gold_sentences`.
    stem: of the files' names before "-ud-"; None for train.conllu and so on.
    """
    folder.mkdir(parents=True)
    for part, size in sizes.items():
        name = f"{part}.conllu" if stem is None else f"{stem}-ud-{part}.conllu"
        write_conllu(folder / name, gold_sentences(size, start=start))
        start += size
    return folder
