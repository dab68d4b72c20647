"""Checks of the flat arrays that the compiled search reads: once for each batch of sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.search.words import N_EXTRA
from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.utils.array_types import Int32

FIRST_MORPH = 4
"""Columns of the field arrays before those of FEATS."""


def check_corpus(
    fields: object, starts: object, lengths: object, morph_end: int
) -> tuple[Int32, Int32, Int32]:
    """The arrays of `words.Corpus`.  Raises TypeError or ValueError where they do not fit."""
    words = checked("fields", fields, np.int32, None, None)
    first = checked("starts", starts, np.int32, None)
    rows = checked("lengths", lengths, np.int32, len(first))
    check_columns(words.shape[1], morph_end)
    checked_range("lengths", rows, 3, len(words))  # one word, the root and the boundary
    checked_range("starts", first, 0, len(words))
    ends = first.astype(np.int64) + rows
    if ends.size and int(ends.max()) > len(words):
        raise ValueError(f"a sentence ends at row {int(ends.max())}, but there are {len(words)}")
    return words, first, rows


def check_morph_end(morph_end: int) -> None:
    """Raises ValueError where the FEATS attributes would end before they begin."""
    if morph_end < FIRST_MORPH:
        raise ValueError(f"morph_end is {morph_end}, expected at least {FIRST_MORPH}")


def check_columns(columns: int, morph_end: int) -> None:
    """Raises ValueError for fields without the columns of `words.EXTRA`, which templates read."""
    if columns < morph_end + N_EXTRA:
        raise ValueError(f"fields have {columns} columns, expected at least {morph_end + N_EXTRA}")


def check_sentences(sentences: object, n_sentences: int) -> Int32:
    """Numbers of sentences."""
    chosen = checked("sentences", sentences, np.int32, None)
    checked_range("sentences", chosen, 0, n_sentences - 1)
    return chosen


def check_kept(kept: tuple[Any, Any], starts: Int32, lengths: Int32, n_rows: int) -> None:
    """What `search_space.kept_heads` returned."""
    heads = checked("kept heads", kept[0], np.int32, None)
    first = checked("kept_first", kept[1], np.int64, n_rows + 1)
    if first[0] < 0 or first[-1] > len(heads) or (np.diff(first) < 0).any():
        raise ValueError(f"kept_first must ascend from 0 to {len(heads)}")
    limits = np.zeros(n_rows, dtype=np.int32)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        limits[start : start + length] = length - 2
    of_heads = np.repeat(limits, np.diff(first))
    _check_heads("kept heads", heads[first[0] : first[-1]], of_heads)


def check_gold(
    gold: tuple[Any, Any], starts: Int32, lengths: Int32, n_rows: int, n_cells: int
) -> None:
    """Gold heads and labels in flat rows."""
    heads = checked("gold heads", gold[0], np.int32, n_rows)
    labels = checked("gold labels", gold[1], np.int32, n_rows)
    checked_range("gold labels", labels, 0, n_cells - 1)
    limits = np.full(n_rows, np.iinfo(np.int32).max, dtype=np.int32)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        limits[start + 1 : start + length - 1] = length - 2
    _check_heads("gold heads", heads, limits)


def check_lattice(arcs: tuple[Any, ...], sizes: NDArray[np.integer], n_cells: int) -> None:
    """What `search_space.lattice_arcs` returned for sentences of so many rows."""
    first = checked("arc starts", arcs[0], np.int64, int(sizes.sum()) + 1)
    heads = checked("arc heads", arcs[1], np.int32, None)
    labels = checked("arc labels", arcs[2], np.int32, len(heads))
    scores = checked("arc scores", arcs[3], np.float64, len(heads))
    if first[0] < 0 or first[-1] > len(heads) or (np.diff(first) < 0).any():
        raise ValueError(f"arc starts must ascend from 0 to {len(heads)}")
    checked_range("arc labels", labels, 0, n_cells - 1)
    if np.isnan(scores).any():
        raise ValueError("arc scores hold NaN, expected numbers")
    limits = np.repeat(np.repeat(sizes - 2, sizes), np.diff(first))
    _check_heads("arc heads", heads[first[0] : first[-1]], limits)


def _check_heads(name: str, heads: Int32, limits: NDArray[np.integer]) -> None:
    """Heads from 0 to each one's limit."""
    wrong = (heads < 0) | (heads > limits)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{name} hold {int(heads[at])}, expected 0 to {int(limits[at])}")
