"""The settings of a neural tagger: what a user chooses, checked once."""

from __future__ import annotations

from dataclasses import dataclass

from tk_spacy.utils.validation import Limits, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class BilstmSettings:
    """Settings of a neural tagger.

    epochs: passes over the training sentences.
    steps: updates of the weights, at least; a small treebank is read more often for them.
    batch: rows (words, roots and padding) that are learnt from at a time.
    rate: of Adam, at its highest; it rises over the first tenth of the steps, then falls to 0.
    form_width, affix_width: of the embeddings of whole forms and of their parts.
    width, layers: of the LSTM, in each direction.
    dropout: share of the activations that are left out in training, at every layer.
    group_dropout: how often a word's form is left out in training, or its parts.
    column_dropout: share of the single embeddings (a form, a suffix) that are.
    seed: of the weights, the shuffling and the dropout.
    """

    epochs: int = 12
    steps: int = 1500
    batch: int = 250
    rate: float = 0.004
    form_width: int = 64
    affix_width: int = 128
    width: int = 128
    layers: int = 1
    dropout: float = 0.33
    group_dropout: float = 0.1
    column_dropout: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)


LIMITS: Limits = {
    "epochs": (1, 1000),
    "steps": (1, 1_000_000),
    "batch": (1, 1_000_000),
    "rate": (1e-6, 1.0),
    "form_width": (1, 4096),
    "affix_width": (1, 4096),
    "width": (1, 4096),
    "layers": (1, 8),
    "dropout": (0.0, 0.9),
    "group_dropout": (0.0, 0.9),
    "column_dropout": (0.0, 0.9),
    "seed": (0, 2**32 - 1),
}
"""Lowest and highest value of each setting that is a number."""
