"""Reranking or parsing many files: what goes where, in one process or several, resumable."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parallel.processes import begin_child, ending, spawning
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.utils.atomic_files import STDOUT
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.workdir import WORK_MARK, check_regular
from tk_spacy.workflows.files.external_trees import ExternalFiles
from tk_spacy.workflows.files.reranking import FileReranker
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job, Report
from tk_spacy.workflows.model import open_main_parser, open_model

SUFFIX = ".conllu"
FILE_SUFFIXES = (SUFFIX, ".conll", ".txt")
"""Names with these are files' names: no new directory gets one."""

Opener = Callable[[int | None], FileWorker]
"""Makes a worker that uses so many threads; is sent to processes."""
Tell = Callable[[int, int], None]


def rerank_files(
    model: Path,
    inputs: Sequence[Path],
    output: Path,
    *,
    k: int | None = None,
    parser_files: Mapping[str, Path] | None = None,
    overwrite: bool = False,
    processes: int = 1,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[FileResult]:
    """Rerank files; see `find_jobs` for what goes where.

    parser_files: by name, other parsers' trees of the inputs, where the model needs any: a file or
        a directory for several inputs.

    A single file's failure raises UserError; of several files, or a directory's, the failed ones
    are named in the results and the rest is done.  Several files that are there already are skipped
    unless `overwrite` says otherwise.
    """
    files = ExternalFiles(dict(parser_files or {}), tuple(inputs))
    return _work_on_files(
        model, partial(_open_reranker, model, k, files), inputs, output,
        stage="reranking", overwrite=overwrite, processes=processes, n_threads=n_threads,
        progress=progress or Progress(),
    )  # fmt: skip


def parse_files(
    model: Path,
    inputs: Sequence[Path],
    output: Path,
    *,
    k: int | None = None,
    overwrite: bool = False,
    processes: int = 1,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[FileResult]:
    """Parse files with the sampling parser of a model, or else with the first parser that it has.

    All else is as in `rerank_files`.
    k: None for the best trees, else the length of k-best lists.
    """
    return _work_on_files(
        model, partial(_open_parser, model, k), inputs, output,
        stage="parsing", overwrite=overwrite, processes=processes, n_threads=n_threads,
        progress=progress or Progress(),
    )  # fmt: skip


def _open_reranker(
    model: Path, k: int | None, parser_files: ExternalFiles, n_threads: int | None
) -> FileWorker:
    opened = open_model(model)
    parser_files.check(opened.external_parsers, model=model)
    return FileReranker(opened, k=k, n_threads=n_threads, parser_files=parser_files)


def _open_parser(model: Path, k: int | None, n_threads: int | None) -> FileWorker:
    from tk_spacy.workflows.files.parsing import FileParser, tree_parser  # noqa: PLC0415  (heavy)

    inventory = LabelInventory()
    parser = tree_parser(open_main_parser(model, inventory, n_threads=n_threads))
    return FileParser(
        parser, k=k, n_threads=n_threads, single_root=parser.single_root, inventory=inventory
    )


def _work_on_files(
    model: Path,
    opener: Opener,
    inputs: Sequence[Path],
    output: Path,
    *,
    stage: str,
    overwrite: bool,
    processes: int,
    n_threads: int | None,
    progress: Progress,
) -> list[FileResult]:
    if model.is_file():  # before the files: perhaps the arguments are swapped
        raise UserError(f"{model}: a file, not a model directory; the model is given first")
    jobs = find_jobs(inputs, output)
    one_file = len(inputs) == 1 and not inputs[0].is_dir()
    done = [] if overwrite or one_file else [job for job in jobs if job.target.exists()]
    todo = [job for job in jobs if job not in done]
    results = {
        job.source: FileResult(str(job.source), str(job.target), status="skipped") for job in done
    }
    worker = opener(n_threads)
    check_not_in_model(jobs, model)
    new = {folder for job in todo for folder in job.target.parents if not folder.exists()}
    sizes = estimate_sentences(job.source for job in todo)
    progress.begin(stage)
    tell = partial(progress.update, stage)
    try:
        if one_file:
            results[inputs[0]] = _with_progress(worker.do_file, todo[0], tell, 0, sum(sizes))
        elif processes > 1 and len(todo) > 1:
            results.update(_in_processes(opener, todo, sizes, processes, n_threads, tell))
        else:
            before = 0
            for job, size in zip(todo, sizes, strict=True):
                results[job.source] = _with_progress(worker.try_file, job, tell, before, sum(sizes))
                before += size
    finally:
        for folder in sorted(new, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):  # it holds something
                folder.rmdir()
    progress.end(stage)
    return [results[job.source] for job in jobs]


def _with_progress(
    work: Callable[[Job, Report], FileResult], job: Job, tell: Tell, before: int, total: int
) -> FileResult:
    done = before

    def report(sentences: int) -> None:
        nonlocal done
        done += sentences
        tell(min(done, total), total)

    return work(job, report)


def _in_processes(
    opener: Opener,
    jobs: Sequence[Job],
    sizes: Sequence[int],
    processes: int,
    n_threads: int | None,
    tell: Tell,
) -> Iterator[tuple[Path, FileResult]]:
    """Each process loads the model once.  Spawned: forked children cannot use OpenMP's threads."""
    threads = max(1, effective_n_threads(n_threads) // processes)
    size_of = dict(zip(jobs, sizes, strict=True))
    done = 0
    pool = ProcessPoolExecutor(
        min(processes, len(jobs)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(opener, threads),
    )
    try:
        with spawning():
            futures = {pool.submit(_work_in_process, job): job for job in jobs}
        for future in as_completed(futures):
            job = futures[future]
            yield job.source, future.result()
            done += size_of[job]
            tell(done, sum(sizes))
    except BrokenProcessPool as error:
        raise UserError(
            "a process was killed (most often: out of memory); finished files are kept, so run "
            "again with fewer processes"
        ) from error
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: dict[str, FileWorker] = {}


def _start_worker(opener: Opener, n_threads: int) -> None:
    begin_child()
    _worker["worker"] = opener(n_threads)


@ending
def _work_in_process(job: Job) -> FileResult:
    return _worker["worker"].try_file(job)


def total(results: Sequence[FileResult]) -> FileResult:
    """The sum of all finished files; with scores where all of them have some."""
    done = [result for result in results if result.status == "done"]
    whole = FileResult("", "")
    for result in done:
        whole.sentences += result.sentences
        whole.words += result.words
        whole.changed += result.changed
        whole.seconds += result.seconds
    parser = [result.parser for result in done if result.parser is not None]
    final = [result.final for result in done if result.final is not None]
    if done and len(parser) == len(done):
        whole.parser = np.sum(parser, axis=0)
    if done and len(final) == len(done):
        whole.final = np.sum(final, axis=0)
    return whole


def find_jobs(inputs: Sequence[Path], output: Path) -> list[Job]:
    """Which file goes where.

    One file goes to the file `output` (STDOUT for standard output), or into it where it is a
    directory; directories, or several inputs, go into the directory `output`, which mirrors their
    structure, work directories of trainings left out.  Raises UserError where an input is missing
    or holds nothing to do, where an output would replace an input, or where several files would go
    into one.
    """
    for path in inputs:
        if not path.exists():
            raise UserError(f"{path}: no such file or directory")
        if not path.is_dir():
            check_regular(path)
    if len(inputs) == 1 and not inputs[0].is_dir():
        if output == Path(STDOUT):
            return [Job(inputs[0], output)]
        target = output / inputs[0].name if output.is_dir() else output
        jobs = [Job(inputs[0], target)]
    else:
        _check_directory(inputs, output)
        jobs = [job for path in inputs for job in _jobs_of(path, output)]
    taken: dict[Path, Path] = {}
    sources = {job.source.resolve() for job in jobs}
    for job in jobs:
        target = job.target.resolve()
        if target in sources:
            raise UserError(f"{job.target}: the output would replace an input; choose another")
        if target in taken:
            raise UserError(f"{job.target}: output of both {taken[target]} and {job.source}")
        taken[target] = job.source
    return jobs


def _check_directory(inputs: Sequence[Path], output: Path) -> None:
    """Raises UserError unless the outputs of several files can go into `output`."""
    if output.is_dir():
        return
    what = "several inputs" if len(inputs) > 1 else f"{inputs[0]} is a directory, whose files"
    if output == Path(STDOUT):
        raise UserError(
            f"{output}: {what} cannot go to standard output; give a directory to write them into"
        )
    if output.exists():
        raise UserError(f"{output}: a file stands where the output directory is to be")
    if output.suffix.lower() in FILE_SUFFIXES:
        raise UserError(
            f"{output}: the name of a file, but {what} go into a directory; give the name of one"
        )


def check_not_in_model(jobs: Iterable[Job], model: Path) -> None:
    """Raises UserError for an output in the directory of a model, which it might damage."""
    for job in jobs:
        if job.target != Path(STDOUT) and job.target.resolve().is_relative_to(model.resolve()):
            raise UserError(f"{job.target}: the output lies in the model {model}; choose another")


def _jobs_of(path: Path, output: Path) -> Iterator[Job]:
    if not path.is_dir():
        yield Job(path, output / path.name)
        return
    if output.resolve().is_relative_to(path.resolve()):
        raise UserError(f"{output}: the output lies inside the input {path}; choose another")
    working = [mark.parent for mark in path.rglob(WORK_MARK)]
    files = sorted(
        file
        for file in path.rglob(f"*{SUFFIX}")
        if file.is_file() and not any(file.is_relative_to(folder) for folder in working)
    )
    if not files:
        raise UserError(f"{path}: no {SUFFIX} file in this directory or below")
    for file in files:
        yield Job(file, output / file.relative_to(path))


def estimate_sentences(paths: Iterable[Path]) -> list[int]:
    """About how many sentences files hold, from their bytes alone; 0 for an unreadable one."""
    return [_estimate(path) for path in paths]


def _estimate(path: Path) -> int:
    count, before = 0, b"\n"
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                # A mark may lie across two blocks.
                count += (before[-2:] + block).count(b"\n1\t")
                before = block
    except OSError:
        return 0
    return count
