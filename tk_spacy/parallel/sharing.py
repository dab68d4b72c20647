"""One stream of items shared among forked processes, and what they make of it in order.

For work that Python's own lock keeps on one core.  A forked process has all that its parent has
loaded, in the same memory, and begins in milliseconds; where a fork is not safe (see `may_fork`)
the work is done in this process.  Items and results travel as pickles; a few are under way at a
time, so that an endless stream needs no more memory than a short one.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from tk_spacy.parallel.blas import hold_to_one_thread
from tk_spacy.parallel.executor import (
    THREAD_VARIABLES,
    TaskError,
    send_error,
    signal_name,
    stop_processes,
)
from tk_spacy.parallel.processes import GRACE, begin_child, unheard

T = TypeVar("T")
R = TypeVar("R")

UNDER_WAY = 4
"""What `in_order` reads ahead, in items for each process."""
DRAWING = ("rich.live",)
"""Modules whose threads only draw on a terminal, which workers leave alone."""
LEFT_TO_PARENT = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that a worker does not hear as its parent does; at its start a handler of the parent's
would run in it, and undo there what the parent has begun."""


def in_order(
    items: Iterable[T],
    work: Callable[[T], R],
    *,
    processes: int,
    what: str = "the work",
    under_way: int = UNDER_WAY,
) -> Generator[R, None, None]:
    """What `work` makes of each item, in their order.

    processes: that share the items, each on one thread.  With one, or where this process may not
        or cannot fork, all is done here; so is the first item always, which makes what all need,
        and the second where no third one follows.
    what: they work on, for messages.
    under_way: items for each process that may be read before the first of them is given back.

    `items` runs here, a little ahead.  What it raises, or `work` does, is raised after the results
    of the items before.  Who closes this generator ends the processes at once.
    Raises TaskError where a process is killed; RuntimeError in a process that was forked meanwhile
    and goes on with its copy of this generator.
    """
    source = _Source(items)
    if source.has(1):
        yield work(source.take())
    if processes > 1 and source.has(2) and may_fork():
        yield from _shared(source, work, processes, what, under_way)
    while source.has(1):
        yield work(source.take())
    if source.error is not None:
        raise source.error


def may_fork() -> bool:
    """Whether this process may go on in forked ones.

    On Linux, from the main thread, where no other thread of Python may hold a lock at the time,
    and nothing is on a GPU.  The threads of OpenMP and BLAS do no harm: workers use one each.
    """
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return False
    others = set(threading.enumerate()) - {threading.main_thread()}
    if threading.current_thread() is not threading.main_thread() or any(
        type(thread).__module__ not in DRAWING for thread in others
    ):
        return False
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized()
    return not on_gpu and "cupy" not in sys.modules


class _Source(Generic[T]):
    """Items that are looked at before they are taken.

    error: what ended them before their time, for when those before are done.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)
        self._ahead: deque[T] = deque()
        self._ended = False
        self.error: Exception | None = None

    def has(self, count: int) -> bool:
        """Whether there are so many more."""
        while len(self._ahead) < count and not self._ended:
            try:
                self._ahead.append(next(self._items))
            except StopIteration:
                self._ended = True
            except Exception as error:
                self._ended, self.error = True, error
        return len(self._ahead) >= count

    def take(self) -> T:
        """The next one."""
        return self._ahead.popleft()


def _shared(
    source: _Source[T], work: Callable[[T], R], processes: int, what: str, under_way: int
) -> Generator[R, None, None]:
    workers: list[_Worker] = []
    done: dict[int, tuple[str, Any]] = {}
    handed = due = 0
    most, home = processes, os.getpid()

    def hand_out() -> None:
        nonlocal handed, most
        while handed - due < under_way * processes and source.has(1):
            worker = next((one for one in workers if one.number is None), None)
            if worker is None and len(workers) < most:
                # Asked anew: the caller may have begun a thread, or goes on in another one.
                if may_fork():
                    with suppress(OSError):  # the system has no room for more
                        worker = _Worker.start(work, workers)
                if worker is None:
                    most = len(workers)
            if worker is None:
                return  # the next item is read, and waits
            worker.give(handed, source.take())
            handed += 1

    try:
        while True:
            hand_out()
            busy = {worker.connection: worker for worker in workers if worker.number is not None}
            if not busy:
                return
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]  # only connections are in it
                number, result = worker.receive(what)
                done[number] = result
            hand_out()  # no process need wait for what the caller does with results
            while due in done:
                kind, value = done.pop(due)
                due += 1
                if kind == "failed":
                    raise value
                yield value
                if os.getpid() != home:
                    raise RuntimeError(
                        f"{what} is shared among the processes of another one, from which this one "
                        "was forked; only that one can go on with it"
                    )
    finally:
        if os.getpid() == home:  # a copy in a forked process leaves them alone
            stop_processes([(worker.process, worker.connection) for worker in workers])


@dataclass(slots=True)
class _Worker:
    """A process, and the number of the item that it is at, if any."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    number: int | None = None

    @classmethod
    def start(cls, work: Callable[[Any], Any], workers: list[_Worker]) -> _Worker:
        """A new one, put among the others, whose ends of pipes it closes in itself."""
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        inherited = [ours, *(worker.connection for worker in workers)]
        process = context.Process(target=_serve, args=(theirs, inherited, work), daemon=True)
        with unheard(LEFT_TO_PARENT), warnings.catch_warnings():
            # Python warns of any threads; see `may_fork` for those that there may be.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
            worker = cls(process, ours)
            workers.append(worker)
        theirs.close()  # so that its end is seen as the end of what it sends
        return worker

    def give(self, number: int, item: Any) -> None:
        self.number = number
        with suppress(BrokenPipeError, ConnectionResetError):  # it is dead, which `receive` tells
            self.connection.send(item)

    def receive(self, what: str) -> tuple[int, tuple[str, Any]]:
        """The number of its item and what became of it: ("done" | "failed", value)."""
        assert self.number is not None
        try:
            result = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(GRACE)
            how = signal_name(self.process.exitcode)
            raise TaskError(
                f"{what}: a process that worked on it was killed{how}", killed=True
            ) from None
        number, self.number = self.number, None
        return number, result


def _serve(
    connection: Connection, inherited: Sequence[Connection], work: Callable[[Any], Any]
) -> None:
    """The life of a process: item after item, until it is told to end."""
    # A collection would write to all objects that the parent has made, and so copy their memory.
    # Frozen here, not in the parent, which may have frozen some itself, and would thaw them.
    gc.freeze()
    # An event loop of the parent hears there of signals, and would take this process's for its own.
    signal.set_wakeup_fd(-1)
    begin_child()
    for name in LEFT_TO_PARENT:
        if name != signal.SIGTERM:
            signal.signal(name, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, LEFT_TO_PARENT)
    _leave_terminal()
    hold_to_one_thread()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for libraries that are loaded later
    for other in inherited:
        other.close()
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            connection.send(("done", work(item)))
        except Exception as error:
            send_error(connection, error)


def _leave_terminal() -> None:
    """Streams and logs of its own: a thread that draws may have held the locks of the others."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    errors = nowhere
    if sys.__stderr__ is not None:  # else 2 may be any file that was opened
        with suppress(OSError):
            errors = os.dup(2)
    sys.stdout = os.fdopen(nowhere, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(errors, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
    logging.root.handlers.clear()
