"""Scores of the candidates of lists: gaps filled, and how far they spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tk_spacy.utils.array_types import Float64


def filled(scores: Float64) -> Float64:
    """A source's scores, the lowest of the list where it has none (0 where it has none at all)."""
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    return np.where(missing, 0.0 if missing.all() else np.nanmin(scores), scores)


def mean_deviation(columns: Sequence[Float64]) -> float:
    """The mean of the standard deviations, 1 where that is 0 or infinite, or there is none."""
    spread = [float(column.std()) for column in columns if len(column) > 1]
    mean = float(np.mean(spread)) if spread else 0.0
    return mean if 0 < mean < np.inf else 1.0
