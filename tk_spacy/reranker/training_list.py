"""A candidate list as Algorithm 1 meets it, again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tk_spacy.features.encoder import EncodedList
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.kernels.support_log import Mark
from tk_spacy.utils.array_types import Float64


@dataclass(slots=True, eq=False)
class TrainingList:
    """One training list and what Algorithm 1 remembers of it between visits.

    loss: float64[k], of each candidate against the oracle candidate.  oracle: y_1.
    kernel_scores: for each kernel part type float64[p], f-hat as of `mark`.
    list_features: what the columns of `encoded.listed` are; one object for all lists.
    """

    index: int
    encoded: EncodedList
    loss: Float64
    oracle: int
    mark: Mark
    kernel_scores: tuple[Float64, ...] = field(default=())
    list_features: ListFeatures | None = None

    def reset(self) -> None:
        """Forget all scores, for a new training."""
        self.mark = Mark(0, (0,) * len(self.encoded.kernel), 0)
        self.kernel_scores = tuple(np.zeros(len(parts.rows)) for parts in self.encoded.kernel)
