"""Time of the reranker's training from ready lists, by iteration.

    python tests/benchmark_training.py [--sentences 12823] [--words 15] [--lists TRAIN.kbest.conllu
        --treebank TRAIN.conllu] [--settings default|paper] [--threads 2]

Without --lists the sentences are those of the made-up language, about as long as --words says, and
their lists are made up too: the right tree and others with some heads and labels changed.
"""

from __future__ import annotations

import resource
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.matching import matched_lists
from tk_spacy.reranker.settings import LEFT_OPEN, Settings, suit
from tk_spacy.reranker.training import learn, prepare_lists
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.benchmark.data import ListMaker


class Choice(StrEnum):
    """Whose settings: the package's for the sampling parser's lists, or the paper's."""

    default = "default"
    paper = "paper"


PAPER = Settings(
    kernel_parts=("arc",), manual_parts=tuple(PART_TYPES), list_features=(), kernel_scale=1.0,
    competitor="best",
)  # fmt: skip


def made_up(n: int, words: int, k: int) -> tuple[list[Sentence], list[CandidateList]]:
    """Sentences whose mean length is about `words`, and lists for them."""
    found: list[Sentence] = []
    total = 0
    for sentence in generate(20 * n, seed=1):
        # Each brings the mean nearer to what is wanted, or keeps within half of it.
        if abs(len(sentence) - words) <= words // 2 or (total < words * len(found)) == (
            len(sentence) > words
        ):
            found.append(sentence)
            total += len(sentence)
        if len(found) == n:
            break
    maker = ListMaker(found, k, np.random.default_rng(2))
    return found, [maker(sentence) for sentence in found]


def main(
    sentences: int = 12_823,
    words: int = 15,
    k: int = 25,
    lists: Path | None = None,
    treebank: Path | None = None,
    settings: Annotated[Choice, typer.Option()] = Choice.default,
    threads: int = 2,
) -> None:
    """Print what a training took."""
    out = Console()
    if lists and treebank:
        trees = load_treebank(treebank)
        found = matched_lists(lists, trees, inventory=LabelInventory(), source="sampling", k=k)
        candidates = list(found)
    else:
        trees, candidates = made_up(sentences, words, k)
    chosen = suit(Settings(), LEFT_OPEN, ("sampling",)) if settings == "default" else PAPER
    start = time.perf_counter()
    schema = Schema.fit(trees)
    items = prepare_lists(schema, trees, candidates, chosen)
    out.print(
        f"{len(trees)} sentences of {np.mean([len(s) for s in trees]):.1f} words, "
        f"{np.mean([len(c) for c in candidates]):.1f} trees each; "
        f"encoded in {time.perf_counter() - start:.1f} s"
    )
    ends: list[float] = []
    start = time.perf_counter()

    def progress(done: int, total: int) -> None:
        if done >= (len(ends) + 1) * len(items):
            ends.append(time.perf_counter() - start)

    _, stats = learn(schema, items, chosen, n_threads=threads, progress=progress)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    each = np.diff([0.0, *ends])
    out.print(
        f"{settings} settings, {threads} threads, {chosen.iterations} iterations: "
        f"{stats.seconds:.1f} s, {stats.updates} updates, {stats.support_parts} support parts, "
        f"peak memory {peak:.0f} MB"
    )
    out.print("seconds an iteration: " + " ".join(f"{value:.1f}" for value in each))


if __name__ == "__main__":
    typer.run(main)
