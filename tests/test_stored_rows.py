"""Rows that are kept as bytes and put together."""

from __future__ import annotations

import numpy as np

from tk_spacy.utils.stored_rows import joined_rows, row_bytes


def test_rows_are_as_wide_as_the_widest_and_end_in_0() -> None:
    rows = joined_rows([row_bytes(row) for row in ([5], [7, -8, 9], [], [2**31 - 1, 1])])
    assert rows.tolist() == [[5, 0, 0], [7, -8, 9], [0, 0, 0], [2**31 - 1, 1, 0]]
    assert rows.dtype == np.int32
    rows[0, 0] = 6  # compiled code wants arrays that can be written to
    assert rows[0, 0] == 6
