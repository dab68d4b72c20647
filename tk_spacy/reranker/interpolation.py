"""The final score: the parsers' scores beside the reranker's, weighted.

Source: Taub-Tabib et al. 2015, section 5: score_final = beta * score_base + score_reranker.  Ours
differs: every score is first divided by its mean standard deviation within a list, so that beta
means the same for any parser and treebank; there may be several sources; beta is sought on a
logarithmic grid, by coordinate ascent, for LAS.  The paper's own is a matter of three options: its
grid, 0 to 3 by 0.05; raw scores, divided by nothing; and UAS, the score that it reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled, mean_deviation
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.stored_values import check_same, stored_entry, stored_number, stored_numbers

LOG_GRID = (0.0, *np.round(np.logspace(-2, 2, 41), 6).tolist())
COMBINER_BETA = 0.5
"""Weight of the arc combiner's log-probability beside the reranker's score, which has it as a
feature too: both have units of their own, whatever the treebank.  On five dev parts 0.4 to 0.8 were
alike."""
TuningMetric = Literal["las", "uas"]
TUNING_METRICS: tuple[TuningMetric, ...] = get_args(TuningMetric)
DEFAULT_METRIC: TuningMetric = "las"
RERANKER_SCALE = "reranker_scale"
PAPER_GRID = tuple(np.round(np.arange(0, 3.0001, 0.05), 2).tolist())


@dataclass(frozen=True, slots=True)
class Combination:
    """Weights and scales of the final score.

    betas: weight of each source.  scales: mean within-list standard deviation of each source's
    score, positive.  reranker_scale: the same of the reranker's score.
    """

    betas: Mapping[str, float]
    scales: Mapping[str, float]
    reranker_scale: float = 1.0

    @classmethod
    def untuned(cls, sources: Sequence[str], *, combiner: str) -> Combination:
        """The reranker and COMBINER_BETA of the source `combiner`, where it is one; no other."""
        betas = {name: COMBINER_BETA if name == combiner else 0.0 for name in sources}
        return cls(betas, dict.fromkeys(sources, 1.0))

    def final(self, candidates: CandidateList, reranker_scores: Float64) -> Float64:
        """The final score of every candidate: float64[k]."""
        total = reranker_scores / self.reranker_scale
        for share in self.shares(candidates).values():
            total = total + share
        return total

    def shares(self, candidates: CandidateList) -> dict[str, Float64]:
        """What each source that has a weight adds to the final scores: float64[k]."""
        return {
            source: self.factor(source) * filled(candidates.scores[:, j])
            for j, source in enumerate(candidates.sources)
            if self.betas.get(source, 0.0)
        }

    def factor(self, source: str) -> float:
        """What the scores of a source are multiplied by."""
        return self.betas[source] / self.scales[source]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "betas": dict(self.betas),
            "scales": dict(self.scales),
            RERANKER_SCALE: self.reranker_scale,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Combination:
        """The inverse of `to_dict`.  Raises ValueError for anything but finite numbers."""
        betas, scales, reranker_scale = (
            stored_entry(data, name, "combination") for name in ("betas", "scales", RERANKER_SCALE)
        )
        betas = stored_numbers(betas, "combination.betas")
        scales = stored_numbers(scales, "combination.scales", positive=True)
        check_same(scales, betas, "combination.scales")
        return cls(
            betas,
            scales,
            stored_number(reranker_scale, f"combination.{RERANKER_SCALE}", positive=True),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TuningList:
    """What tuning reads of one list.

    sources: float64[k, n_sources].  reranker: float64[k].  correct: float64[k, 2], words with the
    right head and label, and with the right head.
    """

    sources: Float64
    reranker: Float64
    correct: Float64

    @classmethod
    def make(cls, gold: Sentence, candidates: CandidateList, reranker: Float64) -> TuningList:
        """Count what each candidate has right."""
        heads = candidates.heads == gold.heads
        labels = candidates.labels == candidates.inventory.encode(gold.deprels, add=False)
        return cls(
            sources=np.stack([filled(column) for column in candidates.scores.T], axis=1),
            reranker=reranker,
            correct=np.stack([(heads & labels).sum(axis=1), heads.sum(axis=1)], axis=1).astype(
                np.float64
            ),
        )


def tune(
    lists: Sequence[TuningList],
    *,
    sources: Sequence[str],
    paper_grid: bool = False,
    raw_scores: bool = False,
    metric: TuningMetric = DEFAULT_METRIC,
    sweeps: int = 3,
) -> Combination:
    """The betas with the most words right, by coordinate ascent.

    paper_grid: betas of PAPER_GRID.  raw_scores: all scales are 1 (the paper).
    metric: "las" counts words with the right head and label (ties: heads), "uas" those with the
        right head (ties: labels; the paper).
    With several sources the ascent begins at the reranker alone, and again where each source counts
    as much as it: from one of these alone it may stop far below what the other finds.
    Among equally good neighbouring values of one beta the middle one is taken: a narrow peak of a
    small tuning part is noise.
    """
    if not lists:
        raise ValueError("no tuning lists, expected at least one")
    if metric not in TUNING_METRICS:
        raise ValueError(f"metric is {metric!r}, expected one of {TUNING_METRICS}")
    grid = PAPER_GRID if paper_grid else LOG_GRID
    n = len(sources)
    scales, reranker_scale = [1.0] * n, 1.0
    if not raw_scores:
        scales = [mean_deviation([item.sources[:, j] for item in lists]) for j in range(n)]
        reranker_scale = mean_deviation([item.reranker for item in lists])

    def correct(betas: Float64) -> tuple[float, float]:
        labelled, heads = _correct(lists, betas / scales, reranker_scale)
        return (heads, labelled) if metric == "uas" else (labelled, heads)

    if len(sources) == 1:
        betas = _ascended(np.zeros(1), correct, grid, sweeps=1)
    else:
        starts = np.zeros(len(sources)), np.ones(len(sources))
        ends = [_ascended(start, correct, grid, sweeps=sweeps) for start in starts]
        betas = max(ends, key=correct)  # of equals the first
    return Combination(
        betas=dict(zip(sources, betas.tolist(), strict=True)),
        scales=dict(zip(sources, scales, strict=True)),
        reranker_scale=reranker_scale,
    )


def _ascended(
    betas: Float64,
    correct: Callable[[Float64], tuple[float, float]],
    grid: Sequence[float],
    *,
    sweeps: int,
) -> Float64:
    """The betas after coordinate ascent from given ones, which change."""
    for _ in range(sweeps):
        before = betas.copy()
        for j in range(len(betas)):
            scored = []
            for beta in grid:
                betas[j] = beta
                scored.append(correct(betas))
            betas[j] = grid[_middle_of_best(scored)]
        if (betas == before).all():
            break
    return betas


def _correct(
    lists: Sequence[TuningList], factors: Float64, reranker_scale: float
) -> tuple[float, float]:
    total = np.zeros(2)
    for item in lists:
        final = item.reranker / reranker_scale + item.sources @ factors
        total += item.correct[int(final.argmax())]
    return float(total[0]), float(total[1])


def _middle_of_best(scored: Sequence[tuple[float, float]]) -> int:
    best = max(scored)
    start = scored.index(best)
    stop = start
    while stop + 1 < len(scored) and scored[stop + 1] == best:
        stop += 1
    return (start + stop) // 2
