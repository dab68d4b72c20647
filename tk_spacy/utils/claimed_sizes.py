"""What the files of a model claim to hold, held against their bytes before memory is taken.

A model may come from anybody.  Each check reads headers only; those of msgpack and of deflated
arrays are bounded by the bytes that are there, so that what is opened afterwards is too.
"""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np
from srsly.msgpack import Unpacker

MOST_DEFLATED = 1032
"""Bytes that one byte of deflate can stand for."""
MOST_UNPACKED = 1 << 30
"""Bytes of arrays that a file may hold whatever its size (as a hashed map mostly of zeros does)."""
MOST_RATIO = 200
"""Of the bytes in larger arrays to those of their file."""
MOST_CELLS = 1 << 26
"""Cells of a table that may be there however few of them are stored."""
CELLS_EACH = 4096
"""Cells of a larger table for each one that is stored, at most: about a page of memory."""
MOST_LENGTH = 1 << 16
"""Of an axis of an array without values."""


class ClaimError(ValueError):
    """A file claims what cannot be; the text says what, for people."""


def shown_bytes(size: int) -> str:
    """A number of bytes for people: 12 GB, 10.2 KB."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.3g} {unit}"
    return f"{size} bytes"


def check_msgpack(content: bytes) -> None:
    """Raises ValueError unless content is msgpack that holds all that its headers announce.

    Nothing is made of it: a list of two thousand million values in a file of ten bytes takes no
    memory.
    """
    unpacker = Unpacker(None, max_buffer_size=max(1, len(content)))
    unpacker.feed(content)
    try:
        unpacker.skip()
    except Exception as error:
        raise ValueError("no whole msgpack file") from error


def check_thinc_model(unpacked: Any) -> None:
    """The same of the msgpack within a thinc model's.

    unpacked: what the bytes of the model hold.
    """
    if not isinstance(unpacked, dict):
        return
    for nodes in (unpacked.get("attrs"), unpacked.get("shims")):
        for node in nodes if isinstance(nodes, list) else []:
            for inner in node.values() if isinstance(node, dict) else node:
                if isinstance(inner, bytes) and inner:
                    check_msgpack(inner)


def check_npy(data: bytes) -> None:
    """Raises ClaimError unless an .npy file holds the plain array that its header announces."""
    with io.BytesIO(data) as file:
        _check_array(file, len(data), "the array")


def check_npz(data: bytes) -> None:
    """Raises ClaimError unless the arrays of an .npz file are plain, and of the size they claim.

    And whatever readers of zip files and headers raise where it is no whole one.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        # Members may name the same bytes, each as its own.
        if sum(member.compress_size for member in members) > len(data):
            raise ClaimError("its members overlap")
        claimed = sum(member.file_size for member in members)
        if claimed > MOST_UNPACKED and claimed > MOST_RATIO * len(data):
            raise ClaimError(too_much("it", claimed, len(data)))
        for member in members:
            name = member.filename.removesuffix(".npy")
            if member.compress_type == zipfile.ZIP_DEFLATED:
                most = MOST_DEFLATED * (member.compress_size + 1)
            elif member.compress_type == zipfile.ZIP_STORED:
                most = member.compress_size
            else:
                raise ClaimError(f"{name} is compressed in a way that tk-spacy does not write")
            if member.file_size > most:
                raise ClaimError(too_much(name, member.file_size, member.compress_size))
            with archive.open(member) as file:
                _check_array(file, member.file_size, name)


def check_table(name: str, size: int, stored: int) -> None:
    """Raises ClaimError for a table that would take far more memory than what is stored of it.

    size: of its cells.  stored: number of those that are not 0.
    """
    if size > MOST_CELLS and size > CELLS_EACH * stored:
        raise ClaimError(
            f"{name} are said to be {size:,}, of which {stored:,} are stored: too few for so many "
            "(fewer bits do)"
        )


def too_much(name: str, claimed: int, there: int) -> str:
    """What to say of a claim; numbers of bytes."""
    return f"{name} claims {shown_bytes(claimed)}, too much for {shown_bytes(there)}"


def _check_array(file: Any, size: int, name: str) -> None:
    """size: of the bytes that the array's file has."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, kind = np.lib.format.read_array_header_2_0(file)
    else:
        raise ClaimError(f"{name} has an array format that tk-spacy does not write")
    if kind.hasobject:
        raise ClaimError(f"{name} is no array of numbers")
    # Python's whole numbers: the product of a claim may be beyond all others.
    there = size - file.tell()
    claimed = math.prod(shape) * kind.itemsize
    if claimed > there or min(shape, default=0) < 0:
        raise ClaimError(too_much(name, claimed, max(there, 0)))
    if max(shape, default=0) > max(there, MOST_LENGTH):
        raise ClaimError(f"{name} has an axis of {max(shape):,}, but no such values")
