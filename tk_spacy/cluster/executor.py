"""Tasks done by the workers of a Dask cluster, with the same results as on this machine.

Dask moves tasks to workers, and does again what a lost worker was at.  What it leaves open is done
here: which tasks wait for others, how often one is tried, which versions are refused, and files for
workers that do not see ours.
"""

from __future__ import annotations

import pickle
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from tk_spacy.about import __version__
from tk_spacy.cluster.travel import absolute_path, digest, pack, pack_files, write_files
from tk_spacy.errors import UserError
from tk_spacy.parallel.executor import Executor, Setup, Task, TaskQueue, TaskReport, TasksFailed

TRIES = 3
SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_OF_SILENCE = 300.0
"""Of a scheduler, after which it is taken for lost."""
VERSION = "tk_spacy.about:__version__"


class DaskExecutor(Executor):
    """Does tasks on the workers of a cluster, the ones on which most depends first.

    client: a `distributed.Client`.  address: what the user calls the cluster.
    shared_files: whether workers see the files of this machine under the same names.
    note: told in a line each what becomes of workers and tasks.
    """

    def __init__(
        self,
        client: Any,
        address: str,
        *,
        shared_files: bool = True,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.client, self.address, self.shared_files = client, address, shared_files
        self._note = note
        self._answered = time.monotonic()
        self.workers = 0
        self.workers = self._count()

    def run(
        self, tasks: Sequence[Task], *, setup: Setup | None = None, report: TaskReport | None = None
    ) -> Iterator[tuple[str, Any]]:
        """See `Executor.run`.

        A task that fails three times, be it that its workers die, is noted; all that do not wait
        for it are done, and then TasksFailed is raised.  A UserError ends all at once.
        """
        run = _Run(self, tasks, setup)
        try:
            with run.marked(), run.listening():
                yield from run.results(report)
        finally:
            run.stop()

    def check_versions(self) -> None:
        """Raises UserError where a worker has another version of the package than this process."""
        import pkgutil  # noqa: PLC0415

        # Of the standard library, so that a worker without the package can tell, too.
        found = self.client.run(pkgutil.resolve_name, VERSION, on_error="return")
        for worker, version in found.items():
            if version == __version__:
                continue
            has = "no tk-spacy" if isinstance(version, BaseException) else f"tk-spacy {version}"
            raise UserError(
                f"worker {worker} of {self.address} has {has}, but this is {__version__}; install "
                "the same version there"
            )

    def look(self) -> None:
        """Note where workers came or went."""
        count = self._count()
        if count != self.workers:
            wait = "" if count else ", waiting for one"
            self._note(f"cluster: {count} workers now, {self.workers} before{wait}")
            self.workers = count

    def tell(self, text: str) -> None:
        """A line for the user."""
        self._note(text)

    def _count(self) -> int:
        try:
            count = len(self.client.nthreads())
        except (OSError, TimeoutError) as error:
            if time.monotonic() - self._answered > SECONDS_OF_SILENCE:
                raise self.lost() from error
            return self.workers  # it may have too much to do
        self._answered = time.monotonic()
        return count

    def lost(self) -> UserError:
        """The scheduler is gone."""
        return UserError(
            f"the cluster {self.address} does not answer any more; what is finished is kept, run "
            "the same command again"
        )


class _Run:
    """One call of `DaskExecutor.run`."""

    def __init__(self, executor: DaskExecutor, tasks: Sequence[Task], setup: Setup | None) -> None:
        self._executor, self._client = executor, executor.client
        self._queue = TaskQueue(tasks)
        self._tasks = list(tasks)
        self._number = {task.name: i for i, task in enumerate(tasks)}
        self._run = uuid.uuid4().hex
        self._topic = f"tk-spacy-{self._run}"
        self._inbox: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._begun: Counter[int] = Counter()
        self._called: dict[int, dict[str, str]] = {}
        self._failed: dict[str, str] = {}
        self._setup: bytes | None = None
        self._setup_called: dict[str, str] = {}
        if setup is not None:
            self._setup, self._setup_called = pack(setup)
        reads = Counter(path for task in tasks for path in set(task.reads))
        self._kept = {path for path, count in reads.items() if count > 1}
        self._contents: dict[Path, Any] = {}
        self._mark: tuple[str, str] | None = None

    @contextmanager
    def marked(self) -> Iterator[None]:
        """A file by which workers know that they see the directory that is written into."""
        places = [path for task in self._tasks for path in task.writes[:1]]
        if not self._executor.shared_files or not places:
            yield
            return
        folder = next(folder for folder in places[0].absolute().parents if folder.is_dir())
        mark = folder / f".tk-spacy-{self._run}"
        mark.write_text(self._run, encoding="utf-8")
        self._mark = str(mark), self._run
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """What workers tell comes into the inbox."""
        self._client.subscribe_topic(
            self._topic, lambda event: self._inbox.put(("event", pickle.loads(event[1])))
        )
        try:
            yield
        finally:
            with suppress(Exception):
                self._client.unsubscribe_topic(self._topic)

    def results(self, report: TaskReport | None) -> Iterator[tuple[str, Any]]:
        """The result of each task as it ends."""
        tell = report or (lambda name, value: None)
        looked = time.monotonic()
        while True:
            while self._queue.ready:
                self._submit(self._queue.ready.pop(0))
            if not self._futures:
                break
            if time.monotonic() - looked > SECONDS_BETWEEN_LOOKS:
                self._executor.look()
                looked = time.monotonic()
            try:
                kind, value = self._inbox.get(timeout=SECONDS_BETWEEN_LOOKS)
            except Empty:
                continue
            if kind == "event":
                self._hear(value, tell)
                continue
            number, future = value
            if self._futures.get(number) is not future:
                continue  # given up, or tried again meanwhile
            task = self._tasks[number]
            reply = self._reply(task, future)
            if reply is None:
                continue
            del self._futures[number]
            for told in reply.reports:
                tell(task.name, told)
            for path, packed in reply.files.items():
                write_files(Path(path), packed)
                self._contents.pop(Path(path), None)
            self._queue.finish(task.name)
            while self._queue.ready:  # what is ready now need not wait for the caller
                self._submit(self._queue.ready.pop(0))
            yield task.name, reply.value
        if self._failed:
            waited = [t.name for t in self._tasks if t.name in self._queue.unfinished]
            raise TasksFailed(self._failed, [n for n in waited if n not in self._failed])

    def stop(self) -> None:
        """Cancel what is not done."""
        futures = [*self._futures.values(), *self._contents.values()]
        self._futures.clear()
        with suppress(Exception):
            if futures:
                self._client.cancel(futures, force=True)

    def _hear(self, message: tuple[str, int, Any], tell: TaskReport) -> None:
        kind, number, value = message
        name = self._tasks[number].name
        if number not in self._futures:
            return
        if kind == "begun":
            self._begun[number] += 1
            if self._begun[number] > TRIES:  # its workers were killed
                self._client.cancel([self._futures.pop(number)], force=True)
                self._give_up(name, "the worker that was at it died, each time")
            return
        for told in value:
            tell(name, told)

    def _give_up(self, name: str, error: str) -> None:
        self._failed[name] = error
        self._executor.tell(f"{name} failed {TRIES} times: {error}; the rest goes on")

    def _reply(self, task: Task, future: Any) -> Any:
        """What a worker made of a task, None where it is tried again or given up."""
        number = self._number[task.name]
        if future.status in ("cancelled", "lost"):
            raise self._executor.lost()
        if future.status == "error":
            error = future.exception()
            self._executor.check_versions()
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
            if type(error).__name__ == "KilledWorker":
                text = "the worker that was at it died, each time"
                self._begun[number] = TRIES
        else:
            reply = future.result()
            if reply.kind == "done":
                return reply
            text = str(reply.value)
            if reply.kind in ("mistake", "refused"):
                raise UserError(text)
        del self._futures[number]
        self._begun[number] = max(1, self._begun[number])
        if self._begun[number] < TRIES:
            self._submit(task)
        else:
            self._give_up(task.name, text)
        return None

    def _submit(self, task: Task) -> None:
        from tk_spacy.cluster.worker import Order, do  # noqa: PLC0415  (only for a cluster)

        number = self._number[task.name]
        travels = not self._executor.shared_files
        packed, called = pack((task.work, task.args), task.writes)
        contents = [self._content(path) for path in task.reads] if travels else []
        key = f"{task.name}-{self._run}-{self._begun[number]}"
        order = Order(
            version=__version__, run=self._run, topic=self._topic, key=key, number=number,
            n_threads=1, task=packed, setup=self._setup, called={**self._setup_called, **called},
            mark=self._mark, travels=travels,
            reads=tuple(map(absolute_path, task.reads)) if travels else (),
            kept=frozenset(absolute_path(path) for path in task.reads if path in self._kept),
            writes=tuple(map(absolute_path, task.writes)) if travels else (),
        )  # fmt: skip
        future = self._client.submit(
            do, order, *contents, key=key, pure=False, priority=self._queue.weight[task.name]
        )
        self._futures[number] = future
        future.add_done_callback(lambda done: self._inbox.put(("end", (number, done))))

    def _content(self, path: Path) -> Any:
        """A file's content at the workers; sent once, as long as no task writes the file."""
        from tk_spacy.cluster.worker import content  # noqa: PLC0415  (only for a cluster)

        place = Path(absolute_path(path))
        if place not in self._contents:
            packed = pack_files(path)
            if packed is None:
                raise UserError(f"{path}: no such file or directory; the cluster's workers need it")
            key = f"tk-spacy-file-{digest(packed)}-{self._run}"
            self._contents[place] = self._client.submit(content, packed, key=key, priority=1e9)
        return self._contents[place]
