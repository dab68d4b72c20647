"""The loss of a batch: cross entropy of each word's head among all, and of its label.

By trees, or by shares of arcs (`targets`): then the head has a distribution of its own, and so has
the label of each head.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from thinc.api import get_array_module

from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.scorer import Scores, Slopes
from tk_spacy.parsers.biaffine.targets import Targets

Array = NDArray[np.floating[Any]]


def find_loss(scores: Scores, batch: Batch) -> tuple[float, float, Slopes]:
    """The mean loss of heads and that of labels, and the slopes of their sum.

    batch: whose scores they are, with trees.  Heads and labels that are not known do not count.
        With targets, all arcs that have a share count by it.
    """
    if batch.targets is not None:
        return _find_soft_loss(scores, batch.targets)
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


def _find_soft_loss(scores: Scores, targets: Targets) -> tuple[float, float, Slopes]:
    """The same by shares of arcs: both losses together are the arcs' cross entropy."""
    layout, xp = scores.layout, scores.ops.xp
    rows = layout.words
    place = layout.time[rows]
    words, heads = xp.asarray(targets.words), xp.asarray(targets.heads)
    of_labels = xp.asarray(targets.of_labels(scores.n_labels))
    of_pairs = of_labels.sum(axis=1)
    arcs = log_softmax(scores.arcs[layout.owner[rows], place])
    of_heads = xp.zeros(arcs.shape, dtype=arcs.dtype)
    of_heads[words, heads] = of_pairs
    modifiers = rows[words]
    governors = (rows - place)[words] + heads
    labels = log_softmax(scores.label_scores(modifiers, governors))
    n = max(targets.n_words, 1)
    head_loss = -float((of_heads * arcs).sum()) / n
    label_loss = -float((of_labels * labels).sum()) / n
    arcs, labels = xp.exp(arcs), xp.exp(labels)
    arcs -= of_heads
    labels *= of_pairs[:, None]
    labels -= of_labels
    arcs /= n
    labels /= n
    return head_loss, label_loss, Slopes(rows, arcs, modifiers, governors, labels)


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
