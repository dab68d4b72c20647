"""Paired bootstrap tests between systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.evaluation.attachment import METRICS, SentenceCounts, _checked, count_sentences
from tk_spacy.treebank.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Result of a paired bootstrap; scores, ``difference`` (b - a) and interval in percent points.

    ``low`` and ``high`` bound the middle 95% of the resampled differences.  For the p-values see
    ``bootstrap_counts``.
    """

    metric: str
    score_a: float
    score_b: float
    difference: float
    low: float
    high: float
    p_one_sided: float
    p_two_sided: float
    samples: int
    sentences: int


_BLOCK = 2_000_000  # resampled sentences held at once


def _add_resampled(
    sums: NDArray[np.float64], table: NDArray[np.int64], rng: np.random.Generator
) -> None:
    """Add to each row of sums [samples, 4] the total of len(table) rows drawn from table [n, 4]."""
    n = len(table)
    block = max(1, _BLOCK // n)
    for start in range(0, len(sums), block):
        size = min(block, len(sums) - start)
        drawn = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        sums[start : start + size] += times.astype(np.float64) @ table.astype(np.float64)


def _percent(right: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """100 * right / total, 0 where total is 0."""
    result: NDArray[np.float64] = 100.0 * right / np.maximum(total, 1)
    return result


def _terms(counts: NDArray[np.int64], metric: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numerator and denominator of a metric for every sentence."""
    right, weight, total = METRICS[metric]
    columns = SentenceCounts._fields
    table = _checked(counts)
    above: NDArray[np.int64] = weight * table[:, columns.index(right)]
    below: NDArray[np.int64] = table[:, [columns.index(name) for name in total]].sum(axis=1)
    return above, below


def bootstrap_counts(
    pairs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    *,
    metric: str = "uas",
    samples: int = 10_000,
    seed: int = 0,
) -> Bootstrap:
    """Paired bootstrap over sentences (Koehn 2004), pooled over one or more treebanks.

    pairs: for each treebank the tables of ``count_sentences`` for systems a and b.  Each of the
    ``samples`` resamplings draws, within every treebank, as many sentences as it has, with
    replacement and the same ones for a and b; the counts of all treebanks are then summed, so
    that the score is that of all words together.

    d* being a resampled difference b - a in the metric (a key of METRICS):
    p_one_sided = (1 + number of d* <= 0) / (1 + samples): small if b is reliably better than a.
    p_two_sided = twice the smaller of that and of (1 + number of d* >= 0) / (1 + samples), at most
    1: small if a and b reliably differ, whichever is better.

    Raises ValueError for an unknown metric, tables that do not match, or samples < 1.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    if not pairs:
        raise ValueError("pairs must hold the counts of at least one treebank, got none")
    rng = np.random.default_rng(seed)
    sums = np.zeros((samples, 4))
    whole = np.zeros(4)
    sentences = 0
    for counts_a, counts_b in pairs:
        _checked(counts_a)
        _checked(counts_b)
        if len(counts_a) != len(counts_b) or (counts_a[:, 1] != counts_b[:, 1]).any():
            raise ValueError(
                f"counts of a ({len(counts_a)} sentences) and b ({len(counts_b)}) must be of the "
                "same sentences"
            )
        table = np.column_stack([*_terms(counts_a, metric), *_terms(counts_b, metric)])
        sentences += len(table)
        whole += table.sum(axis=0)
        _add_resampled(sums, table, rng)
    differences = _percent(sums[:, 2], sums[:, 3]) - _percent(sums[:, 0], sums[:, 1])
    worse = (1 + int((differences <= 0).sum())) / (1 + samples)
    better = (1 + int((differences >= 0).sum())) / (1 + samples)
    low, high = np.percentile(differences, [2.5, 97.5]).tolist()
    score_a, score_b = _percent(whole[[0, 2]], whole[[1, 3]]).tolist()
    return Bootstrap(
        metric=metric,
        score_a=score_a,
        score_b=score_b,
        difference=score_b - score_a,
        low=low,
        high=high,
        p_one_sided=worse,
        p_two_sided=min(1.0, 2 * min(worse, better)),
        samples=samples,
        sentences=sentences,
    )


def paired_bootstrap(
    gold: Iterable[Sentence],
    system_a: Iterable[Sentence],
    system_b: Iterable[Sentence],
    *,
    metric: str = "uas",
    samples: int = 10_000,
    seed: int = 0,
) -> Bootstrap:
    """Is system b better than system a on these sentences?  See ``bootstrap_counts``."""
    gold = list(gold)
    pair = (count_sentences(gold, system_a), count_sentences(gold, system_b))
    return bootstrap_counts([pair], metric=metric, samples=samples, seed=seed)
