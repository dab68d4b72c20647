"""Candidate lists for a training treebank, each from parsers that never saw its sentence.

The sentences are dealt into folds; the lists of a fold come from parsers trained on all others, so
that they are as good, or bad, as lists of new text (Collins 2000).  Folds run in processes of their
own, single-threaded; a fold trains its parsers one after the other, and joins their lists (see
`merging`).  What is finished is kept with a fingerprint of all that it depends on, each parser's
parser and the fold's lists apart: a stopped run, or one with another parser, makes only what is
missing or damaged.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.ensemble.trained_parsers import (
    State,
    digest,
    read_record,
    remove,
    train_and_record,
    trained_state,
    training_fingerprint,
    training_seconds,
)
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.parallel.processes import begin_child, ending, spawning
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu

# Part of every fingerprint: raise it when the same settings give other lists than before.
FORMAT = 6
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class JackknifeError(RuntimeError):
    """A fold's process failed; the text says which fold and why."""


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """What one fold is doing: stage "resumed" (nothing to do), "train", "parse" or "done".

    step and of count training steps of `parser`, and parsed sentences.
    """

    fold: int
    stage: Literal["resumed", "train", "parse", "done"]
    step: int
    of: int
    parser: str = ""


@dataclass(frozen=True, slots=True)
class _Job:
    """One fold's work, as plain data for its process.

    trained: fingerprint of each parser's parser.
    """

    fold: int
    folder: Path
    k: int
    parsers: tuple[ParserSpec, ...]
    trained: tuple[str, ...]
    fingerprint: str
    n_threads: int | None

    @property
    def name(self) -> str:
        return f"fold-{self.fold + 1:02}"

    def file(self, suffix: str) -> Path:
        return self.folder / f"{self.name}{suffix}"

    def directory(self, parser: ParserSpec) -> Path:
        return self.folder / self.name / parser.name


def fold_of_sentences(n_sentences: int, *, folds: int, seed: int | None = None) -> list[int]:
    """The fold of each sentence: contiguous blocks, or dealt at random with a seed.

    Sizes differ by one at most.  Contiguous blocks keep a document in one fold, so that no parser
    learns from the neighbours of what it parses.
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, got {folds}")
    if n_sentences < folds:
        raise UserError(
            f"{n_sentences} sentences cannot make {folds} folds; give more sentences or fewer folds"
        )
    numbers = [i * folds // n_sentences for i in range(n_sentences)]
    if seed is not None:
        random.Random(seed).shuffle(numbers)
    return numbers


def jackknife(
    sentences: Sequence[Sentence],
    parsers: Sequence[ParserSpec],
    *,
    workdir: str | os.PathLike[str],
    folds: int = 5,
    k: int = 25,
    processes: int | None = None,
    fold_seed: int | None = None,
    inventory: LabelInventory | None = None,
    n_threads: int | None = None,
    progress: Callable[[FoldProgress], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[CandidateList]:
    """One candidate list for each training sentence, in order.

    sentences: with trees.
    parsers: whose parsers make the lists; the first one's score is the lists' main one.
    workdir: directory of the folds' files (`fold-01.conllu`, ...) and parsers (`fold-01/PARSER`);
        what a stopped run finished with the same sentences and settings is taken from there.
    folds, fold_seed: see `fold_of_sentences`.
    k: trees a list.
    processes: folds trained at a time; None as many as this process may use CPUs, and 1 trains them
        in this process, on n_threads.  The results do not depend on it.
    inventory: table of labels for the lists.
    progress: called in this process for each step of each fold.
    note: told in one line what is taken over from an earlier run, and in another what of it is
        damaged and made again, if anything.

    Raises JackknifeError where a fold fails; the other folds are stopped, finished ones stay.
    """
    numbers = fold_of_sentences(len(sentences), folds=folds, seed=fold_seed)
    folder = Path(workdir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}; remove it") from error
    jobs = _make_jobs(sentences, parsers, numbers, folder=folder, k=k, n_threads=n_threads)
    report = progress or (lambda _: None)
    states = [_lists_state(job) for job in jobs]
    if note is not None:
        for text in _found(jobs, states):
            note(text)
    todo = []
    for job, state in zip(jobs, states, strict=True):
        if state == "kept":
            report(FoldProgress(job.fold, "resumed", 1, 1))
            continue
        _write_data(job, sentences, numbers)
        todo.append(job)
    processes = processes or len(os.sched_getaffinity(0))
    if processes > 1 and len(todo) > 1:
        _run_in_processes(todo, processes, report)
    else:
        for job in todo:
            _run_fold(job, report)
    inventory = LabelInventory() if inventory is None else inventory
    readers = [read_kbest(job.file(".conllu"), inventory=inventory, k=k) for job in jobs]
    lists = []
    for sentence, number in zip(sentences, numbers, strict=True):
        found, trees = next(readers[number])
        if found.forms != sentence.forms:
            place = f"{jobs[number].file('.conllu')}:{found.line}"
            raise JackknifeError(f"{place}: not the sentence expected")
        lists.append(trees)
    return lists


def fold_seconds(workdir: str | os.PathLike[str], parser: ParserSpec, *, folds: int) -> float:
    """Wall seconds of the trainings of a parser's fold parsers, those taken over included."""
    names = [f"fold-{fold + 1:02}" for fold in range(folds)]
    return sum(training_seconds(Path(workdir, name, parser.name)) for name in names)


