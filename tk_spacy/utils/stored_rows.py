"""Rows of whole numbers that are kept one by one, as bytes, and put together to an array.

Joining bytes takes a tenth of the time of an array made from lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tk_spacy.utils.array_types import Int32


def row_bytes(row: Sequence[int]) -> bytes:
    """A row to be kept."""
    return np.array(row, dtype=np.int32).tobytes()


def joined_rows(rows: Sequence[bytes]) -> Int32:
    """The rows one below the other, as wide as the widest; the places beyond a row's end hold 0.

    There is one row at least.
    """
    width = max(map(len, rows))
    cells = bytearray().join([row.ljust(width, b"\0") for row in rows])
    return np.frombuffer(cells, dtype=np.int32).reshape(len(rows), -1)
