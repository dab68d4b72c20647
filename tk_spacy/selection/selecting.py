"""Selecting features in kernel space: mining again and again, from coarse to fine.

Source: Qian and Liu 2015, Algorithm 1 and section 4.1.  A tree that is not the right one has a loss
of 1 (one with the same arcs has none: nothing here tells it from the right one); weights begin with
what patterns of one and two features reach (pre-training), so that few samples are wrong when the
whole space is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.gradient_mining import PARTS, mine, nothing_carried
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.utils.array_types import Float64, Int32, Int64

Carried = list[tuple[Int64, Int64, Float64]]
Mined = tuple[Int64, Int64, Float64, Int32, Int32, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningSettings:
    """What is looked for, and how far.

    trees: sub feature trees; else sets of features of one arc.
    max_order: features of a pattern, at most: the degree of the polynomial kernel.
    threshold: C.  step: of a weight, constant.
    iterations: M, at most; mining ends before where no sample is wrong, or where the loss has not
        fallen for more than `patience` of them.
    pretraining: passes of a perceptron over patterns of one and two features, which gives the first
        weights; 0 to begin with none.
    contested: leave out of the counts what the right and the chosen tree have in common; the same
        gradient, and a tighter bound (see `gradient_mining`).
    filter_bytes: of each part's Bloom filter.  max_patterns: a bound on memory.
    """

    trees: bool = False
    max_order: int = 2
    threshold: float = 3.0
    step: float = 1.0
    iterations: int = 100
    patience: int = 10
    pretraining: int = 5
    contested: bool = True
    filter_bytes: int = 1 << 22
    max_patterns: int = 1 << 27


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration did.

    wrong: samples that the model before it got wrong.  survivors: patterns whose gradient may be
    steep or that have a weight.  selected: patterns with a weight after it.
    """

    wrong: int
    survivors: int
    selected: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Patterns with weights.

    table: closed under prefixes.  weights: float64[p], of the L1-regularised model; 0 for what is
    only a prefix.  history: of the iterations.  stopped: why mining ended before its time, None
    where it did not.
    """

    table: PatternTable
    weights: Float64
    history: Sequence[Iteration] = field(default_factory=tuple)
    stopped: str | None = None

    @property
    def selected(self) -> NDArray[np.intp]:
        """The numbers of the patterns that have a weight."""
        return np.flatnonzero(self.weights)


def select_features(
    corpus: Corpus,
    gold: Sequence[int],
    settings: MiningSettings,
    *,
    n_threads: int | None = None,
    progress: Callable[[int, Iteration], None] | None = None,
) -> Selection:
    """Mine the features of candidate lists.

    progress: called with the number of each iteration and what it did.
    gold: the right candidate of each list.  Lists of one candidate are never wrong.
    Where memory or the limit on patterns is exceeded, what the iterations before had is kept; after
    pre-training that is what it gave, and before its end nothing.
    """
    right = np.asarray(gold, dtype=np.int32)
    if len(right) != len(corpus):
        raise ValueError(f"{len(right)} right candidates for {len(corpus)} lists")
    history: list[Iteration] = []
    stopped, best, since = None, np.inf, 0
    same = corpus.same_trees(right)
    try:
        carried = _pretrained(corpus, right, same, settings, n_threads=n_threads)
    except MemoryError as error:
        table, weights = joined(nothing_carried(), trees=settings.trees)
        return Selection(table, weights, stopped=f"{error} in pre-training; nothing is selected")
    table, weights = joined(carried, trees=settings.trees)
    for _ in range(settings.iterations):
        started = time.perf_counter()
        scores = table.scores(corpus, weights, n_threads=n_threads)
        chosen, loss = _most_violating(scores, right, same)
        wrong = np.flatnonzero(chosen != right)
        best, since = (loss, 0) if loss < best else (best, since + 1)
        if not len(wrong) or since > settings.patience:
            break
        try:
            parts = _mine(
                corpus, wrong, right[wrong], chosen[wrong], carried, settings,
                order=settings.max_order, n_threads=n_threads,
            )  # fmt: skip
        except MemoryError as error:
            stopped = f"{error} in iteration {len(history) + 1}; what it had before is kept"
            break
        survivors = sum(int(part[5].sum()) for part in parts)
        carried = [_with_weight(*part[:3]) for part in parts]
        table, weights = joined(carried, trees=settings.trees)
        history.append(
            Iteration(
                len(wrong),
                survivors,
                int(np.count_nonzero(weights)),
                time.perf_counter() - started,
            )
        )
        if progress is not None:
            progress(len(history), history[-1])
    return Selection(table, weights, tuple(history), stopped)


def _pretrained(
    corpus: Corpus,
    right: NDArray[np.int32],
    same: Sequence[NDArray[np.bool_]],
    settings: MiningSettings,
    *,
    n_threads: int | None,
) -> Carried:
    """The patterns of one and two features with a perceptron's weights."""
    if not settings.pretraining:
        return nothing_carried()
    order = min(2, settings.max_order)
    chosen = _strangers(right, same)
    several = np.flatnonzero(chosen != right)
    parts = _mine(
        corpus, several, right[several], chosen[several], nothing_carried(), settings,
        order=order, n_threads=n_threads,
    )  # fmt: skip
    table, _ = joined([part[:3] for part in parts], trees=settings.trees)
    weights = train_linear(
        table, corpus, right.tolist(), iterations=settings.pretraining, n_threads=n_threads
    )
    ends = np.cumsum([len(part[0]) for part in parts])[:-1]
    of_parts = zip(parts, np.split(weights, ends), strict=True)
    return [_with_weight(part[0], part[1], values) for part, values in of_parts]


