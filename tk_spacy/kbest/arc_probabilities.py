"""How likely the arcs of a tree are to the parsers themselves, whatever else a list holds.

No marginals: a parser such as the biaffine one says of each word by itself which head it has, and
its probabilities are not summed over trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tk_spacy.kbest.sources import ArcScorer
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64

ArcProbabilities = Callable[[Sequence[Sentence]], list[Float64]]
"""Of the arcs of sentences' own trees: float64[n, 2] each, of the head, and of the label given it.

NaN where no parser can tell.
"""


def arc_probabilities(sources: Iterable[object]) -> ArcProbabilities | None:
    """The mean over those of some sources that can tell; None where none can."""
    scorers = [source for source in sources if isinstance(source, ArcScorer)]
    if not scorers:
        return None

    def probabilities(sentences: Sequence[Sentence]) -> list[Float64]:
        of_scorers = [scorer.arc_scores(sentences) for scorer in scorers]
        return [_mean(np.exp(np.stack(scores))) for scores in zip(*of_scorers, strict=True)]

    return probabilities


def _mean(values: Float64) -> Float64:
    """float64[n, 2] of float64[s, n, 2], over the numbers of each cell."""
    # Not by nanmean, whose warning about a cell without any can be switched off only for the whole
    # process, while other threads are at work.
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
