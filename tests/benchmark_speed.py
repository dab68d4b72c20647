"""How fast `rerank` and `parse --fast` are, files read and written, process start told apart.

    python tests/benchmark_speed.py MODEL FILE [--before CHECKOUT] [--runs 5] [--fast]

FILE is CoNLL-U, parsed with the model's own tags.  --before names a checkout of another version,
compiled in place, which takes turns with this one: outputs must be the same, and the ratio of times
is told.  --fast times `parse --fast`.  Medians of some runs, on an idle machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.treebank.conllu import load_treebank, write_conllu

ROOT = Path(__file__).resolve().parent.parent


def timed(checkout: Path, arguments: list[str]) -> float:
    """Seconds of a command of a checkout's program."""
    code = [sys.executable, "-m", "tk_spacy", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    started = time.perf_counter()
    subprocess.run(code, env=environment, check=True, capture_output=True, cwd=checkout)
    return time.perf_counter() - started


def main(
    model: Path,
    file: Path,
    before: Annotated[Path | None, typer.Option()] = None,
    runs: int = 5,
    fast: bool = False,
) -> None:
    """Measure."""
    sentences = load_treebank(file)
    words = sum(map(len, sentences))
    checkouts = {"this": ROOT} if before is None else {"before": before.resolve(), "this": ROOT}
    command = ["parse", "--fast"] if fast else ["rerank"]
    whole: dict[str, list[float]] = {name: [] for name in checkouts}
    start: dict[str, list[float]] = {name: [] for name in checkouts}
    made: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.conllu"
        write_conllu(one, sentences[:1])
        for number in range(runs):
            for name, checkout in checkouts.items():
                for given, found in ((one, start), (file.resolve(), whole)):
                    out = Path(folder) / f"{name}.{number}.{given.name}.out.conllu"
                    arguments = [str(model.resolve()), str(given), "-o", str(out), "--tags", "own"]
                    found[name].append(timed(checkout, [*command, *arguments, "-q"]))
                    made[name] = out.read_bytes()
    for name in checkouts:
        of_whole, of_start = statistics.median(whole[name]), statistics.median(start[name])
        print(
            f"{name}: {words:,} words in {of_whole:.2f} s, of these {of_start:.2f} s for a file of "
            f"one sentence: {words / (of_whole - of_start):,.0f} tokens/s besides"
        )
    if before is not None:
        ratios = [a / b for a, b in zip(whole["before"], whole["this"], strict=True)]
        same = "the same output" if made["before"] == made["this"] else "ANOTHER OUTPUT"
        print(f"{same}, median ratio of whole times {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    typer.run(main)
