"""Scores by agreement with one tree: how a parser that gives no scores votes for any tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory


def one_tree(
    heads: NDArray[np.int32], deprels: Sequence[str], *, inventory: LabelInventory, source: str
) -> CandidateList:
    """The list of one tree (heads int32[n], n labels), which agrees with itself: score 0."""
    return CandidateList.build([(heads, deprels, 0.0)], inventory=inventory, sources=(source,))


def agreement(
    trees: CandidateList, heads: NDArray[np.int32], deprels: Sequence[str]
) -> NDArray[np.float64]:
    """Minus the number of words whose head or label is not this tree's: float64[k], 0 at most."""
    if len(heads) != trees.n_words:
        raise ValueError(f"a list of {trees.n_words} words for a tree of {len(heads)}")
    labels = trees.inventory.encode(deprels, add=False)
    differs = (trees.heads != heads) | (trees.labels != labels)
    return -differs.sum(axis=1).astype(np.float64)
