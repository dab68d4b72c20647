"""The settings of a transition parser: what a user chooses, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tk_spacy.utils.validation import Limits, check_choice, check_names_of, check_values

FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionSettings:
    """Settings of one transition parser.

    direction: in which words are read: forward (from the first one) or backward.
    epochs: passes over the training sentences.
    training_beam, beam: states that are kept after each step, in training and afterwards.
    bits: features are hashed to that many bits.
    feats: FEATS attributes that have features of their own, the most frequent ones.
    label_share: share of a k-best list that may differ from better trees in one label alone.
    xpos: whether the XPOS column is read, where train fills it with tags (see
        `schema.choose_pos_column`).
    seed: of the shuffling.
    """

    direction: str = FORWARD
    epochs: int = 10
    training_beam: int = 8
    beam: int = 8
    bits: int = 22
    feats: int = 10
    label_share: float = 0.1
    xpos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)
        check_choice("direction", self.direction, (FORWARD, BACKWARD))

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TransitionSettings:
        """The inverse of `to_dict`.  Raises UserError for unknown names and bad values."""
        return cls(**check_names_of(cls, data))


SEARCH_ONLY = ("beam", "label_share")
"""The settings that a trained parser does not depend on."""

LIMITS: Limits = {
    "epochs": (1, 1000),
    "training_beam": (1, 1000),
    "beam": (1, 1000),
    "bits": (8, 28),
    "feats": (0, 16),
    "label_share": (0.0, 1.0),
    "seed": (0, 2**32 - 1),
}
"""Lowest and highest value of each setting that is a number."""
