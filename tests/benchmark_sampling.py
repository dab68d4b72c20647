"""Speed of a sampling parser: 1-best and k-best, and how both grow with sentence length.

    python tests/benchmark_sampling.py MODEL FILE.conllu [--k 25] [--threads 2] [--repeat 5]

MODEL is a directory that `tk-spacy train-parser` or `tk-spacy train` wrote.  Long
sentences are made by joining those of FILE.  Times are medians over the repeats, with their range;
1-best and k-best take turns, so that a busy machine burdens both alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.sampling.parser import SamplingParser, read_parser
from tk_spacy.treebank.conllu import Sentence, load_treebank

LENGTHS = (10, 25, 50, 100, 200, 500)


def joined(sentences: list[Sentence], length: int, count: int) -> list[Sentence]:
    """`count` sentences of `length` words each, cut from the text of others."""
    columns = ("forms", "lemmas", "upos", "xpos", "feats")
    words = [
        word
        for sentence in sentences
        for word in zip(*(getattr(sentence, name) for name in columns), strict=True)
    ]
    while len(words) < length * count:
        words += words
    return [
        Sentence.from_columns(
            **{
                name: [word[j] for word in words[i * length : (i + 1) * length]]
                for j, name in enumerate(columns)
            }
        )
        for i in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def parse(parser: SamplingParser, sentences: list[Sentence], threads: int) -> None:
    """The best tree of each sentence."""
    for _ in parser.parse(sentences, n_threads=threads):
        pass


def propose(parser: SamplingParser, sentences: list[Sentence], k: int, threads: int) -> None:
    """The list of each sentence."""
    for _ in parser.kbest(sentences, k=k, inventory=LabelInventory(), n_threads=threads):
        pass


def main(
    model: Path,
    file: Path,
    k: Annotated[int, typer.Option(min=2)] = 25,
    threads: Annotated[int, typer.Option(min=1)] = 2,
    repeat: Annotated[int, typer.Option(min=1)] = 5,
) -> None:
    """Measure and print."""
    parser = read_parser(model)
    sentences = load_treebank(file)
    table = Table(title=f"tokens/s, {threads} threads, median of {repeat} (least to most)")
    for name in ("sentences", "1-best", f"{k}-best"):
        table.add_column(name)
    sets = [(file.name, sentences)]
    sets += [(f"{n} words", joined(sentences, n, max(2, 4000 // n))) for n in LENGTHS]
    for name, items in sets:
        words = sum(map(len, items))
        best = partial(parse, parser, items, threads)
        lists = partial(propose, parser, items, k, threads)
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(repeat):
            times[0].append(seconds(best))
            times[1].append(seconds(lists))
        table.add_row(
            name,
            *(
                f"{words / median(t):,.0f} ({words / max(t):,.0f} to {words / min(t):,.0f})"
                for t in times
            ),
        )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
