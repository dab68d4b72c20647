"""Plain data that goes to other processes, with the paths in it."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any


class PathPickler(pickle.Pickler):
    """Pickles paths as it is told.

    reduce: what stands for a path, as `__reduce__` gives it; NotImplemented for the path itself.
    """

    def __init__(self, file: io.BytesIO, reduce: Callable[[PurePath], Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._reduce = reduce

    def reducer_override(self, value: Any) -> Any:
        """Called for all that is no number, text or collection."""
        return self._reduce(value) if isinstance(value, PurePath) else NotImplemented


def files_of(value: Any) -> tuple[Path, ...]:
    """The files and directories that plain data names by paths, as far as they are there.

    None of what is no plain data, and so goes to no other process.
    """
    found: dict[Path, None] = {}

    def note(path: PurePath) -> Any:
        if Path(path).exists():
            found[Path(path)] = None
        return NotImplemented

    try:
        PathPickler(io.BytesIO(), note).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return ()
    return tuple(found)
