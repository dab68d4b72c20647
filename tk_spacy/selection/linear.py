"""A linear model over selected patterns: an averaged perceptron on candidate lists.

Source: Qian and Liu 2015, section 6.1.1: the L1-regularised model that selected the features is not
the one that is used; an averaged perceptron learns their weights anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.occurrences import Occurrences
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.utils.array_types import Float64

BYTES_OF_AN_OCCURRENCE = 4
MOST_OCCURRENCES = 1 << 29
"""That are written down at a time."""


def train_linear(
    table: PatternTable,
    corpus: Corpus,
    oracles: Sequence[int],
    *,
    iterations: int = 10,
    most: int = MOST_OCCURRENCES,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Float64:
    """The averaged weights of a perceptron over patterns: float64[p].

    oracles: the candidate of each list that should win.  most: occurrences of patterns that there
    is room for.  In the lists' order, on one thread; others help to find what occurs.
    """
    lists = Occurrences(table, corpus, most=most, n_threads=n_threads)
    weights, stepped = np.zeros(len(table)), np.zeros(len(table))
    same = corpus.same_trees(oracles)
    total, step = iterations * len(corpus), 0
    for _ in range(iterations):
        for at, oracle in enumerate(oracles):
            step += 1
            best = int(lists.scores(at, weights).argmax())
            if not same[at][best]:
                lists.move(at, oracle, 1.0, weights, stepped, step)
                lists.move(at, best, -1.0, weights, stepped, step)
        if progress is not None:
            progress(step, total)
    # A move at step t stands in the steps t..T: it weighs (T - t + 1) / T.
    return ((total + 1) * weights - stepped) / max(total, 1)
