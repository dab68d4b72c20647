"""Uses a loaded pipeline for long: no hang, the same trees, and memory that does not grow.

    python tests/soak.py MODEL FILE [--minutes 60] [--threads 16]

FILE is CoNLL-U, whose words and sentences are given.  In turns: `nlp.pipe` from several threads at
a time, `nlp.pipe` from the main one (which may share it among processes), and `nlp(doc)`.  Fails
where trees differ from the first ones, where a round takes ten times as long as the slowest of the
first three, or where memory after the first third grows by more than a twentieth until the end.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import psutil
import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc

from tk_spacy.treebank.conllu import Sentence, load_treebank

MEGABYTE = 1 << 20
GROWTH = 1.05


def docs_of(nlp: Language, gold: list[Sentence]) -> list[Doc]:
    """Unparsed Docs."""
    return [
        Doc(nlp.vocab, words=list(s.forms), sent_starts=[True] + [False] * (len(s) - 1))
        for s in gold
    ]


def trees(docs: Any) -> list[list[tuple[int, str]]]:
    """Heads and labels."""
    return [[(token.head.i, token.dep_) for token in doc] for doc in docs]


def memory() -> float:
    """Of this process, in megabytes."""
    return psutil.Process().memory_info().rss / MEGABYTE


def main(
    model: Path,
    file: Path,
    minutes: float = 60,
    threads: int = 16,
    each: Annotated[int, typer.Option(help="Sentences of a thread in one round.")] = 100,
) -> None:
    """Soak."""
    nlp = spacy.load(model)
    gold = load_treebank(file)
    expected = trees(nlp.pipe(docs_of(nlp, gold)))
    parts = [gold[i : i + each] for i in range(0, len(gold), each)]
    wanted = [expected[i : i + each] for i in range(0, len(gold), each)]

    def part(number: int) -> bool:
        place = number % len(parts)
        return trees(nlp.pipe(docs_of(nlp, parts[place]))) == wanted[place]

    started = time.monotonic()
    told: list[tuple[float, float, float]] = []
    documents = 0
    while (passed := (time.monotonic() - started) / 60) < minutes:
        begun = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(part, range(len(told), len(told) + 2 * threads)))
        documents += 2 * threads * each
        if not all(found):
            raise SystemExit(f"round {len(told)}: other trees from threads")
        if trees(nlp.pipe(docs_of(nlp, gold))) != expected:
            raise SystemExit(f"round {len(told)}: other trees from nlp.pipe")
        if trees(map(nlp, docs_of(nlp, parts[0]))) != wanted[0]:
            raise SystemExit(f"round {len(told)}: other trees from nlp(doc)")
        documents += len(gold) + each
        seconds = time.monotonic() - begun
        told.append((passed, seconds, memory()))
        if len(told) > 3 and seconds > 10 * max(row[1] for row in told[:3]):
            raise SystemExit(f"round {len(told)} took {seconds:.0f} s")
        print(f"{passed:5.1f} min, {documents:,} Docs, {told[-1][2]:.0f} MB", flush=True)
    middle, last = told[len(told) // 3][2], told[-1][2]
    print(f"{len(told)} rounds, {documents:,} Docs; {middle:.0f} MB after a third, {last:.0f} now")
    if last > GROWTH * middle:
        raise SystemExit("memory grows")


if __name__ == "__main__":
    typer.run(main)
