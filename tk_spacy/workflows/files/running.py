"""The files of a batch, one after the other or several at a time, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tk_spacy.errors import UserError
from tk_spacy.parallel.executor import (
    Executor,
    LocalExecutor,
    ProcessExecutor,
    Surroundings,
    Task,
    TaskError,
    TasksFailed,
    chosen_executor,
)
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.workflows.files.worker import FileResult, FileWorker, Job

Opener = Callable[[int | None], FileWorker]
"""Makes a worker that uses so many threads; is sent to processes."""


class Counter:
    """Sentences done of all files, by an estimate of how many each holds."""

    def __init__(
        self, jobs: Sequence[Job], sizes: Sequence[int], tell: Callable[[int, int], None]
    ) -> None:
        self.size = dict(zip(jobs, sizes, strict=True))
        self._done = dict.fromkeys(jobs, 0)
        self._tell = tell

    def add(self, job: Job, sentences: int) -> None:
        """So many more of a file are done."""
        self._done[job] = min(self.size[job], self._done[job] + sentences)
        self._tell(sum(self._done.values()), sum(self.size.values()))

    def finish(self, job: Job) -> None:
        """A file is done, however many it held."""
        self.add(job, self.size[job])


def run_jobs(
    opener: Opener,
    worker: FileWorker,
    jobs: Sequence[Job],
    tell: Counter,
    processes: int,
    n_threads: int | None,
    *,
    shared: Sequence[Path] = (),
    reads: Callable[[Job], Sequence[Path]] = lambda job: (job.input,),
) -> Iterator[tuple[Job, FileResult]]:
    """Each job and its result, as it ends.  Each process loads the model once.

    shared: files that all jobs need.  reads: those of one.
    """
    by_name = {str(job.input): job for job in jobs}
    cluster = chosen_executor()
    work = _do_file if cluster is None else _do_file_or_fail
    tasks = [
        Task(
            name, work, (job,), cost=tell.size[job], reads=(*shared, *reads(job)),
            writes=(job.target,),
        )
        for name, job in by_name.items()
    ]  # fmt: skip
    executor: Executor = LocalExecutor(n_threads)
    setup: Callable[[int | None], FileWorker] = lambda _: worker  # noqa: E731  (stays here)
    if cluster is not None:
        executor, setup = cluster, opener
    elif processes > 1 and len(jobs) > 1:
        threads = max(1, effective_n_threads(n_threads) // processes)
        executor, setup = ProcessExecutor(min(processes, len(jobs)), threads), opener
    try:
        for name, result in executor.run(
            tasks, setup=setup, report=lambda name, done: tell.add(by_name[name], done)
        ):
            job = by_name[name]
            tell.finish(job)
            result.input, result.target = str(job.input), str(job.target)
            yield job, result
    except TasksFailed as error:
        for name, text in error.failed.items():
            job = by_name[name]
            reason = f"{job.input}: {text}"
            yield job, FileResult(str(job.input), str(job.target), status="failed", error=reason)
    except TaskError as error:
        cure = ", so run again with fewer processes" if error.killed else ""
        raise UserError(f"{error}; finished files are kept{cure}") from error


def _do_file(here: Surroundings, job: Job) -> FileResult:
    worker: FileWorker = here.shared
    return worker.try_file(job, here.report)


def _do_file_or_fail(here: Surroundings, job: Job) -> FileResult:
    """The same, but a fault that is not the user's is for the executor, which tries again."""
    worker: FileWorker = here.shared
    return worker.try_file(job, here.report, mistakes_alone=True)
