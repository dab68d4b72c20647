"""What a worker does with a task: it runs in the process of the worker, in a thread of Dask's."""

from __future__ import annotations

import atexit
import pickle
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tk_spacy.about import __version__
from tk_spacy.cluster.travel import (
    as_called,
    below,
    digest,
    pack_files,
    remove,
    unpack,
    write_files,
)
from tk_spacy.errors import UserError
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parallel.executor import Surroundings
from tk_spacy.parallel.memory import keep_freed_memory

SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A task, for a worker.

    run: of the executor, by which a process knows what it has set up for it.  key: Dask's name of
    the task.  number: by which the caller knows it.
    task: work and arguments, packed; setup: packed too, None for none.
    called: what paths are called by the user.
    mark: a file that a worker on the same file system sees, and what is in it.
    travels: whether files come with the order and go back with the reply; then reads and writes are
    theirs, and kept those of reads that later tasks need too.
    """

    version: str
    run: str
    topic: str
    key: str
    number: int
    n_threads: int
    task: bytes
    setup: bytes | None
    called: dict[str, str]
    mark: tuple[str, str] | None = None
    travels: bool = False
    reads: tuple[str, ...] = ()
    kept: frozenset[str] = frozenset()
    writes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Reply:
    """What became of a task.

    kind: "refused" where the worker cannot do any task, "mistake" of the user, else "failed".
    reports: that were not sent before.  files: by path, what was made, None for what was removed.
    """

    kind: Literal["done", "refused", "mistake", "failed"]
    value: Any = None
    reports: list[Any] = field(default_factory=list)
    files: dict[str, bytes | None] = field(default_factory=dict)


class _Stopped(BaseException):
    """The caller has cancelled the task."""


def content(packed: bytes) -> bytes:
    """Files as the result of a task, so that they come again where a worker with them is lost."""
    return packed


class _Process:
    """What tasks of this process share."""

    def __init__(self) -> None:
        # One pipeline, one BLAS: a worker of several threads does one task at a time.
        self.lock = threading.Lock()
        self.run, self.shared = "", None
        self.root: Path | None = None
        self.installed: dict[str, str] = {}

    def begin(self, order: Order) -> None:
        """Forget what another run has set up."""
        if self.run == order.run:
            return
        keep_freed_memory()
        self.run, self.shared = order.run, None
        if self.root is not None:
            shutil.rmtree(self.root, ignore_errors=True)
        self.root, self.installed = None, {}
        if order.travels:
            self.root = Path(tempfile.mkdtemp(prefix="tk-spacy-"))
            atexit.register(shutil.rmtree, self.root, ignore_errors=True)
        if order.mark is not None:
            place, text = order.mark
            try:
                seen = Path(place).read_text(encoding="utf-8") == text
            except OSError:
                seen = False
            if not seen:
                self.run = ""
                raise UserError(
                    f"worker {_address()} does not see {Path(place).parent}; give workers the same "
                    "file system, or --no-shared-files"
                )
        if order.setup is not None:
            self.shared = _NOT_YET


_PROCESS = _Process()
_NOT_YET: Any = object()


def do(order: Order, *contents: bytes) -> Reply:
    """Do a task."""
    if order.version != __version__:
        text = f"worker {_address()} has tk-spacy {__version__}, but this is {order.version}"
        return Reply(kind="refused", value=f"{text}; install the same version there")
    with _PROCESS.lock, one_thread():
        reports = _Reports(order)
        try:
            return _done(order, contents, reports)
        except UserError as error:
            text = as_called(str(error), order.called, _PROCESS.root)
            return Reply(kind="mistake", value=text)
        except _Stopped:
            return Reply(kind="failed", value="cancelled")
        except Exception as error:
            text = as_called(f"{type(error).__name__}: {error}", order.called, _PROCESS.root)
            return Reply(kind="failed", value=" ".join(text.split()))


def _done(order: Order, contents: tuple[bytes, ...], reports: _Reports) -> Reply:
    here = _PROCESS
    here.begin(order)
    for path, packed in zip(order.reads, contents, strict=True):
        if here.installed.get(path) != digest(packed):
            write_files(below(here.root, path), packed)
            here.installed[path] = digest(packed)
    if order.travels:
        for path in order.writes:
            below(here.root, path).parent.mkdir(parents=True, exist_ok=True)
    if here.shared is _NOT_YET:
        here.shared = unpack(order.setup or b"", here.root)(order.n_threads)
    work, args = unpack(order.task, here.root)
    value = work(Surroundings(order.n_threads, reports, here.shared), *args)
    reply = Reply(kind="done", value=value, reports=reports.left())
    if order.travels:
        for path in order.writes:
            place = below(here.root, path)
            reply.files[path] = pack_files(place)
            remove(place)
        for path in order.reads:
            if path not in order.kept:
                remove(below(here.root, path))
                here.installed.pop(path, None)
    return reply


class _Reports:
    """Sends what a task tells, some at a time; ends a task that nobody wants any more."""

    def __init__(self, order: Order) -> None:
        self._order, self._worker = order, _worker()
        self._values: list[Any] = []
        self._sent = time.monotonic()
        self._send("begun", self._worker.address)

    def __call__(self, value: Any) -> None:
        self._values.append(value)
        if time.monotonic() - self._sent < SECONDS_BETWEEN_REPORTS:
            return
        state = self._worker.state.tasks.get(self._order.key)
        if state is None or state.state in ("cancelled", "resumed", "released", "forgotten"):
            raise _Stopped
        self._send("reports", self.left())

    def left(self) -> list[Any]:
        """What was not sent yet."""
        values, self._values = self._values, []
        return values

    def _send(self, kind: str, value: Any) -> None:
        # As bytes: Dask's own messages have numbers, texts and lists alone.
        message = pickle.dumps((kind, self._order.number, value))
        self._worker.log_event(self._order.topic, message)
        self._sent = time.monotonic()


def _address() -> str:
    return str(_worker().address)


def _worker() -> Any:
    from distributed import get_worker  # noqa: PLC0415  (an extra)

    return get_worker()
