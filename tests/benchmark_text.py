"""A trained model on raw text: aligned F1 by udeval, and words a second of `nlp.pipe`.

    python tests/benchmark_text.py f1 MODEL TREEBANK [--part dev]      prints a row of docs/text.md
    python tests/benchmark_text.py speed MODEL TREEBANK [--profile FILE]

The text is that of the treebank's comments `# text`, one paragraph after the other; where it has no
paragraphs all of it is one.
"""

from __future__ import annotations

import cProfile
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import spacy
import typer
from udtools import udeval

from tk_spacy.parallel.threads import available_threads
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.treebank.surface import breaks_of, surface_tokens, text_comment, text_of
from tk_spacy.workflows.train.treebanks import find_treebank

METRICS = ("Tokens", "Sentences", "Words", "UPOS", "UFeats", "Lemmas", "UAS", "LAS")
SENTENCES, ROUNDS = 20, 3

app = typer.Typer(add_completion=False)


def file_of(treebank: Path, part: str) -> Path:
    """Train, dev or test file of a treebank's folder."""
    return find_treebank(treebank).files[part][0]


def texts(file: Path) -> Iterator[tuple[bool, str]]:
    """Whether a paragraph begins, and the text, of each sentence."""
    for sentence in load_treebank(file):
        text = text_comment(sentence)
        yield any(breaks_of(sentence)), text or text_of(surface_tokens(sentence))


@app.command("f1")
def print_f1(model: Path, treebank: Path, part: Annotated[str, typer.Option()] = "test") -> None:
    """Parse the raw text of a part and score it."""
    gold = file_of(treebank, part)
    raw = "".join(("\n\n" if new else " ") + text for new, text in texts(gold)).strip() + "\n"
    with tempfile.TemporaryDirectory() as folder:
        source, parsed = Path(folder, "raw.txt"), Path(folder, "parsed.conllu")
        source.write_text(raw, encoding="utf-8")
        command = [sys.executable, "-m", "tk_spacy", "rerank", model, source, "-o", parsed]
        subprocess.run(list(map(str, command)), check=True)
        found = udeval.evaluate(*(udeval.load_conllu_file(str(path)) for path in (gold, parsed)))
    typer.echo(f"| {treebank.name.removeprefix('UD_')} | " + " | ".join(METRICS) + " |")
    typer.echo("| | " + " | ".join(f"{100 * found[name].f1:.2f}" for name in METRICS) + " |")


@app.command("speed")
def print_speed(
    model: Path,
    treebank: Path,
    part: Annotated[str, typer.Option()] = "test",
    profile: Annotated[Path | None, typer.Option(help="for `python -m pstats`")] = None,
) -> None:
    """Words a second of `nlp.pipe` on texts of twenty sentences, the median of three rounds."""
    nlp = spacy.load(model)
    lines = [text for _, text in texts(file_of(treebank, part))]
    docs = [" ".join(lines[i : i + SENTENCES]) for i in range(0, len(lines), SENTENCES)]
    list(nlp.pipe(docs[:2]))  # what is made once
    found = []
    profiler = cProfile.Profile()
    for i in range(ROUNDS):
        if profile is not None and i == ROUNDS - 1:
            profiler.enable()
        start = time.perf_counter()
        words = sum(len(doc) for doc in nlp.pipe(docs))
        found.append(words / (time.perf_counter() - start))
        profiler.disable()
    if profile is not None:
        profiler.dump_stats(profile)
        found.pop()
    typer.echo(
        f"{words} words, {statistics.median(found):.0f} words/s on {available_threads()} cores"
    )


if __name__ == "__main__":
    app()
