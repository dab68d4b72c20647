"""Checks of what the compiled functions are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.utils.array_checks import checked, checked_range
from tk_spacy.utils.array_types import Int32


def check_k(k: int) -> None:
    """Raises ValueError unless a list of k trees holds one at least."""
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")


def check_sentences(sentences: Any, count: int) -> Int32:
    """Numbers of sentences, int32[P]; None for all.  Raises ValueError where there is no such."""
    if sentences is None:
        return np.arange(count, dtype=np.int32)
    chosen: Int32 = checked("sentences", sentences, np.int32, None)
    checked_range("sentences", chosen, 0, count - 1)
    return chosen


def check_kept_arcs(kept: tuple[Int32, Int32], starts: Int32, lengths: Int32, rows: int) -> None:
    """Raises TypeError or ValueError for heads kept that do not fit their sentences.

    kept: (kept, kept_first) of `decoder.kept_heads`.
    """
    heads = checked("kept heads", kept[0], np.int32, None)
    first = checked("kept_first", kept[1], np.int32, rows + 1)
    if first[0] != 0 or (np.diff(first) < 0).any() or first[-1] != len(heads):
        raise ValueError(f"kept_first must ascend from 0 to {len(heads)}")
    own = np.repeat(np.arange(rows), np.diff(first))
    words = np.zeros(rows, dtype=np.int64)
    place = np.zeros(rows, dtype=np.int64)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        words[start + 1 : start + length - 1] = length - 2
        place[start : start + length] = np.arange(length)
    if ((heads < 0) | (heads > words[own]) | (heads == place[own])).any():
        raise ValueError("kept heads are beyond their sentence, or a word's own")
    if len(heads) > 1 and (np.diff(heads)[np.diff(own) == 0] <= 0).any():
        raise ValueError("kept heads of a word do not ascend")


def check_gold_heads(gold: Any, starts: Int32, lengths: Int32, rows: int) -> Int32:
    """Gold heads of flat rows, int32[rows]; what stands beside the words is not looked at.

    Raises TypeError or ValueError where a word's head is beyond its sentence, or the word itself.
    """
    heads: Int32 = checked("gold_heads", gold, np.int32, rows)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        own = heads[start + 1 : start + length - 1]
        wrong = (own < 0) | (own > length - 2) | (own == np.arange(1, length - 1))
        if wrong.any():
            word = int(wrong.argmax()) + 1
            raise ValueError(
                f"gold_heads hold {own[word - 1]} for word {word} of {length - 2}, expected "
                "another word, or 0"
            )
    return heads


def check_arcs(first: Any, heads: Any) -> tuple[Int32, Int32, int]:
    """The arcs of one sentence of n words, as `inspection.parts_of` takes them; and n.

    Raises TypeError or ValueError where they do not fit.
    """
    at: Int32 = checked("first", first, np.int32, None)
    n = len(at) - 2
    if n < 1:
        raise ValueError(f"first holds {len(at)} numbers, expected 3 at least, for one word")
    if at[1] != 0:
        raise ValueError(f"first[1] is {at[1]}, expected 0")
    # Rows of a flat sentence: the root has no head, nor has the boundary.
    rows = np.concatenate([[0], at[1:], at[-1:]]).astype(np.int32)
    sentence = (np.zeros(1, dtype=np.int32), np.full(1, n + 2, dtype=np.int32))
    kept: Int32 = checked("heads", heads, np.int32, None)
    check_kept_arcs((kept, rows), *sentence, n + 2)
    return at, kept, n


def check_owned_trees(
    lengths: Int32, owners: Any, trees: Any
) -> tuple[Int32, Int32, NDArray[np.int64]]:
    """Trees of sentences and where they begin; see `decoder.score_trees`.

    Returns (owners, trees, first): first int64[S + 1], the first cell of each sentence's trees.
    Raises TypeError or ValueError where they do not fit.
    """
    own: Int32 = checked("owners", owners, np.int32, len(lengths) + 1)
    sizes = np.asarray(lengths, dtype=np.int64) - 1
    counts = np.diff(own).astype(np.int64)
    if own[0] != 0 or (counts < 0).any():
        raise ValueError("owners must ascend from 0")
    cells = sizes * counts
    heads: Int32 = checked("trees", trees, np.int32, int(cells.sum()))
    if ((heads < 0) | (heads > np.repeat(sizes - 1, cells))).any():
        raise ValueError("heads are no trees: some are beyond the sentence")
    if not len(heads):
        heads = np.zeros(1, dtype=np.int32)
    return own, heads, np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
