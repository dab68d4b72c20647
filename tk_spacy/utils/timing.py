"""Wall time of the stages of a command, and the peak of its memory, children included."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

import psutil

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SAMPLE_SECONDS = 0.25


class Meter:
    """Measures from entering to leaving a `with` block.

    seconds: wall time of each stage by name, in order of first use; stages of one name add up.
    peak_bytes: the most resident memory that this process and all its children held together, as
        sampled every quarter second.  Pages that processes share count once for each of them, so
        the true need may be lower.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_bytes = 0
        self._started = time.perf_counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory meter", daemon=True)

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def total_seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self._started

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the block's wall time to the stage of that name."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def sample(self) -> int:
        """Look at the memory now; returns the peak so far in bytes."""
        with suppress(psutil.Error):  # what cannot be looked at is not counted
            self.peak_bytes = max(self.peak_bytes, tree_memory())
        return self.peak_bytes

    def _watch(self) -> None:
        # This process's own peak may lie between two samples, but the kernel remembers it.
        while not self._stop.wait(SAMPLE_SECONDS):
            self.sample()
        self.peak_bytes = max(self.sample(), own_peak())


def tree_memory() -> int:
    """Resident bytes of this process and of all its descendants."""
    me = psutil.Process()
    total = int(me.memory_info().rss)
    for child in me.children(recursive=True):
        try:
            total += int(child.memory_info().rss)
        except psutil.Error:  # it ended just now
            continue
    return total


def own_peak() -> int:
    """The most resident bytes that this process alone ever held."""
    if resource is None:  # Windows
        return int(psutil.Process().memory_info().peak_wset)
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