def _strangers(right: NDArray[np.int32], same: Sequence[NDArray[np.bool_]]) -> NDArray[np.int32]:
    """The first candidate of each list that is another tree; the right one where there is none."""
    return np.array(
        [
            gold if alike.all() else int(alike.argmin())
            for gold, alike in zip(right.tolist(), same, strict=True)
        ],
        dtype=np.int32,
    )


def _mine(
    corpus: Corpus,
    lists: NDArray[np.intp],
    better: NDArray[np.int32],
    worse: NDArray[np.int32],
    carried: Carried,
    settings: MiningSettings,
    *,
    order: int,
    n_threads: int | None,
) -> list[Mined]:
    return mine(
        corpus, lists, better, worse, carried,
        trees=settings.trees, threshold=settings.threshold, step=settings.step, max_order=order,
        filter_bytes=settings.filter_bytes, max_patterns=settings.max_patterns,
        contested=settings.contested, n_threads=n_threads,
    )  # fmt: skip


def _most_violating(
    scores: Sequence[Float64], right: NDArray[np.int32], same: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.int32], float]:
    """The candidate of each list with the highest score plus loss, and the sum of hinge losses."""
    chosen = right.copy()
    total = 0.0
    for i, (row, gold, alike) in enumerate(zip(scores, right.tolist(), same, strict=True)):
        with_loss = np.where(alike, -np.inf, row + 1.0)
        best = int(with_loss.argmax())
        if with_loss[best] > row[gold]:  # among equals the right one
            chosen[i] = best
            total += with_loss[best] - row[gold]
    return chosen, total


def _with_weight(parents: Int64, steps: Int64, weights: Float64) -> tuple[Int64, Int64, Float64]:
    """The patterns of a part that have a weight, and their prefixes."""
    keep = weights != 0
    for node in range(len(parents) - 1, -1, -1):
        if keep[node] and parents[node] >= 0:
            keep[parents[node]] = True
    new = np.cumsum(keep) - 1
    above = parents[keep]
    return np.where(above < 0, -1, new[above]), steps[keep], weights[keep]


def joined(parts: Carried, *, trees: bool) -> tuple[PatternTable, Float64]:
    """The patterns of all parts in one table."""
    if len(parts) != PARTS:
        raise ValueError(f"{len(parts)} parts, expected {PARTS}")
    starts = np.cumsum([0, *(len(steps) for _, steps, _ in parts)])
    parents = [
        np.where(above < 0, -1, above + start)
        for (above, _, _), start in zip(parts, starts, strict=False)
    ]
    table = PatternTable(
        np.concatenate(parents), np.concatenate([steps for _, steps, _ in parts]), trees=trees
    )
    return table, np.concatenate([weights for *_, weights in parts])
