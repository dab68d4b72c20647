"""Candidate lists for a training treebank, each from parsers that never saw its sentence.

The sentences are dealt into folds; the lists of a fold come from parsers trained on all others, so
that they are as good, or bad, as lists of new text (Collins 2000).  Each training of a parser on a
fold is a task, and so is the joining of a fold's lists (see `merging`) once its parsers are there;
they run in processes, single-threaded, or here.  What is finished is kept with a fingerprint of all
that it depends on, each parser and the fold's lists apart: a stopped run, or one with another
parser, makes only what is missing or damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

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
from tk_spacy.kbest.sources import ArcScorer
from tk_spacy.kbest.stored_lists import StoredLists
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.parallel.executor import (
    Executor,
    Surroundings,
    Task,
    TaskError,
    make_executor,
)
from tk_spacy.parallel.plain_data import files_of
from tk_spacy.parallel.threads import available_threads
from tk_spacy.parsers.base import ParserSpec
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.atomic_files import atomic_output

# Part of every fingerprint: raise it when the same settings give other lists than before.
FORMAT = 6
LISTING_SECONDS = 0.0005
"""Time to propose and score a word's trees with one parser, on one core."""


class JackknifeError(RuntimeError):
    """A training, or the making of a fold's lists, failed; the text says which and why."""


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """What one fold is doing: stage "resumed" (nothing to do), "train", "parse" or "done".

    fold: None for a training on all sentences beside the folds.
    step and of count training steps of `parser`, and parsed sentences.
    overall: share of all the work that is done, from 0 to 1, by an estimate of what it costs.
    """

    fold: int | None
    stage: Literal["resumed", "train", "parse", "done"]
    step: int
    of: int
    parser: str = ""
    overall: float = 0.0


@dataclass(frozen=True, slots=True)
class _Job:
    """One fold's work, as plain data for its process.

    trained: fingerprint of each trained parser.
    """

    fold: int
    folder: Path
    k: int
    parsers: tuple[ParserSpec, ...]
    trained: tuple[str, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        return _fold_name(self.fold)

    def file(self, suffix: str) -> Path:
        return self.folder / f"{self.name}{suffix}"

    def directory(self, parser: ParserSpec) -> Path:
        return _fold_directory(self.folder, self.fold, parser.name)


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
    beside: Sequence[Task] = (),
) -> StoredLists:
    """One candidate list for each training sentence, in order.

    sentences: with trees.
    parsers: that make the lists; the first one's score is the lists' main one.
    workdir: directory of the folds' files (`fold-01.conllu`, ...) and parsers (`fold-01/PARSER`);
        what a stopped run finished with the same sentences and settings is taken from there.
    folds, fold_seed: see `fold_of_sentences`.
    k: trees a list.
    processes: parsers trained at a time, each on one thread; None as many as this process may use
        CPUs, and 1 trains them in this process, on n_threads.  The results do not depend on it.
    inventory: table of labels for the lists.
    progress: called in this process for each step of each training, and each sentence parsed.
    note: told in one line what is taken over from an earlier run, and in another what of it is
        damaged and made again, if anything.
    beside: other trainings to be done meanwhile (see `full_training`); they report FoldProgress.

    Raises JackknifeError where a part fails; the others are stopped, finished ones stay.
    """
    numbers = fold_of_sentences(len(sentences), folds=folds, seed=fold_seed)
    folder = Path(workdir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}; remove it") from error
    jobs = _make_jobs(sentences, parsers, numbers, folder=folder, k=k)
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
    sizes = [0] * len(jobs)
    for sentence, number in zip(sentences, numbers, strict=True):
        sizes[number] += len(sentence)
    tasks = [*_tasks(jobs, todo, sizes), *beside]
    processes = processes or available_threads()
    executor = make_executor(tasks, processes=processes, n_threads=n_threads)
    _run(tasks, executor, report)
    inventory = LabelInventory() if inventory is None else inventory
    readers = [read_kbest(job.file(".conllu"), inventory=inventory, k=k) for job in jobs]
    lists = StoredLists()
    for sentence, number in zip(sentences, numbers, strict=True):
        found, trees = next(readers[number])
        if found.forms != sentence.forms:
            place = f"{jobs[number].file('.conllu')}:{found.line}"
            raise JackknifeError(f"{place}: not the sentence expected")
        lists.append(trees)
    return lists


def jackknifed_arc_scores(
    sentences: Sequence[Sentence],
    parsers: Sequence[ParserSpec],
    *,
    workdir: str | os.PathLike[str],
    folds: int = 5,
    fold_seed: int | None = None,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[Float64]]:
    """How likely each annotated arc is to each parser that can tell (see `ArcScorer`).

    Of each such parser, by name, float64[n, 2] for each sentence, from the fold's parser that did
    not learn from it.  `jackknife` has trained them with the same sentences, parsers and settings.
    """
    numbers = fold_of_sentences(len(sentences), seed=fold_seed, folds=folds)
    found: dict[str, list[Float64]] = {}
    inventory = LabelInventory()
    for fold in range(folds):
        places = [i for i, number in enumerate(numbers) if number == fold]
        for parser in parsers:
            directory = _fold_directory(Path(workdir), fold, parser.name)
            source = parser.open(directory, inventory=inventory, n_threads=n_threads)
            if not isinstance(source, ArcScorer):
                continue
            of_parser = found.setdefault(parser.name, [np.zeros((0, 2))] * len(sentences))
            scores = source.arc_scores([sentences[i] for i in places])
            for i, own in zip(places, scores, strict=True):
                of_parser[i] = own
        if progress is not None:
            progress(fold + 1, folds)
    return found


