"""From scores of arcs and labels to trees: the best one, the k best, and the score of any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.biaffine.label_changes import with_changed_labels
from tk_spacy.trees.spanning import k_best_spanning_trees, max_spanning_tree
from tk_spacy.utils.array_types import Float64, Int32


def best_tree(arcs: Float64) -> Int32:
    """The heads int32[n] of the best tree with one root.

    arcs: float64[n, n + 1], scores of each word's heads, -inf where there can be no arc.
    """
    return max_spanning_tree(_square(arcs))


def k_best(
    arcs: Float64, labels: Int32, margins: Float64, k: int, *, label_share: float
) -> tuple[Int32, Int32, Float64]:
    """The k best trees, best first: heads and labels int32[m, n], scores float64[m], m <= k.

    arcs: float64[n, n + 1], scores with the best label.  labels: int32[n, n + 1, 2], the best label
    of each arc and the second best (-1 for none).  margins: float64[n, n + 1], by how much the
    second best is worse.
    label_share: share of the list that may be a better tree with one label changed; more may be
        where there are not enough trees.
    """
    heads, totals = k_best_spanning_trees(_square(arcs), k)
    quota = max(round(label_share * k), k - len(heads))
    return with_changed_labels(heads, totals, labels, margins, k, quota)


def _square(arcs: NDArray[np.floating[Any]]) -> Float64:
    """Scores as the spanning trees want them: [head, word], words from 1 on."""
    n = len(arcs)
    square = np.full((n + 1, n + 1), -np.inf)
    square[:, 1:] = arcs.T
    return square
