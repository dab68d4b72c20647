"""The settings of a projective parser: what a user chooses, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tk_spacy.utils.validation import Limits, check_names_of, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveSettings:
    """Settings of one projective parser.

    epochs: passes over the training sentences.
    training_k: best trees of a sentence that the gold tree must outscore, each by its wrong heads.
    cost: what a wrong arc gains when these are searched for.
    C: bound of an update step, positive, possibly infinite.
    batch: sentences that are searched with the same weights in training.
    bits, label_bits: features of parts and of labels are hashed to that many bits.
    pruner_epochs, pruner_bits, pruner_rate: of the first-order pruner's learning.
    max_heads: heads a word keeps at most; fewer in a long sentence with very many parts.
    least: how likely a head kept must be, as a share of the word's likeliest one.
    seed: of the shuffling.
    """

    epochs: int = 10
    training_k: int = 10
    cost: float = 1.0
    C: float = math.inf
    batch: int = 8
    bits: int = 22
    label_bits: int = 22
    pruner_epochs: int = 2
    pruner_bits: int = 20
    pruner_rate: float = 0.05
    max_heads: int = 10
    least: float = 0.0001
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)

    def to_dict(self) -> dict[str, Any]:
        """JSON values (C as null where it is infinite)."""
        return {**asdict(self), "C": None if math.isinf(self.C) else self.C}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProjectiveSettings:
        """The inverse of `to_dict`.  Raises UserError for unknown names and bad values."""
        known = check_names_of(cls, data)
        return cls(**{**known, "C": math.inf if known.get("C") is None else known["C"]})


SEARCH_ONLY: tuple[str, ...] = ()
"""The settings that a trained parser does not depend on: none, as it learns among arcs kept."""

LIMITS: Limits = {
    "epochs": (1, 1000),
    "training_k": (1, 1000),
    "cost": (0.0, 1e3),
    "C": (1e-9, math.inf),
    "batch": (1, 1024),
    "bits": (8, 28),
    "label_bits": (8, 28),
    "pruner_epochs": (1, 1000),
    "pruner_bits": (8, 28),
    "pruner_rate": (1e-6, 1e3),
    "max_heads": (1, 1000),
    "least": (0.0, 1.0),
    "seed": (0, 2**32 - 1),
}
"""Lowest and highest value of each setting that is a number."""