def _fold_name(fold: int) -> str:
    return f"fold-{fold + 1:02}"


def _fold_directory(workdir: Path, fold: int, parser: str) -> Path:
    """Where a fold's parser is kept."""
    return workdir / _fold_name(fold) / parser


def fold_seconds(workdir: str | os.PathLike[str], parser: ParserSpec, *, folds: int) -> float:
    """Wall seconds of the trainings of a parser's fold parsers, those taken over included."""
    return sum(
        training_seconds(_fold_directory(Path(workdir), fold, parser.name)) for fold in range(folds)
    )


def _make_jobs(
    sentences: Sequence[Sentence],
    parsers: Sequence[ParserSpec],
    numbers: Sequence[int],
    *,
    folder: Path,
    k: int,
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


def _tasks(jobs: Sequence[_Job], todo: Sequence[_Job], sizes: Sequence[int]) -> list[Task]:
    """Each training that is missing, and each fold's lists after its trainings.

    sizes: words of each fold.
    """
    tasks = []
    total = sum(sizes)
    for job in todo:
        held_out = sizes[jobs.index(job)]
        trainings = [
            Task(
                name=f"training {parser.name} on fold {job.fold + 1}",
                work=_train,
                args=(job, number),
                cost=parser.seconds(total - held_out),
                reads=(job.file(".train.conllu"), *files_of(parser)),
                writes=(job.directory(parser),),
            )
            for number, parser in enumerate(job.parsers)
            if not parser.given
            and trained_state(job.directory(parser), job.trained[number]) != "kept"
        ]
        lists = Task(
            name=f"the lists of fold {job.fold + 1}",
            work=_make_lists,
            args=(job,),
            cost=held_out * LISTING_SECONDS * len(job.parsers),
            after=tuple(task.name for task in trainings),
            reads=(
                job.file(".held-out.conllu"),
                *(job.directory(parser) for parser in job.parsers if not parser.given),
                *(file for parser in job.parsers for file in files_of(parser)),
            ),
            # The record last: without its lists it would say nothing.
            writes=tuple(
                job.file(suffix)
                for suffix in (".conllu", ".json", ".train.conllu", ".held-out.conllu")
            ),
        )
        tasks += [*trainings, lists]
    return tasks


def _train(here: Surroundings, job: _Job, number: int) -> None:
    """Train one of a fold's parsers."""
    parser = job.parsers[number]

    def on_step(done: int, of: int) -> None:
        here.report(FoldProgress(job.fold, "train", done, of, parser.name))

    train_and_record(
        parser, load_treebank(job.file(".train.conllu")), [], job.directory(parser),
        fingerprint=job.trained[number], n_threads=here.n_threads, report=on_step,
    )  # fmt: skip


def _make_lists(here: Surroundings, job: _Job) -> None:
    """Parse what a fold's parsers never saw, write lists and record."""
    inventory = LabelInventory()
    source = MergedSource(
        [
            parser.open(job.directory(parser), inventory=inventory, n_threads=here.n_threads)
            for parser in job.parsers
        ],
        n_threads=here.n_threads,
    )
    held_out = load_treebank(job.file(".held-out.conllu"))

    def pairs() -> Iterator[tuple[Sentence, CandidateList]]:
        lists = source.candidates(held_out, k=job.k)
        for number, pair in enumerate(zip(held_out, lists, strict=True), start=1):
            here.report(FoldProgress(job.fold, "parse", number, len(held_out)))
            yield pair

    write_kbest(job.file(".conllu"), pairs())
    record = job.file(".json")
    made = {"fingerprint": job.fingerprint, "sha256": digest(job.file(".conllu"))}
    with atomic_output(record) as out:
        out.write(json.dumps(made).encode())
    for suffix in (".train.conllu", ".held-out.conllu"):
        job.file(suffix).unlink(missing_ok=True)
    here.report(FoldProgress(job.fold, "done", 1, 1))


def _run(
    tasks: Sequence[Task],
    executor: Executor,
    progress: Callable[[FoldProgress], None],
) -> None:
    """Do all tasks.  Raises UserError, or JackknifeError that names the task which failed."""
    cost = {task.name: task.cost for task in tasks}
    share = dict.fromkeys(cost, 0.0)

    def on_report(name: str, step: FoldProgress) -> None:
        if step.of:
            share[name] = max(share[name], min(1.0, step.step / step.of))
        done = sum(cost[task] * part for task, part in share.items())
        progress(replace(step, overall=done / max(sum(cost.values()), 1e-9)))

    try:
        for name, _ in executor.run(tasks, report=on_report):
            share[name] = 1.0
    except TaskError as error:
        cure = "; run again with fewer processes"
        raise JackknifeError(f"{error}{cure if error.killed else ''}") from error
