"""What the C library does with memory that is freed."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT = 1 << 28
_LARGEST = 1 << 25  # the most that glibc takes


def keep_freed_memory() -> bool:
    """Keep up to 256 MiB that this process frees for its next arrays; whether that was granted.

    A training frees and takes arrays of megabytes at each step.  glibc gives them back to the
    system each time, which then clears every page anew: up to a third of the time of an LSTM.
    For the process of a command, not one that imports this package.  Elsewhere than on Linux with
    glibc it does nothing.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # musl has none
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, _KEPT))
