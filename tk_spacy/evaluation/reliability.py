"""How far probabilities can be trusted: calibration error, risk against coverage, reliability.

Sources: Nguyen and O'Connor 2015, "Posterior calibration and exploratory analysis for natural
language processing models" (bins of equal numbers, not of equal widths: most probabilities of a
parser are near 1); Geifman, Uziel and El-Yaniv 2019 (area under the risk-coverage curve).  Ours
differs: things of equal probability share what is right among them, so that no result depends on
the order in which they came.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.utils.array_types import Float64

BINS = 15
POINTS = 20


class Bin(NamedTuple):
    """A bin of a reliability table: number of things, mean probability, and share that is right."""

    size: int
    probability: float
    right: float


def reliability(probabilities: ArrayLike, right: ArrayLike, *, bins: int = BINS) -> tuple[Bin, ...]:
    """Bins of rising probability with as many things each, but for one more in the first ones.

    probabilities: float[n] from 0 to 1.  right: bool[n].  Fewer than n bins where n is less.
    Raises ValueError for other arrays, or fewer than 1 bin.
    """
    values, shares = _sorted(probabilities, right)
    return tuple(
        Bin(len(own), float(values[own].mean()), float(shares[own].mean()))
        for own in _binned(len(values), bins)
    )


def calibration_error(probabilities: ArrayLike, right: ArrayLike, *, bins: int = BINS) -> float:
    """Expected calibration error: the mean over things of how far their bin's share is off.

    Arguments and errors as of `reliability`; 0 where there is nothing.
    """
    found = reliability(probabilities, right, bins=bins)
    total = sum(item.size for item in found)
    return sum(b.size * abs(b.probability - b.right) for b in found) / total if total else 0.0


def chance_error(probabilities: ArrayLike, *, bins: int = BINS) -> float:
    """What `calibration_error` would be, by chance, if these probabilities were all true.

    The mean of a bin's absolute deviation is that of a normal distribution of the same variance;
    things are taken as independent.  With few things it is far from 0.
    """
    values, _ = _sorted(probabilities, np.zeros(np.shape(probabilities), dtype=np.bool_))
    deviations = sum(
        float(np.sqrt((values[own] * (1.0 - values[own])).sum()))
        for own in _binned(len(values), bins)
    )
    return float(np.sqrt(2.0 / np.pi)) * deviations / max(1, len(values))


def risk_coverage_area(confidence: ArrayLike, right: ArrayLike) -> float:
    """Area under the risk-coverage curve: the mean, over m = 1..n, of the m surest things' errors.

    confidence: float[n], the higher the surer, on any scale.  right: bool[n].  From 0 to 1, the
    lower the better; 0 where there is nothing.  Raises ValueError for other arrays.
    """
    _, shares = _sorted(confidence, right, most=np.inf)
    if not len(shares):
        return 0.0
    errors = np.cumsum(1.0 - shares[::-1])
    return float((errors / np.arange(1, len(errors) + 1)).mean())


def risk_coverage(
    confidence: ArrayLike, right: ArrayLike, *, points: int = POINTS
) -> tuple[tuple[float, float], ...]:
    """The curve whose area that is: shares of the surest things, and the share of errors in each.

    points: so many shares, equally far apart, fewer where there are fewer things; the last is 1.
    Arguments and errors as of `risk_coverage_area`; empty where there is nothing.
    """
    _, shares = _sorted(confidence, right, most=np.inf)
    n = len(shares)
    errors = np.cumsum(1.0 - shares[::-1])
    numbers = dict.fromkeys(-(-n * i // points) for i in range(1, points + 1)) if n else {}
    return tuple((m / n, float(errors[m - 1] / m)) for m in numbers)


def _sorted(
    probabilities: ArrayLike, right: ArrayLike, *, most: float = 1.0
) -> tuple[Float64, Float64]:
    """By rising probability: these, and of each the share that is right among its equals."""
    values = np.asarray(probabilities, dtype=np.float64)
    hits = np.asarray(right)
    if values.ndim != 1 or values.shape != hits.shape or hits.dtype != np.bool_:
        raise ValueError(
            f"expected float[n] and bool[n], got {values.shape} and {hits.dtype} {hits.shape}"
        )
    if len(values) and not (np.isfinite(values).all() and np.abs(values).max() <= most):
        raise ValueError(f"a probability is no number from 0 to {most:g}")
    if most == 1.0 and len(values) and values.min() < 0:
        raise ValueError("a probability is below 0")
    distinct, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    shares = np.bincount(which, hits, minlength=len(distinct)) / np.maximum(counts, 1)
    return np.repeat(distinct, counts), np.repeat(shares, counts)


def _binned(n: int, bins: int) -> list[NDArray[np.intp]]:
    """The places 0..n-1 of the things of each bin that has some."""
    if bins < 1:
        raise ValueError(f"bins is {bins}, expected at least 1")
    return [own for own in np.array_split(np.arange(n), bins) if len(own)]
