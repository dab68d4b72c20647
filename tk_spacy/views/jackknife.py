"""Candidate lists for a training treebank, each from a parser that never saw its sentence.

The sentences are dealt into folds; the lists of a fold come from a parser trained on all others, so
that they are as good, or bad, as lists of new text (Collins 2000).  Folds run in processes of their
own, single-threaded, and each finished fold is a k-best file with a fingerprint of all that it
depends on: what is there already is not made again.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spacy.about import __version__ as spacy_version
from spacy.util import load_config_from_str

from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.errors import UserError
from tk_spacy.kbest_io import read_kbest, write_kbest
from tk_spacy.processes import begin_child, spawning
from tk_spacy.treebank import Sentence, load_treebank, write_conllu
from tk_spacy.upstream.spacy_parser import Search, SpacySource
from tk_spacy.upstream.train_parser import TrainingStep, load_upstream_config, train_upstream

# Part of every fingerprint: raise it when the same settings give other lists than before.
FORMAT = 3
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class JackknifeError(RuntimeError):
    """A fold's process failed; the text says which fold and why."""


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """What one fold is doing: stage "resumed" (nothing to do), "train", "parse" or "done".

    step and of count training steps, and parsed sentences.
    """

    fold: int
    stage: Literal["resumed", "train", "parse", "done"]
    step: int
    of: int


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """How the folds' parsers are trained and searched.

    config: path of a spaCy training config, None for the package's own; component: its parser.
    max_steps, seed: replace the config's.
    backward: train a right-to-left twin of each parser too (see `train_upstream`): better lists, in
        twice the training time.
    search, runs, beam_width: see `SpacySource`.
    """

    config: str | None = None
    component: str = "parser"
    max_steps: int | None = None
    seed: int | None = None
    backward: bool = False
    search: Search = "discrepancy"
    runs: int = 4
    beam_width: int | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """One fold's work, as plain data for its process."""

    fold: int
    train: str
    held_out: str
    output: str
    record: str
    fingerprint: str
    k: int
    config_text: str
    settings: UpstreamSettings


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
    *,
    workdir: str | os.PathLike[str],
    folds: int = 5,
    k: int = 25,
    settings: UpstreamSettings | None = None,
    processes: int | None = None,
    fold_seed: int | None = None,
    inventory: LabelInventory | None = None,
    progress: Callable[[FoldProgress], None] | None = None,
) -> list[CandidateList]:
    """One candidate list for each training sentence, in order.

    sentences: with trees.
    workdir: directory of the folds' files (`fold-01.conllu`, ...); what a stopped run finished with
        the same sentences and settings is taken from there.
    folds, fold_seed: see `fold_of_sentences`.
    k: trees a list.
    processes: folds trained at a time; None as many as this process may use CPUs, and 1 trains them
        in this process.  The results do not depend on it.
    inventory: table of labels for the lists.
    progress: called in this process for each step of each fold.

    Raises JackknifeError where a fold fails; the other folds are stopped, finished ones stay.
    """
    settings = settings or UpstreamSettings()
    numbers = fold_of_sentences(len(sentences), folds=folds, seed=fold_seed)
    folder = Path(workdir)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = _make_jobs(sentences, numbers, folder=folder, folds=folds, k=k, settings=settings)
    report = progress or (lambda _: None)
    todo = []
    for job in jobs:
        if _is_done(job):
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
    readers = [read_kbest(job.output, inventory=inventory, k=k) for job in jobs]
    lists = []
    for sentence, number in zip(sentences, numbers, strict=True):
        found, trees = next(readers[number])
        if found.forms != sentence.forms:
            raise JackknifeError(f"{jobs[number].output}:{found.line}: not the sentence expected")
        lists.append(trees)
    return lists


def _make_jobs(
    sentences: Sequence[Sentence],
    numbers: Sequence[int],
    *,
    folder: Path,
    folds: int,
    k: int,
    settings: UpstreamSettings,
) -> list[_Job]:
    config = load_upstream_config(settings.config, max_steps=settings.max_steps, seed=settings.seed)
    if settings.component not in config["nlp"]["pipeline"]:
        raise UserError(
            f"{settings.config or 'the default config'}: no component {settings.component!r} in "
            f"its pipeline {config['nlp']['pipeline']}"
        )
    texts = [sentence.to_conllu() for sentence in sentences]
    shared = [
        FORMAT,
        spacy_version,
        config.to_str(),
        settings.component,
        settings.backward,
        settings.search,
        settings.runs,
        settings.beam_width,
        k,
    ]
    jobs = []
    for fold in range(folds):
        digest = hashlib.sha256(json.dumps(shared).encode())
        for number, text in zip(numbers, texts, strict=True):
            digest.update(b"held out" if number == fold else b"train")
            digest.update(text.encode())
        name = f"fold-{fold + 1:02}"
        jobs.append(
            _Job(
                fold=fold,
                train=str(folder / f"{name}.train.conllu"),
                held_out=str(folder / f"{name}.held-out.conllu"),
                output=str(folder / f"{name}.conllu"),
                record=str(folder / f"{name}.json"),
                fingerprint=digest.hexdigest(),
                k=k,
                config_text=config.to_str(),
                settings=settings,
            )
        )
    return jobs


def _is_done(job: _Job) -> bool:
    try:
        record = json.loads(Path(job.record).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return record.get("fingerprint") == job.fingerprint and Path(job.output).exists()


def _write_data(job: _Job, sentences: Sequence[Sentence], numbers: Sequence[int]) -> None:
    # A record must never stand beside the lists of another run.
    Path(job.record).unlink(missing_ok=True)
    pairs = list(zip(sentences, numbers, strict=True))
    write_conllu(job.train, (s for s, number in pairs if number != job.fold))
    write_conllu(job.held_out, (s for s, number in pairs if number == job.fold))


def _run_fold(job: _Job, report: Callable[[FoldProgress], None]) -> None:
    """Train a fold's parser, parse what it never saw, write lists and record."""

    def on_step(step: TrainingStep) -> None:
        report(FoldProgress(job.fold, "train", step.step, step.of))

    nlp = train_upstream(
        load_treebank(job.train),
        config=load_config_from_str(job.config_text, interpolate=False),
        backward=job.settings.backward,
        progress=on_step,
    )
    source = SpacySource(
        nlp,
        component=job.settings.component,
        search=job.settings.search,
        runs=job.settings.runs,
        beam_width=job.settings.beam_width,
    )
    held_out = load_treebank(job.held_out)

    def pairs() -> Iterator[tuple[Sentence, CandidateList]]:
        lists = source.candidates(held_out, k=job.k)
        for number, pair in enumerate(zip(held_out, lists, strict=True), start=1):
            report(FoldProgress(job.fold, "parse", number, len(held_out)))
            yield pair

    write_kbest(job.output, pairs())
    record = Path(job.record)
    temporary = record.with_suffix(".json.tmp")
    temporary.write_text(json.dumps({"fingerprint": job.fingerprint}), encoding="utf-8")
    temporary.replace(record)
    for data in (job.train, job.held_out):
        Path(data).unlink(missing_ok=True)
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


def _run_fold_in_worker(job: _Job) -> None:
    _run_fold(job, _worker["queue"].put)


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
