"""The loss of a batch: cross entropy of each word's head among all, and of its label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from thinc.api import get_array_module

from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.scorer import Scores, Slopes

Array = NDArray[np.floating[Any]]


def find_loss(scores: Scores, batch: Batch) -> tuple[float, float, Slopes]:
    """The mean loss of heads and that of labels, and the slopes of their sum.

    batch: whose scores they are, with trees.  Heads and labels that are not known do not count.
    """
    assert batch.heads is not None
    assert batch.labels is not None
    layout, xp = scores.layout, scores.ops.xp
    gold, labels = xp.asarray(batch.heads), xp.asarray(batch.labels)
    known = gold >= 0
    rows, gold = layout.words[known], gold[known]
    place = layout.time[rows]
    arcs = log_softmax(scores.arcs[layout.owner[rows], place])
    head_loss = _to_slopes(arcs, gold)
    labelled = labels[known] >= 0
    modifiers = rows[labelled]
    heads = (rows - place + gold)[labelled]
    found = log_softmax(scores.label_scores(modifiers, heads))
    label_loss = _to_slopes(found, labels[known][labelled])
    return head_loss, label_loss, Slopes(rows, arcs, modifiers, heads, found)


def _to_slopes(scores: Array, gold: Any) -> float:
    """The mean loss of log-probabilities, which become the slopes of the loss."""
    n = len(scores)
    if not n:
        return 0.0
    xp = get_array_module(scores)
    each = xp.arange(n)
    loss = -float(scores[each, gold].mean())
    xp.exp(scores, out=scores)
    scores[each, gold] -= 1
    scores /= n
    return loss


def log_softmax(scores: Array) -> Array:
    """Logarithms of the softmax along the last axis."""
    xp = get_array_module(scores)
    if not len(scores):
        return scores
    shifted = scores - scores.max(axis=-1, keepdims=True)
    shifted -= xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted
