"""The settings in which one spaCy parser can differ from another, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tk_spacy.utils.validation import Limits, check_names_of, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class SpacySettings:
    """Settings of one spaCy parser.

    config: spaCy training config; None for the package's own.
    max_steps: of its training; None for the config's.
    backward: whether a second parser that reads from right to left is trained with it.
    xpos: whether the XPOS column is read, where the config embeds TAG.
    seed: of the weights and the shuffling.
    """

    config: str | None = None
    max_steps: int | None = None
    backward: bool = True
    xpos: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SpacySettings:
        """Settings by name.  Raises UserError for unknown names and bad values."""
        return cls(**check_names_of(cls, data))


LIMITS: Limits = {"max_steps": (1, 10**9), "seed": (0, 2**32 - 1)}
"""Lowest and highest value of each setting that is a number."""
