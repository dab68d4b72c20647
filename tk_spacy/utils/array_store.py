"""Arrays of many small records, of which memory holds the last ones alone, and a file the others.

What a training keeps of every sentence is more than the memory of an ordinary machine where the
treebank has a million words.  It is written as it is made, and read through a mapping of the file:
the system holds in memory what is in use, and may let go of it at any time.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

SEGMENT = 1 << 25
"""Bytes of records that memory holds; what there is more goes into the file."""
LENT = 1 << 28
"""Bytes that are lent from the file before the system is told that it may have their pages back."""
WORD = 8
"""Bytes; each array begins at a multiple of it."""

Record = tuple[NDArray[Any], ...]

_place: ContextVar[Path | None] = ContextVar("place of stored arrays", default=None)


@contextmanager
def arrays_stored_beside(path: str | os.PathLike[str]) -> Iterator[None]:
    """Stores that are made meanwhile have their files where `path` is, or is to be.

    Without it they are where the system has its temporary files, which on many systems is memory.
    """
    token = _place.set(Path(path).absolute().parent)
    try:
        yield
    finally:
        _place.reset(token)


class ArrayStore:
    """Records of as many arrays each, which have the same types and numbers of axes in all.

    They are not to be changed.  segment: bytes, SEGMENT by default.  The file has no name, or loses
    it at once where the system knows none without: it ends with the process.
    """

    def __init__(self, *, segment: int | None = None) -> None:
        self._segment = SEGMENT if segment is None else segment
        self._place = _place.get()
        self._kinds: tuple[tuple[np.dtype[Any], int], ...] | None = None
        self._file: IO[bytes] | None = None
        self._folder: Path | None = None
        self._written = 0
        self._maps: list[mmap.mmap] = []
        # Of each record in the file: the mapping that it is in, and where it begins there.
        self._maps_of, self._starts = array("i"), array("q")
        self._ahead: list[Record] = []
        self._ahead_bytes = 0
        self._lent = 0

    def __len__(self) -> int:
        return len(self._starts) + len(self._ahead)

    @property
    def in_file(self) -> int:
        """Bytes of the file."""
        return self._written

    def append(self, record: Sequence[NDArray[Any]]) -> None:
        """One more record.  Raises TypeError where its arrays are of other types than the first's.

        Raises OSError, which names the folder, where the file cannot be written, as on a full disk.
        """
        arrays = tuple(record)
        kinds = tuple((item.dtype, item.ndim) for item in arrays)
        if self._kinds is None:
            self._kinds = kinds
        elif kinds != self._kinds:
            raise TypeError(f"arrays are {kinds}, expected {self._kinds} as in the first record")
        self._ahead.append(arrays)
        self._ahead_bytes += sum(item.nbytes for item in arrays)
        if self._ahead_bytes >= self._segment:
            try:
                self._write()
            except OSError as error:  # which knows no name, as the file has none
                where = os.fspath(self._folder or tempfile.gettempdir())
                raise OSError(error.errno, error.strerror, where) from error

    def __getitem__(self, place: int) -> Record:
        if not 0 <= place < len(self):
            raise IndexError(f"record {place} of {len(self)}")
        if place >= len(self._starts):
            return self._ahead[place - len(self._starts)]
        assert self._kinds is not None  # there is a record
        source, start = self._maps[self._maps_of[place]], self._starts[place]
        axes = sum(ndim for _, ndim in self._kinds)
        shapes = np.frombuffer(source, np.int64, axes, start).tolist()
        at, axis = start + WORD * axes, 0
        found = []
        for dtype, ndim in self._kinds:
            shape = shapes[axis : axis + ndim]
            found.append(np.ndarray(shape, dtype, source, at))
            axis += ndim
            at += _padded(prod(shape) * dtype.itemsize)
        self._lend(at - start)
        return tuple(found)

    def _lend(self, size: int) -> None:
        """Now and then, give pages back that have been read: they can be read again."""
        self._lent += size
        if self._lent >= LENT:
            self._lent = 0
            if hasattr(mmap, "MADV_DONTNEED"):
                for mapped in self._maps:
                    mapped.madvise(mmap.MADV_DONTNEED)

    def _write(self) -> None:
        """Write the records that memory holds, and map them."""
        if self._file is None:
            self._file, self._folder = _nameless_file(self._place)
            weakref.finalize(self, _close, self._file)  # mappings outlive it
        begin = self._written
        self._file.seek(begin)  # after a disk was full it may stand elsewhere
        starts = []
        at = 0
        for record in self._ahead:
            starts.append(at)
            shapes = np.array([size for item in record for size in item.shape], dtype=np.int64)
            for item in (shapes, *record):
                self._file.write(np.ascontiguousarray(item).data.cast("B") if item.size else b"")
                padding = _padded(item.nbytes) - item.nbytes
                self._file.write(b"\0" * padding)
                at += item.nbytes + padding
        granule = mmap.ALLOCATIONGRANULARITY
        self._file.write(b"\0" * (-at % granule))
        self._file.flush()
        self._written = begin + at + -at % granule
        # Private, so that arrays are not read-only, which compiled code might refuse.
        self._maps.append(
            mmap.mmap(
                self._file.fileno(), self._written - begin, access=mmap.ACCESS_COPY, offset=begin
            )
        )
        self._maps_of.extend([len(self._maps) - 1] * len(starts))
        self._starts.extend(starts)
        self._ahead, self._ahead_bytes = [], 0


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # what did not fit on the disk
        file.close()


def _padded(size: int) -> int:
    return size + -size % WORD


def _nameless_file(place: Path | None) -> tuple[IO[bytes], Path | None]:
    """A file in the next folder above that there is; None where the system has its own if not."""
    for folder in [] if place is None else [place, *place.parents]:
        if folder.is_dir():
            try:
                return tempfile.TemporaryFile(dir=folder), folder
            except OSError:
                break
    return tempfile.TemporaryFile(), None