def _make_jobs(
    sentences: Sequence[Sentence],
    parsers: Sequence[ParserSpec],
    numbers: Sequence[int],
    *,
    folder: Path,
    k: int,
    n_threads: int | None,
) -> list[_Job]:
    jobs = []
    texts = [sentence.to_conllu() for sentence in sentences]
    pairs = list(zip(texts, numbers, strict=True))
    for fold in range(max(numbers) + 1):
        seen = [text for text, number in pairs if number != fold]
        trained = tuple(training_fingerprint(parser, seen) for parser in parsers)
        key = [
            FORMAT,
            k,
            *trained,
            *([*parser.sources, *parser.search_key()] for parser in parsers),
        ]
        fingerprint = hashlib.sha256(json.dumps(key).encode())
        for text, number in pairs:
            if number == fold:
                fingerprint.update(text.encode())
        jobs.append(
            _Job(
                fold=fold,
                folder=folder,
                k=k,
                parsers=tuple(parsers),
                trained=trained,
                fingerprint=fingerprint.hexdigest(),
                n_threads=n_threads,
            )
        )
    return jobs


def _lists_state(job: _Job) -> State:
    """What there is of a fold's lists."""
    record = read_record(job.file(".json"))
    if not record:
        return "damaged" if job.file(".json").exists() else "missing"
    if record.get("fingerprint") != job.fingerprint:
        return "missing"
    known = record.get("sha256")
    return "kept" if known and digest(job.file(".conllu")) == known else "damaged"


def _found(jobs: Sequence[_Job], states: Sequence[State]) -> Iterator[str]:
    """What need not be made again, and what must be, since it is damaged: a line each."""
    found: dict[State, dict[str, list[str]]] = {"kept": {}, "damaged": {}, "missing": {}}
    for job, state in zip(jobs, states, strict=True):
        number = str(job.fold + 1)
        found[state].setdefault("lists", []).append(number)
        if state == "kept":
            continue
        for parser, fingerprint in zip(job.parsers, job.trained, strict=True):
            if not parser.given:
                of_parser = found[trained_state(job.directory(parser), fingerprint)]
                of_parser.setdefault(f"{parser.name} parser", []).append(number)
    starts: dict[State, str] = {
        "kept": f"taken over from {jobs[0].folder}",
        "damaged": f"damaged in {jobs[0].folder} and made again",
    }
    for state, start in starts.items():
        parts = [f"{what} of fold {', '.join(folds)}" for what, folds in found[state].items()]
        if parts:
            yield f"{start}: {'; '.join(parts)}"


