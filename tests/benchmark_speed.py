"""How fast `rerank` and `parse --fast` are, files read and written, process start told apart.

    python tests/benchmark_speed.py MODEL FILE [--before CHECKOUT] [--runs 5] [--fast]
        [--speed balanced] [--threads N] [--lengths]

FILE is CoNLL-U, parsed with the model's own tags.  --before names a checkout of another version,
compiled in place, which takes turns with this one: outputs must be the same, and the ratio of times
is told.  --fast times `parse --fast`, --speed `rerank --speed`.  --lengths times files of sentences
of one length each, which are FILE's words cut anew, and fits what a sentence and a token cost.
Medians of some runs, on an idle machine.
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

import numpy as np
import typer

from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = (5, 8, 12, 18, 25, 35, 45, 60)
WORDS = 10_000
"""Of each file of one length."""


def timed(checkout: Path, arguments: list[str]) -> float:
    """Seconds of a command of a checkout's program."""
    code = [sys.executable, "-m", "tk_spacy", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    started = time.perf_counter()
    subprocess.run(code, env=environment, check=True, capture_output=True, cwd=checkout)
    return time.perf_counter() - started


def fit_costs(command: list[str], model: Path, sentences: list[Sentence], runs: int) -> None:
    """What a sentence and a token cost, by least squares over files of one length each."""
    forms = [form for sentence in sentences for form in sentence.forms]
    rows, seconds = [], []
    with tempfile.TemporaryDirectory() as folder:

        def measured(name: str, cut: list[list[str]]) -> float:
            given, out = Path(folder) / f"{name}.conllu", Path(folder) / f"{name}.out.conllu"
            write_conllu(given, [Sentence.from_columns(forms=words) for words in cut])
            arguments = [str(model), str(given), "-o", str(out), "--tags", "own", "-q"]
            times = []
            for _ in range(runs):
                out.unlink(missing_ok=True)
                times.append(timed(ROOT, [*command, *arguments]))
            return statistics.median(times)

        start = measured("one", [forms[:2]])
        for length in LENGTHS:
            count = min(WORDS, len(forms)) // length
            cut = [forms[i * length : (i + 1) * length] for i in range(count)]
            rows.append((count, count * length))
            seconds.append(measured(f"of{length}", cut) - start)
            each = 1000 * seconds[-1] / count
            print(
                f"{length:3} words a sentence: {each:.2f} ms, {length / each * 1000:,.0f} tokens/s"
            )
    counts = np.array(rows, dtype=float)
    # Each length counts alike, by its time a sentence.
    (fixed, token), *_ = np.linalg.lstsq(
        counts / counts[:, :1], np.array(seconds) / counts[:, 0], rcond=None
    )
    print(f"besides start, a sentence costs {1000 * fixed:.2f} ms, a token {1000 * token:.3f} ms")


def main(
    model: Path,
    file: Path,
    before: Annotated[Path | None, typer.Option()] = None,
    runs: int = 5,
    fast: bool = False,
    speed: str = "",
    threads: int = 0,
    lengths: bool = False,
) -> None:
    """Measure."""
    sentences = load_treebank(file)
    command = ["parse", "--fast"] if fast else ["rerank"]
    command += ["--speed", speed] if speed else []
    command += ["--threads", str(threads)] if threads else []
    if lengths:
        fit_costs(command, model.resolve(), sentences, runs)
        return
    words = sum(map(len, sentences))
    checkouts = {"this": ROOT} if before is None else {"before": before.resolve(), "this": ROOT}
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
