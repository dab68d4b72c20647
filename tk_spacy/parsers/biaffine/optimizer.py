"""Adam; of tables only the rows that were read are updated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parsers.biaffine.recurrent import Array, Arrays

Int = NDArray[np.integer[Any]]


class Adam:
    """Kingma and Ba (2015), with the decay rates of Dozat and Manning (2017).

    weights: changed in place.  clip: bound of the gradient's norm over all dense weights.
    """

    def __init__(
        self,
        weights: Arrays,
        *,
        beta1: float = 0.9,
        beta2: float = 0.95,
        clip: float = 5.0,
    ) -> None:
        self.weights, self.beta1, self.beta2, self.clip = weights, beta1, beta2, clip
        self.first = {name: np.zeros_like(w) for name, w in weights.items()}
        self.second = {name: np.zeros_like(w) for name, w in weights.items()}
        self.steps = 0

    def step(
        self, gradient: Mapping[str, Array], tables: Mapping[str, tuple[Int, Array]], rate: float
    ) -> None:
        """One update."""
        self.steps += 1
        total = sum(float(np.vdot(g, g)) for g in gradient.values())
        total += sum(float(np.vdot(g, g)) for _, g in tables.values())
        scale = min(1.0, self.clip / (total**0.5 + 1e-12))
        rate *= (1 - self.beta2**self.steps) ** 0.5 / (1 - self.beta1**self.steps)
        for name, g in gradient.items():
            w, m, v = self.weights[name], self.first[name], self.second[name]
            self._update(w, m, v, g * np.float32(scale), rate)
        for name, (rows, g) in tables.items():
            m, v, w = self.first[name][rows], self.second[name][rows], self.weights[name][rows]
            self._update(w, m, v, g * np.float32(scale), rate)
            self.first[name][rows], self.second[name][rows], self.weights[name][rows] = m, v, w

    def _update(self, w: Array, m: Array, v: Array, g: Array, rate: float) -> None:
        m *= self.beta1
        m += (1 - self.beta1) * g
        g *= g
        g *= 1 - self.beta2
        v *= self.beta2
        v += g
        np.sqrt(v, out=g)
        g += 1e-8
        np.divide(m, g, out=g)
        g *= rate
        w -= g
