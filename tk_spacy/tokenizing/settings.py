"""Settings of UDPipe's tokenizer."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tk_spacy.errors import UserError
from tk_spacy.utils.validation import Limits, check_values

LIMITS: Limits = {
    "epochs": (1, 1000),
    "dimension": (16, 64),
    "batch_size": (1, 1000),
}
DIMENSIONS = (16, 24, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerSettings:
    """Settings of a UDPipe tokenizer, by UDPipe's own names.

    epochs: of training, 10,000 pieces of 50 characters each, however large the treebank; with a dev
        part the one with the best sentences is kept.
    dimension: of the network's states and of its characters' vectors: 16, 24 or 64.
    batch_size: pieces between two steps.
    """

    epochs: int = 20
    dimension: int = 24
    batch_size: int = 50

    def __post_init__(self) -> None:
        check_values(self, LIMITS)
        if self.dimension not in DIMENSIONS:
            known = ", ".join(map(str, DIMENSIONS))
            raise UserError(f"dimension is {self.dimension}; choose from {known}")

    def to_options(self) -> str:
        """The options of UDPipe's trainer."""
        return ";".join(f"{name}={value}" for name, value in asdict(self).items())
