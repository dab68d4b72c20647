"""Matrix products on one thread: those of several are not the same to the last bit."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """While this context lasts, numpy's matrix products use one thread."""
    return _controller().limit(limits=1, user_api="blas")


@functools.cache
def _controller() -> ThreadpoolController:
    # Finding the loaded libraries takes milliseconds, as much as parsing a short sentence.
    return ThreadpoolController()
