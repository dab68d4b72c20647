"""Matrix products on one thread: those of several are not the same to the last bit."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import AbstractContextManager
from threading import Lock
from types import TracebackType

import threadpoolctl
from threadpoolctl import ThreadpoolController, threadpool_limits


def one_thread() -> AbstractContextManager[None]:
    """While this context lasts, numpy's matrix products use one thread.

    In the whole process: the first thread that enters sets the limit, the last to leave ends it.
    """
    return _LIMIT


def hold_to_one_thread() -> None:
    """From now on the libraries of this process use one thread, those of OpenMP too.

    For a forked process, in which OpenMP's threads are not there, though it takes them to be.
    """
    _take_control()
    _controller().limit(limits=1)


class _SharedLimit(AbstractContextManager[None]):
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked process the threads that were inside are not there, nor the lock's owner."""
        self._lock = Lock()
        self._inside = 0
        self._limit: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                _take_control()
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)
            if not self._inside and self._limit is not None:
                _take_control()
                self._limit.restore_original_limits()
                self._limit = None
                _take_control()


_LIMIT = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget)


def _take_control() -> None:
    """From threadpoolctl 3.8 on OpenBLAS obeys one thread, and passes over what others ask for."""
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


BRING_THEIR_OWN = ("scipy.linalg", "torch")
"""Modules that load a library of their own for products, scikit-learn the first one."""


def _controller() -> ThreadpoolController:
    return _find_libraries(tuple(name in sys.modules for name in BRING_THEIR_OWN))


@functools.cache
def _find_libraries(_loaded: tuple[bool, ...]) -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds, as much as parsing a short sentence.
    return ThreadpoolController()