def _write_data(job: _Job, sentences: Sequence[Sentence], numbers: Sequence[int]) -> None:
    # A record must never stand beside the lists of another run.
    for suffix in (".json", ".conllu"):
        remove(job.file(suffix))
    pairs = list(zip(sentences, numbers, strict=True))
    write_conllu(job.file(".train.conllu"), (s for s, number in pairs if number != job.fold))
    write_conllu(job.file(".held-out.conllu"), (s for s, number in pairs if number == job.fold))


def _run_fold(job: _Job, report: Callable[[FoldProgress], None]) -> None:
    """Train a fold's parsers, parse what they never saw, write lists and record."""
    train = load_treebank(job.file(".train.conllu"))
    for parser, fingerprint in zip(job.parsers, job.trained, strict=True):

        def on_step(done: int, of: int, name: str = parser.name) -> None:
            report(FoldProgress(job.fold, "train", done, of, name))

        train_and_record(
            parser, train, [], job.directory(parser),
            fingerprint=fingerprint, n_threads=job.n_threads, report=on_step,
        )  # fmt: skip
    inventory = LabelInventory()
    source = MergedSource(
        [
            parser.open(job.directory(parser), inventory=inventory, n_threads=job.n_threads)
            for parser in job.parsers
        ],
        n_threads=job.n_threads,
    )
    held_out = load_treebank(job.file(".held-out.conllu"))

    def pairs() -> Iterator[tuple[Sentence, CandidateList]]:
        lists = source.candidates(held_out, k=job.k)
        for number, pair in enumerate(zip(held_out, lists, strict=True), start=1):
            report(FoldProgress(job.fold, "parse", number, len(held_out)))
            yield pair

    write_kbest(job.file(".conllu"), pairs())
    record = job.file(".json")
    temporary = record.with_suffix(".json.tmp")
    made = {"fingerprint": job.fingerprint, "sha256": digest(job.file(".conllu"))}
    temporary.write_text(json.dumps(made), encoding="utf-8")
    temporary.replace(record)
    for suffix in (".train.conllu", ".held-out.conllu"):
        job.file(suffix).unlink(missing_ok=True)
    report(FoldProgress(job.fold, "done", 1, 1))


def _run_in_processes(
    jobs: Sequence[_Job], processes: int, report: Callable[[FoldProgress], None]
) -> None:
    # Spawned, since a forked child would inherit OpenMP and BLAS threads in an unknown state.
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    with (
        _one_thread_each(),
        ProcessPoolExecutor(
            min(processes, len(jobs)),
            mp_context=context,
            initializer=_start_worker,
            initargs=(queue,),
        ) as pool,
    ):
        with spawning():
            futures = {pool.submit(_run_fold_in_worker, job): job for job in jobs}
        try:
            _watch(futures, queue, report)
        except BaseException:
            for future in futures:
                future.cancel()
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise


def _watch(
    futures: dict[Future[None], _Job], queue: Any, report: Callable[[FoldProgress], None]
) -> None:
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
        while not queue.empty():
            report(queue.get())
        for future in done:
            error = future.exception()
            if error is None:
                continue
            if isinstance(error, UserError):
                raise error
            if isinstance(error, BrokenProcessPool):
                raise JackknifeError(
                    "a process of the jackknife was killed (most often: out of memory); finished "
                    "folds are kept, so run again with fewer processes"
                ) from error
            raise JackknifeError(
                f"fold {futures[future].fold + 1} of the jackknife failed: "
                f"{type(error).__name__}: {error}"
            ) from error


# The queue that a worker process got when it started; nothing else may be shared with `spawn`.
_worker: dict[str, Any] = {}


def _start_worker(queue: Any) -> None:
    begin_child()
    _worker["queue"] = queue


@ending
def _run_fold_in_worker(job: _Job) -> None:
    _run_fold(replace(job, n_threads=1), _worker["queue"].put)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Spawned processes read these when they load BLAS and OpenMP."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
