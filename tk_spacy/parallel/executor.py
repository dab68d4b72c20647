"""Tasks that depend on each other, done in this process or in several, with the same results.

A task is plain data and a function of a module, so that it can go to another process, or later to
another machine.  Every executor has the one method `run`; all that can go wrong is handled there:
an error of a task, a process that is killed, Ctrl-C, and a caller that stops in the middle.  What
tasks have finished by then is theirs to keep, in files.

Why not a pool of the standard library: `concurrent.futures` cannot stop workers that are at work,
and `multiprocessing.Pool` waits for ever for a task whose worker was killed.  loky kills workers at
once, so that they leave their temporary files behind, and does not say whose task was killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parallel.processes import GRACE, begin_child, spawning

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

TaskReport = Callable[[str, Any], None]
"""Called in the caller's process with a task's name and what the task reported."""
Setup = Callable[[int | None], Any]
"""Makes what the tasks of one process share, such as an opened model, from the threads to use."""


class TaskError(RuntimeError):
    """A task failed by a fault of the program, or its process was killed; names the task.

    killed: whether its process ended without a word.
    """

    def __init__(self, text: str, *, killed: bool = False) -> None:
        super().__init__(text)
        self.killed = killed


class TasksFailed(TaskError):
    """Some tasks failed by faults of the program, and all that did not wait for them are done.

    failed: by the name of each such task, its error, one line.  not_done: names of the tasks that
    waited for them.
    """

    def __init__(self, failed: Mapping[str, str], not_done: Sequence[str] = ()) -> None:
        self.failed, self.not_done = dict(failed), tuple(not_done)
        text = "; ".join(f"{name} failed: {error}" for name, error in self.failed.items())
        super().__init__(f"{text}; not done: {', '.join(not_done)}" if not_done else text)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a task finds where it runs.

    n_threads: that it may use, None for all.  report: takes what is told of its progress, plain
    data.  shared: what the executor's `setup` made in this process, else None.
    """

    n_threads: int | None
    report: Callable[[Any], None]
    shared: Any = None


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work.

    name: in messages, and for tasks that wait for this one.
    work: a function of a module, called with its `Surroundings` and args; returns plain data.
    cost: about how long it takes, in any unit; the results do not depend on it.
    after: names of earlier tasks that must be done before.
    reads: files and directories that it needs, for executors whose workers do not see them.
    writes: those that it makes, or removes.
    """

    name: str
    work: Callable[..., Any]
    args: tuple[Any, ...] = ()
    cost: float = 1.0
    after: tuple[str, ...] = ()
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()


class Executor(ABC):
    """Does tasks."""

    @abstractmethod
    def run(
        self, tasks: Sequence[Task], *, setup: Setup | None = None, report: TaskReport | None = None
    ) -> Iterator[tuple[str, Any]]:
        """The name and result of each task as it ends, in any order.

        tasks: each after those that it waits for.
        report: called with what tasks report, between their results.

        Where a task fails, or the caller stops, the others are stopped too.
        Raises a task's UserError as it is, TaskError for any other, or where a process was killed;
        ValueError for tasks of one name, or that wait for none that stands before them.
        """


@dataclass(frozen=True, slots=True)
class LocalExecutor(Executor):
    """Does tasks in this process, one after the other, in their order."""

    n_threads: int | None = None

    def run(
        self, tasks: Sequence[Task], *, setup: Setup | None = None, report: TaskReport | None = None
    ) -> Iterator[tuple[str, Any]]:
        """See `Executor.run`; an error of a task is raised as it is, with its own traceback."""
        check_tasks(tasks)
        shared = None if setup is None or not tasks else setup(self.n_threads)
        for task in tasks:

            def tell(value: Any, name: str = task.name) -> None:
                if report is not None:
                    report(name, value)

            yield task.name, task.work(Surroundings(self.n_threads, tell, shared), *task.args)


@dataclass(frozen=True, slots=True)
class ProcessExecutor(Executor):
    """Does tasks in processes of their own, the ones on which most depends first.

    processes: at a time.  n_threads: of each; their libraries are held to it too.
    """

    processes: int
    n_threads: int = 1

    def run(
        self, tasks: Sequence[Task], *, setup: Setup | None = None, report: TaskReport | None = None
    ) -> Iterator[tuple[str, Any]]:
        """See `Executor.run`."""
        queue = TaskQueue(tasks)
        workers: list[_Worker] = []
        home = os.getpid()
        try:
            while queue.unfinished:
                self._hand_out(queue, workers, setup)
                busy = {worker.connection: worker for worker in workers if worker.task is not None}
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]  # only connections are in it
                    kind, value = worker.receive()
                    if kind == "report":
                        if report is not None:
                            report(worker.name, value)
                        continue
                    if kind == "failed":
                        raise _error(worker.name, value)
                    name, worker.task = worker.name, None
                    queue.finish(name)
                    # What is ready now need not wait for the caller to look at the result.
                    self._hand_out(queue, workers, setup)
                    yield name, value
        finally:
            if os.getpid() == home:  # a copy in a forked process leaves them alone
                stop_processes([(worker.process, worker.connection) for worker in workers])

    def _hand_out(self, queue: TaskQueue, workers: list[_Worker], setup: Setup | None) -> None:
        idle = [worker for worker in workers if worker.task is None]
        # All are started before the first gets its task, which may wait for its imports to end.
        while len(idle) < len(queue.ready) and len(workers) < self.processes:
            with threads_of_children(self.n_threads), spawning():
                idle.append(_Worker.start(setup, self.n_threads))
                workers.append(idle[-1])  # before Ctrl-C can be heard, which ends all of them
        for worker in idle[: len(queue.ready)]:
            worker.give(queue.ready.pop(0))


def make_executor(
    tasks: Sequence[Task], *, processes: int, n_threads: int | None, threads_each: int = 1
) -> Executor:
    """The executor that suits tasks: one process each on threads_each where two can run at a time.

    Else this process, on n_threads.  Where `executing` names one, it is that.
    """
    chosen = _CHOSEN.get()
    if chosen is not None and tasks:
        return chosen
    at_a_time = sum(not task.after for task in tasks)
    if processes > 1 and at_a_time > 1:
        return ProcessExecutor(min(processes, at_a_time), threads_each)
    return LocalExecutor(n_threads)


_CHOSEN: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def executing(executor: Executor | None) -> Iterator[None]:
    """Have all tasks within done by this executor, whatever they are; None changes nothing."""
    token = _CHOSEN.set(executor if executor is not None else _CHOSEN.get())
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen_executor() -> Executor | None:
    """The one that `executing` names, None outside of it."""
    return _CHOSEN.get()


def run_all(
    executor: Executor,
    tasks: Sequence[Task],
    *,
    setup: Setup | None = None,
    report: TaskReport | None = None,
) -> dict[str, Any]:
    """The results of all tasks, by their names."""
    return dict(executor.run(tasks, setup=setup, report=report))


# Which task is next


class TaskQueue:
    """The tasks that are not yet done; `ready` holds those that can begin, the first one first.

    weight: by name, the cost of a task and of the longest chain of tasks that wait for it.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        check_tasks(tasks)
        self.weight = _weights(tasks)
        self._place = {task.name: i for i, task in enumerate(tasks)}
        self._waiting = {task.name: (task, set(task.after)) for task in tasks}
        self.unfinished = set(self._place)
        self.ready: list[Task] = []
        self._release()

    def finish(self, name: str) -> None:
        """A task is done."""
        self.unfinished.remove(name)
        for _, missing in self._waiting.values():
            missing.discard(name)
        self._release()

    def _release(self) -> None:
        free = [task for task, missing in self._waiting.values() if not missing]
        for task in free:
            del self._waiting[task.name]
        if not free:
            return
        self.ready += free
        self.ready.sort(key=lambda task: (-self.weight[task.name], self._place[task.name]))


