"""How long `nlp.pipe` takes beside `rerank`, first pass of a process each, in turns.

    python tests/benchmark_pipe.py MODEL FILE [--threads 2] [--runs 3]

FILE is CoNLL-U, whose words and sentences are given; tags are the model's own.  The model is open,
and 20 sentences are done, before the clock starts.  `rerank` reads and writes files; with
confidence it tells probabilities, as `nlp.pipe` always does.  n_process is spaCy's own way to use
several processes.  Medians, on an idle machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc

from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.files.reranking import FileReranker
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import Job
from tk_spacy.workflows.model import open_model, open_tagger

WAYS = ("rerank", "rerank --confidence", "nlp.pipe", "nlp.pipe n_process")
WARM = 20


def piped(model: Path, file: Path, threads: int, n_process: int) -> float:
    """Seconds of `nlp.pipe`."""
    nlp = spacy.load(model, config={"components": {"tk_reranker": {"n_threads": threads}}})
    gold = load_treebank(file)
    docs = [
        Doc(nlp.vocab, words=list(s.forms), sent_starts=[True] + [False] * (len(s) - 1))
        for s in gold
    ]
    list(nlp.pipe(docs[:WARM]))
    started = time.perf_counter()
    for _ in nlp.pipe(docs[WARM:], n_process=n_process, batch_size=256 if n_process == 1 else 64):
        pass
    return time.perf_counter() - started


def reranked(path: Path, file: Path, threads: int, confidence: bool) -> float:
    """Seconds of `rerank`."""
    model, tagger = open_model(path), open_tagger(path)
    work = FileReranker(
        model,
        n_threads=threads,
        tags=lambda: FileTags("own", lambda: tagger),
        confidence=confidence,
    )
    gold = load_treebank(file)
    with tempfile.TemporaryDirectory() as folder:
        few, rest, out = (Path(folder, name) for name in ("few", "rest", "out"))
        write_conllu(few, gold[:WARM])
        write_conllu(rest, gold[WARM:])
        work.do_file(Job(few, out))
        started = time.perf_counter()
        work.do_file(Job(rest, out))
        return time.perf_counter() - started


def main(
    model: Path,
    file: Path,
    threads: int = 2,
    runs: int = 3,
    only: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure."""
    if only:  # in a process of its own
        if only.startswith("nlp"):
            one = only.endswith("n_process")
            seconds = piped(model, file, 1 if one else threads, threads if one else 1)
        else:
            seconds = reranked(model, file, threads, only.endswith("--confidence"))
        print(seconds)
        return
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    command = [sys.executable, __file__, str(model), str(file), "--threads", str(threads)]
    for _ in range(runs):
        for way in WAYS:
            run = subprocess.run(
                [*command, "--only", way], check=True, capture_output=True, text=True
            )
            times[way].append(float(run.stdout.split()[-1]))
    medians = {way: statistics.median(found) for way, found in times.items()}
    for way, median in medians.items():
        ratio, sure = median / medians["rerank"], median / medians["rerank --confidence"]
        print(f"{way:20} {median:6.2f} s, {ratio:.2f} times rerank, {sure:.2f} times --confidence")


if __name__ == "__main__":
    typer.run(main)
