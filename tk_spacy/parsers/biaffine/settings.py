"""The settings of a biaffine parser: what a user chooses, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tk_spacy.utils.validation import Limits, check_names_of, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class BiaffineSettings:
    """Settings of one biaffine parser.

    epochs: passes over the training sentences.
    steps: updates of the weights, at least; a small treebank is read more often for them.
    batch: rows (words, roots and padding) that are learnt from at a time.
    rate: of Adam, at its highest; it rises over the first tenth of the steps, then falls to 0.
    word_width, tag_width: of the embeddings of words and of tags.
    width, layers: of the LSTM, in each direction.
    arc_width, label_width: of what a word is as head or modifier of an arc, and of a label.
    dropout: share of the activations that are left out in training, at every layer.
    column_dropout: share of the single embeddings (a form, a suffix, a FEATS attribute) that are.
    label_share: share of a k-best list that may differ from better trees in labels alone.
    xpos: whether the XPOS column is read, where train fills it with tags (see
        `schema.choose_pos_column`).
    networks: that are trained apart, each by a seed of its own (seed, seed + 1, ...), and whose
        scores are averaged; each takes as long, to train and to parse.
    seed: of the weights, the shuffling and the dropout.
    """

    epochs: int = 50
    steps: int = 1000
    batch: int = 700
    rate: float = 0.003
    word_width: int = 100
    tag_width: int = 100
    width: int = 128
    layers: int = 2
    arc_width: int = 128
    label_width: int = 48
    dropout: float = 0.2
    column_dropout: float = 0.15
    label_share: float = 0.1
    networks: int = 1
    seed: int = 0
    xpos: bool = True

    def __post_init__(self) -> None:
        check_values(self, LIMITS)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; as before there was a choice where XPOS is read, and with one network."""
        data = asdict(self)
        if self.networks == 1:
            del data["networks"]
        if self.xpos:
            del data["xpos"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BiaffineSettings:
        """The inverse of `to_dict`.  Raises UserError for unknown names and bad values."""
        return cls(**check_names_of(cls, data))


SEEDS = 2**32
"""Seeds are below."""
SEARCH_ONLY = ("label_share",)
"""The settings that a trained parser does not depend on."""

LIMITS: Limits = {
    "epochs": (1, 1000),
    "steps": (0, 1_000_000),
    "batch": (1, 1_000_000),
    "rate": (1e-6, 1.0),
    "word_width": (1, 4096),
    "tag_width": (1, 4096),
    "width": (1, 4096),
    "layers": (1, 8),
    "arc_width": (1, 4096),
    "label_width": (1, 4096),
    "dropout": (0.0, 0.9),
    "column_dropout": (0.0, 0.9),
    "label_share": (0.0, 1.0),
    "networks": (1, 16),
    "seed": (0, SEEDS - 1),
}
"""Lowest and highest value of each setting that is a number."""
