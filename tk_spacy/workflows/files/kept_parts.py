"""What is done of a large file, kept beside its result until that is whole, for a run that goes on.

`.NAME.parts` stands beside NAME: a line that says what it is a part of, then records, each a line
of JSON and the text that it counts.  A record that a kill left half written is cut off.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tk_spacy.treebank.conllu import Block, joined_blocks
from tk_spacy.treebank.data_notes import FilledColumns
from tk_spacy.treebank.enhanced import DepsCount
from tk_spacy.utils.leftovers import hidden_name
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import Job

try:
    import fcntl
except ImportError:  # Windows: two runs at a time may spoil what is kept, which is then not used
    fcntl = None  # type: ignore[assignment]

RECORD_BYTES = 1 << 22
"""Text of a record: a file of less is not kept in parts.  It is a few seconds' work."""
LINE_BYTES = 1 << 16
"""No line of JSON is longer."""
FORMAT = 1
ENDING = "parts"


class _Record(NamedTuple):
    """Where the text of a record is, and what its line says."""

    start: int
    about: dict[str, Any]


class KeptParts:
    """What an earlier run did of a file, and what this one does."""

    def __init__(self, file: BinaryIO | None, key: str) -> None:
        self._file = file
        self._records: list[_Record] = []
        self._pending: list[Part] = []
        self._bytes = self._end = 0
        self._whole = False
        if file is not None:
            self._records = list(_read(file, key))
            file.seek(0)
            file.write(json.dumps({"format": FORMAT, "key": key}).encode() + b"\n")
            if self._records:
                last = self._records[-1]
                file.seek(last.start + last.about["bytes"] + 1)
            self._end = file.tell()
            file.truncate()
            file.flush()

    @property
    def batches(self) -> int:
        """How many are kept."""
        return sum(record.about["batches"] for record in self._records)

    @property
    def sentences(self) -> int:
        """How many there are in them."""
        return sum(record.about["tally"]["sentences"] for record in self._records)

    def restored(self, tags: FileTags | None) -> Iterator[Part]:
        """What the earlier run did, in order; tags: of the file, of which each gets its own."""
        for start, about in self._records:
            assert self._file is not None  # it has the records
            self._file.seek(start)
            yield _part(about, self._file.read(about["bytes"]), tags)

    def add(self, part: Part) -> None:
        """One more batch is done."""
        if self._file is None:
            return
        self._pending.append(part)
        self._bytes += len(part.block.text)
        if self._bytes >= RECORD_BYTES:
            self._write(self._file)

    def finish(self) -> None:
        """All is done, or what is kept is of no use: it goes."""
        self._whole = True

    @property
    def is_of_use(self) -> bool:
        """Whether another run can go on with what is kept."""
        return not self._whole and self._file is not None and bool(self._records)

    def _write(self, file: BinaryIO) -> None:
        whole = Part(tags=None if self._pending[0].tags is None else self._pending[0].tags.fresh())
        for part in self._pending:
            whole.add(part)
        block = joined_blocks(part.block for part in self._pending)
        about = {
            "batches": len(self._pending),
            "bytes": len(block.text),
            "checksum": zlib.crc32(block.text),
            "block": [block.sentences, block.end, block.eol],
            **_counts(whole),
        }
        line = json.dumps(about).encode() + b"\n"
        try:
            file.seek(self._end)
            start = file.tell() + len(line)
            file.write(line + block.text + b"\n")
            file.flush()
        except OSError:  # no room for two: the result itself is worth more
            self._file = None
            return
        self._end = file.tell()
        self._records.append(_Record(start, about))
        self._pending, self._bytes = [], 0


@contextmanager
def kept_parts(job: Job) -> Iterator[KeptParts]:
    """What is kept of a job's result; nothing where the job has no key, or another run is at it."""
    path = hidden_name(job.target, ENDING)
    file = _opened(path) if job.key else None
    try:
        kept = KeptParts(file, job.key)
    except OSError:  # as on a full disk
        kept = KeptParts(None, job.key)
    try:
        yield kept
    finally:
        if file is not None:
            if not kept.is_of_use:
                with suppress(OSError):
                    path.unlink()
            with suppress(OSError):  # what did not fit on the disk
                file.close()


def _opened(path: Path) -> BinaryIO | None:
    """The file, locked; None where that cannot be had."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    except OSError:
        return None
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed it before it let go of it.
            if not os.path.samestat(os.fstat(file.fileno()), path.lstat()):
                raise FileNotFoundError
        except OSError:
            file.close()
            return None
    return file


def _read(file: BinaryIO, key: str) -> Iterator[_Record]:
    """The whole records of a file that is kept of the same."""
    if _line(file) != {"format": FORMAT, "key": key}:
        return
    begin = file.tell()
    length = file.seek(0, os.SEEK_END)
    file.seek(begin)
    while (about := _line(file)) is not None:
        start = file.tell()
        try:
            size, batches = int(about["bytes"]), int(about["batches"])
            if not 0 <= size < length - start or batches < 1:
                break
            text = file.read(size)
            _part(about, text, None)
        except (KeyError, TypeError, ValueError):
            break
        if len(text) < size or zlib.crc32(text) != about.get("checksum") or file.read(1) != b"\n":
            break
        yield _Record(start, about)


def _line(file: BinaryIO) -> dict[str, Any] | None:
    try:
        found = json.loads(file.readline(LINE_BYTES))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _counts(part: Part) -> dict[str, Any]:
    """What was counted, as JSON values."""
    tally, tags = part.tally, part.tags
    return {
        "tally": {
            "sentences": tally.sentences,
            "words": tally.words,
            "changed": tally.changed,
            "scored": tally.scored,
            "counts": [counts.tolist() for counts in tally.counts],
        },
        "filled": part.filled.found(),
        "deps": asdict(part.deps),
        "tags": None if tags is None else [tags.words, dict(tags.taken), tags.untagged],
        "trees": part.trees,
    }


def _part(about: dict[str, Any], text: bytes, tags: FileTags | None) -> Part:
    """The opposite of `_counts`, with the text.  Raises KeyError, TypeError or ValueError."""
    part = Part(tags=None if tags is None else tags.fresh())
    tally, given = part.tally, about["tally"]
    tally.sentences, tally.words = int(given["sentences"]), int(given["words"])
    tally.changed, tally.scored = int(given["changed"]), bool(given["scored"])
    for total, counts in zip(tally.counts, given["counts"], strict=True):
        total += np.array(counts, dtype=np.int64)
    part.filled = FilledColumns.of(about["filled"])
    part.deps = DepsCount(**about["deps"])
    if part.tags is not None and about["tags"] is not None:
        words, taken, untagged = about["tags"]
        part.tags.words, part.tags.untagged = int(words), int(untagged)
        part.tags.taken.update(taken)
    part.trees = int(about["trees"])
    sentences, end, eol = about["block"]
    part.block = Block(text, int(sentences), str(end), str(eol))
    return part
