"""How child processes end: with their parent, cleanly, and without a word."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tk_spacy.parallel.memory import keep_freed_memory

GRACE = 10.0
"""Seconds that a child may take to leave once it is told to."""


def begin_child() -> None:
    """Call first in a child process that `multiprocessing` spawned.

    It keeps the memory that it frees, see `memory.keep_freed_memory`.
    Ctrl-C reaches the whole group of processes, but is the parent's matter: it stops its children
    with SIGTERM, which here lets `finally` blocks remove temporary files.  A child whose parent was
    killed ends too, instead of waiting for work for ever.
    """
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), name="parent watch", daemon=True).start()


@contextmanager
def unheard(names: Iterable[int]) -> Iterator[None]:
    """No handler of these signals runs in such a block; those that come are heard at its end.

    A process that is started in it has them blocked at first.  To block them is not enough: a
    thread of OpenMP, or one that draws, takes them then, and Python runs the handler in the main
    thread all the same.  What that raises would lose a process that has just begun, or be lost
    itself in a function that Python calls around a fork, so that Ctrl-C is not obeyed.
    """
    names = list(names)
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # no other one may set handlers
        handlers = {name: one for name in names if callable(one := signal.getsignal(name))}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, names)
    try:
        for name in handlers:
            signal.signal(name, lambda number, _frame: came.append(number))
        yield
    finally:
        for name, handler in handlers.items():
            signal.signal(name, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for name in dict.fromkeys(came):
            signal.raise_signal(name)


@contextmanager
def spawning() -> Iterator[None]:
    """Start child processes in such a block, so that Ctrl-C does not meet them while they import.

    They inherit its being blocked; what is pressed meanwhile reaches this process at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    with unheard([signal.SIGINT]):
        yield


def _leave(*_: object) -> None:
    # Something may take SystemExit for an error like any other, and go on.
    last = threading.Timer(GRACE, os._exit, (1,))
    last.daemon = True
    last.start()
    sys.exit(1)


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)  # the handler runs in the main thread
    threading.main_thread().join(timeout=GRACE)
    os._exit(1)  # it did not end: it hangs in something that no signal interrupts
