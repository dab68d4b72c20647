"""The files of a batch, one after the other or several at a time, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tk_spacy.errors import UserError
from tk_spacy.parallel.executor import (
    Executor,
    LocalExecutor,
    ProcessExecutor,
    Surroundings,
    Task,
    TaskError,
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
) -> Iterator[tuple[Job, FileResult]]:
    """Each job and its result, as it ends.  Each process loads the model once."""
    by_name = {str(job.input): job for job in jobs}
    tasks = [Task(name, _do_file, (job,), cost=tell.size[job]) for name, job in by_name.items()]
    executor: Executor = LocalExecutor(n_threads)
    setup: Callable[[int | None], FileWorker] = lambda _: worker  # noqa: E731  (stays here)
    if processes > 1 and len(jobs) > 1:
        threads = max(1, effective_n_threads(n_threads) // processes)
        executor, setup = ProcessExecutor(min(processes, len(jobs)), threads), opener
    try:
        for name, result in executor.run(
            tasks, setup=setup, report=lambda name, done: tell.add(by_name[name], done)
        ):
            tell.finish(by_name[name])
            yield by_name[name], result
    except TaskError as error:
        cure = ", so run again with fewer processes" if error.killed else ""
        raise UserError(f"{error}; finished files are kept{cure}") from error


def _do_file(here: Surroundings, job: Job) -> FileResult:
    worker: FileWorker = here.shared
    return worker.try_file(job, here.report)