def _weights(tasks: Sequence[Task]) -> dict[str, float]:
    """The cost of each task and of the longest chain of tasks that wait for it."""
    weight = {task.name: task.cost for task in tasks}
    for task in reversed(tasks):
        for name in task.after:
            cost = next(other.cost for other in tasks if other.name == name)
            weight[name] = max(weight[name], cost + weight[task.name])
    return weight


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raises ValueError for tasks of one name, or that wait for none that stands before them."""
    seen: set[str] = set()
    for task in tasks:
        if task.name in seen:
            raise ValueError(f"two tasks are called {task.name!r}; their names must differ")
        missing = [name for name in task.after if name not in seen]
        if missing:
            raise ValueError(f"task {task.name!r} waits for {missing}, none of which is before it")
        seen.add(task.name)


# Processes


@dataclass(slots=True)
class _Worker:
    """A process, and the task that it is at, if any."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    task: Task | None = field(default=None)

    @classmethod
    def start(cls, setup: Setup | None, n_threads: int) -> _Worker:
        # Spawned, since a forked child would inherit OpenMP and BLAS threads in an unknown state.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, setup, n_threads), daemon=True)
        process.start()
        theirs.close()  # so that its end is seen as the end of what it sends
        return cls(process, ours)

    @property
    def name(self) -> str:
        return "" if self.task is None else self.task.name

    def give(self, task: Task) -> None:
        self.task = task
        with suppress(BrokenPipeError):  # it is dead, which `receive` tells
            self.connection.send(task)

    def receive(self) -> tuple[str, Any]:
        """What comes next: ("report" | "done" | "failed", value)."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):  # OSError: it died amid a message
            self.process.join(GRACE)
            code = self.process.exitcode
            if code is not None and code >= 0:
                raise TaskError(
                    f"the process of {self.name} ended with exit code {code}: a script that starts "
                    'processes needs `if __name__ == "__main__":`, or one process'
                ) from None
            raise TaskError(
                f"the process of {self.name} was killed{signal_name(code)}", killed=True
            ) from None


def signal_name(code: int | None) -> str:
    """What ended a process that was killed, by its exit code, for the end of a sentence."""
    if code is None or code >= 0:
        return " (most often: out of memory)"
    name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
    return f" by {name} (most often: out of memory)" if name == "SIGKILL" else f" by {name}"


def stop_processes(
    workers: Sequence[tuple[multiprocessing.process.BaseProcess, Connection]],
) -> None:
    """End all processes: the idle and the working ones, which remove what is half-written.

    Who interrupts it, as by a second Ctrl-C, has them killed at once.
    """
    try:
        for process, _ in workers:
            process.terminate()
        last = time.monotonic() + GRACE
        for process, _ in workers:
            process.join(max(0.0, last - time.monotonic()))
    finally:
        late = [process for process, _ in workers if process.is_alive()]
        for process in late:
            process.kill()
        for process in late:
            process.join()
        for _, connection in workers:
            connection.close()


def _error(name: str, value: Any) -> Exception:
    if isinstance(value, UserError):
        return value
    error = TaskError(f"{name} failed: {type(value).__name__}: {value}")
    error.__cause__ = value
    return error


def _serve(connection: Connection, setup: Setup | None, n_threads: int) -> None:
    """The life of a process: task after task, until it is told to end."""
    begin_child()
    shared = None
    is_set_up = setup is None
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            if not is_set_up and setup is not None:
                shared, is_set_up = setup(n_threads), True
            here = Surroundings(n_threads, lambda value: connection.send(("report", value)), shared)
            connection.send(("done", task.work(here, *task.args)))
        except Exception as error:
            send_error(connection, error)


def send_error(connection: Connection, error: Exception) -> None:
    """Tell the parent of an error, as it is where that can travel."""
    try:
        # Some exceptions are made from other arguments than they were pickled with.
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    connection.send(("failed", error))


@contextmanager
def threads_of_children(n_threads: int) -> Iterator[None]:
    """Spawned processes read these when they load BLAS and OpenMP."""
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(n_threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
