"""Conditional probabilities with back-off, each word's from all words but itself.

Interpolation of Witten and Bell (Bell, Cleary and Witten 1990, as in Chen and Goodman 1998, section
2.4): in a context seen N times with T different outcomes,

    P(y | c) = (n(c, y) + T P(y | c')) / (N + T),

c' being the next more general context, and nothing known the uniform distribution.  Ours differs in
that the word asked for is taken out of all counts (leave-one-out), so that an annotation cannot
speak for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.utils.array_types import Float32, Int32


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What n words are expected to have, against what they have.

    own: float32[n], probability of what stands there.
    best: int32[n], the likeliest outcome.  best_p: float32[n], its probability.
    seen: int32[n], other words in the most specific context.
    """

    own: Float32
    best: Int32
    best_p: Float32
    seen: Int32

    @property
    def surprise(self) -> Float32:
        """Minus the logarithm of the probability of what stands there, float32[n]."""
        return -np.log(np.maximum(self.own, 1e-9))

    @property
    def margin(self) -> Float32:
        """Probability of the likeliest outcome minus that of what stands there, float32[n]."""
        return self.best_p - self.own


def leave_one_out(outcomes: Int32, contexts: Sequence[Int32], *, n_outcomes: int) -> Expected:
    """The probabilities of outcomes in contexts, each without the word itself.

    outcomes: int32[n], 0..n_outcomes - 1.  contexts: int32[n] each, from general to specific; each
    is meant to be finer than the one before, and need not be.
    """
    n = len(outcomes)
    expected = np.full((n, n_outcomes), 1 / n_outcomes, dtype=np.float32)
    rows = np.arange(n)
    total = np.zeros(n, dtype=np.int64)
    for context in contexts:
        counts = np.zeros((int(context.max(initial=-1)) + 1, n_outcomes), dtype=np.float32)
        np.add.at(counts, (context, outcomes), 1)
        types = (counts > 0).sum(axis=1)
        alone = counts[context, outcomes] == 1
        total = counts.sum(axis=1)[context].astype(np.int64) - 1
        kinds = types[context] - alone
        own = counts[context]
        own[rows, outcomes] -= 1
        # In a context of which nothing else is known the more general one stands.
        weight = np.where(total > 0, kinds, 1).astype(np.float32)[:, None]
        expected = (own + weight * expected) / (total[:, None] + weight)
    best = expected.argmax(axis=1).astype(np.int32)
    return Expected(
        own=expected[rows, outcomes],
        best=best,
        best_p=expected[rows, best],
        seen=total.astype(np.int32),
    )
