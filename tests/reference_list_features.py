"""Features of candidates within their list, made with numpy source by source."""

from __future__ import annotations

import numpy as np

from tk_spacy.features.consensus import share_features
from tk_spacy.features.list_features import TEMPERATURES
from tk_spacy.kbest.scores import filled


def plain_list_features(candidates, scales, factor):
    """`ListFeatures.encode` with both groups of features."""
    k = len(candidates)
    base = np.zeros(k)
    base[candidates.base] = 1.0
    columns, weightings = [], []
    known = np.logical_not(np.isnan(candidates.scores).all(axis=1))
    for source, scale in scales.items():
        scores = np.full(k, np.nan)
        if source in candidates.sources:
            scores = candidates.scores[:, candidates.sources.index(source)]
            scores = np.where(np.isinf(scores), np.nan, scores)
        missing = np.isnan(scores)
        full = filled(scores)
        columns += _score_columns(full, missing, scale, known)
        weightings += _weightings(full, missing, scale)
    weights = np.array([*weightings, np.full(k, 1.0 / k), base])
    shares = share_features(candidates.heads, candidates.labels, weights)
    features = np.concatenate([np.array([*columns, base]).T, shares], axis=1)
    features -= features.mean(axis=0)
    features *= factor
    return features


def _score_columns(full, missing, scale, known):
    """SCORE_FEATURES of one source: float64[k] each; unscored trees count as the worst.

    full: its scores, filled where they are missing.
    """
    best = full.max()
    deviation = full.std()
    rank = np.empty(len(full))
    rank[np.argsort(-full, kind="stable")] = np.arange(len(full))
    none = missing.all()
    return [
        (full - best) / scale,
        (full - full.mean()) / (deviation if deviation > 0 else 1.0),
        np.zeros(len(full)) if none else -np.log1p(rank),
        np.zeros(len(full)) if none else (rank == 0).astype(np.float64),
        (missing & known).astype(np.float64),
    ]


def _weightings(full, missing, scale):
    """The weights that one source gives the candidates: float64[k] each, 0 for unscored trees."""
    if missing.all():
        even = np.full(len(full), 1.0 / len(full))
        return [even] * (len(TEMPERATURES) + 1)
    full = np.where(missing, -np.inf, full)
    best = int(full.argmax())
    first = np.zeros(len(full))
    first[best] = 1.0
    gaps = full - full[best]
    weightings = []
    for temperature in TEMPERATURES:
        weights = np.exp(gaps / (scale * temperature))
        weightings.append(weights / weights.sum())
    return [*weightings, first]


def own_rows(candidates):
    """The row of each source's own tree: as recorded, else its best-scored one.

    A source that has scored nothing is left out.
    """
    rows = {}
    for column, source in enumerate(candidates.sources):
        scores = candidates.scores[:, column]
        if column == 0:
            rows[source] = candidates.base
        elif source in candidates.bases:
            rows[source] = candidates.bases[source]
        elif not np.isnan(scores).all():
            rows[source] = int(np.nanargmax(scores))
    return rows
