"""How much of a kernel a parser bears: its factor gamma, tuned on a dev part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.sampling.kernel.decoding import decode_with_kernel
from tk_spacy.parsers.sampling.kernel.model import SearchKernel
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.search.decoder import decode
from tk_spacy.parsers.sampling.search.search_space import lattice_arcs
from tk_spacy.parsers.sampling.search.words import encode
from tk_spacy.treebank.conllu import Sentence

GAMMAS = (0.0, *(10.0 ** (i / 2) for i in range(-6, 2)))
"""0 and a logarithmic grid from 0.001 to 3; a factor of 1 changes a score as much as the parser's
own arc scores vary (see `tune_gamma`).  What a kernel is good for lies far below that."""


@dataclass(frozen=True, slots=True)
class GammaScore:
    """How a parser does on dev with that gamma: UAS and LAS of all words, percent.

    relative: gamma in units of what makes kernel and parser vary alike.
    """

    gamma: float
    relative: float
    uas: float
    las: float


def tune_gamma(
    parser: SamplingParser,
    kernel: SearchKernel,
    dev: Sequence[Sentence],
    *,
    grid: Sequence[float] = GAMMAS,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[SamplingParser, list[GammaScore]]:
    """The parser with the kernel at the gamma that does best on dev by LAS, then by UAS.

    Where none is better than 0 it is the parser without the kernel.  Kernels of different trainings
    have scores of different sizes: the grid is of factors on a kernel that is first brought to the
    standard deviation that the parser's own scores have among the arcs into the same word, as far
    as its arcs go.
    Raises ValueError where the grid or dev is empty.
    """
    if not grid or not dev:
        raise ValueError("no gamma or no sentence to tune with, expected some")
    s = parser.settings
    corpus = encode(parser.schema, dev, seed=s.seed, with_trees=True)
    assert corpus.heads is not None
    assert corpus.labels is not None
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths, np.arange(len(corpus)))
    first, heads, labels, scores = lattice_arcs(*where, n_threads=n_threads)
    kernel = kernel.with_gamma(1.0)
    nodes, names = kernel.nodes(dev), kernel.label_table(parser.schema)
    _, _, _, both = kernel.added(
        (first, heads, labels, np.zeros(len(scores))), corpus.lengths, nodes, names,
        n_threads=n_threads,
    )  # fmt: skip
    unit = _spread(scores, first) / (_spread(both, first) or 1.0)
    words = np.ones(len(corpus.fields), dtype=bool)
    words[corpus.starts] = False
    words[corpus.starts + corpus.lengths - 1] = False
    table = []
    for number, factor in enumerate(grid, start=1):
        gamma = factor * unit
        arcs = (first, heads, labels, scores + gamma * both)
        options: dict[str, Any] = {
            "k": 1,
            "exact": s.exact_starts,
            "restarts": s.restarts,
            "patience": s.patience,
            "temperature": s.temperature,
            "label_share": s.label_share,
            "n_threads": n_threads,
        }
        if gamma:
            (tree, of_tree, _, _), _ = decode_with_kernel(
                kernel, parser.scorer, corpus, arcs, nodes, names, gamma=gamma, **options
            )
        else:
            tree, of_tree, _, _ = decode(*where, arcs=arcs, seeds=corpus.seeds, **options)
        right = (tree[:, 0] == corpus.heads)[words]
        labelled = right & (of_tree[:, 0] == corpus.labels)[words]
        table.append(
            GammaScore(gamma, factor, 100 * float(right.mean()), 100 * float(labelled.mean()))
        )
        if progress is not None:
            progress(number, len(grid))
    best = max(table, key=lambda row: (row.las, row.uas, -row.gamma))
    return replace(parser, kernel=kernel.with_gamma(best.gamma) if best.gamma else None), table


def _spread(scores: NDArray[np.float64], first: NDArray[np.int64]) -> float:
    """The standard deviation of scores among the arcs into the same word."""
    counts = np.diff(first)
    words = np.repeat(np.arange(len(counts)), counts)
    means = np.bincount(words, weights=scores, minlength=len(counts)) / np.maximum(counts, 1)
    return float(np.sqrt(np.mean((scores - means[words]) ** 2))) if len(scores) else 0.0
