"""The settings of a sampling parser: what a user chooses, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.features.word_properties import check_names
from tk_spacy.utils.validation import Limits, check_names_of, check_values


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """Settings of one sampling parser.

    order: of the largest parts with features, 1 to 3.
    epochs: passes over the training sentences, at most; with a dev part the best one is kept.
    idle_epochs: epochs in a row without a better score on dev that end the training.
    C: bound of an update step, positive, possibly infinite.
    bits: features are hashed to that many bits.
    label_cost: loss of a wrong label under the right head, where a wrong head costs 1.
    batch: sentences that are decoded with the same weights in training.
    exact_starts: how many of the starts are the best first-order trees, found exactly.
    training_restarts, restarts: starts of the search, in training and afterwards, at most.
    patience: starts in a row without a better tree that end a search.
    list_restarts, list_patience: the same where a list of more than 8 trees is asked for, which
        gains by a longer search; no less than for the best tree alone.
    temperature: of the distribution that starts are drawn from.
    single_root: whether a tree has exactly one word under the root, as UD wants.
    pruner_epochs, pruner_bits, pruner_rate: of the first-order pruner's learning.
    max_heads, prune_margin: heads a word keeps at most, and how far below its best one's score.
    training_labels, max_labels, label_margin: the same of the labels of an arc, in training (where
        the gold one is always there) and afterwards.
    arc_margin: how far below a word's best arc, labels and all, an arc is still kept.
    label_share: share of a k-best list that may differ from better trees in labels alone.
    seed: of the shuffling and the search.
    extra: names of further properties of words that arcs have features of, see
        word_properties.CHOICES.
    kernel_scale: where positive, a kernel of arcs is learnt beside the hashed features, by which
        factor on it; 0 for none.
    kernel_epochs: the last epochs, of those there are at most, in which the kernel is learnt.
    crossing: whether arcs that cross others have features, from order 2 on: of Zhang et al.'s
        (EMNLP 2014) global templates the one that there is here.
    """

    order: int = 3
    epochs: int = 8
    idle_epochs: int = 4
    C: float = math.inf
    bits: int = 22
    label_cost: float = 0.5
    batch: int = 8
    exact_starts: int = 1
    training_restarts: int = 3
    restarts: int = 8
    patience: int = 3
    list_restarts: int = 20
    list_patience: int = 8
    temperature: float = 0.5
    single_root: bool = True
    pruner_epochs: int = 2
    pruner_bits: int = 20
    pruner_rate: float = 0.05
    max_heads: int = 20
    prune_margin: float = 7.0
    training_labels: int = 3
    max_labels: int = 6
    label_margin: float = 1.0
    arc_margin: float = 3.0
    label_share: float = 0.1
    seed: int = 0
    extra: tuple[str, ...] = ()
    kernel_scale: float = 0.0
    kernel_epochs: int = 1000
    crossing: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", check_names("extra", self.extra))
        if len(self.extra) > MOST_NAMES:
            raise UserError(f"extra has {len(self.extra)} names; give at most {MOST_NAMES}")
        check_values(self, LIMITS, but=["extra"])

    def to_dict(self) -> dict[str, Any]:
        """JSON values (C as null where it is infinite).

        Without extras, kernel and another choice of crossing arcs as before there were any: such a
        parser and its keys stay as they were.
        """
        data = asdict(self)
        for field in fields(self):
            # As it was before there were these: keys of work and stored parsers stay.
            if field.name in (*KERNEL_ONLY, "crossing") and data[field.name] == field.default:
                del data[field.name]
        data["C"] = None if math.isinf(self.C) else self.C
        if not self.extra:
            del data["extra"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SamplingSettings:
        """The inverse of `to_dict`.  Raises UserError for unknown names and bad values."""
        known = check_names_of(cls, data)
        return cls(**{**known, "C": math.inf if known.get("C") is None else known["C"]})


MOST_NAMES = 16
"""Extras of a parser, at most (MOST_NAMED in templates.pxd)."""

SEARCH_ONLY = ("exact_starts", "restarts", "list_restarts", "list_patience", "label_share")
"""The settings that a trained parser does not depend on."""

KERNEL_ONLY = ("kernel_scale", "kernel_epochs")
"""The settings of the kernel that is learnt with the parser."""

LIMITS: Limits = {
    "order": (1, 3),
    "epochs": (1, 1000),
    "idle_epochs": (1, 1000),
    "C": (1e-9, math.inf),
    "bits": (8, 28),
    "label_cost": (0.0, 1.0),
    "batch": (1, 1024),
    "exact_starts": (1, 10_000),
    "training_restarts": (1, 10_000),
    "restarts": (1, 10_000),
    "patience": (1, 10_000),
    "list_restarts": (1, 10_000),
    "list_patience": (1, 10_000),
    "temperature": (1e-3, 1e3),
    "pruner_epochs": (1, 1000),
    "pruner_bits": (8, 28),
    "pruner_rate": (1e-6, 1e3),
    "max_heads": (1, 1000),
    "prune_margin": (0.0, 1e9),
    "training_labels": (1, 8),
    "max_labels": (1, 8),
    "label_margin": (0.0, 1e9),
    "arc_margin": (0.0, 1e9),
    "label_share": (0.0, 1.0),
    "seed": (0, 2**32 - 1),
    "kernel_scale": (0.0, 1e9),
    "kernel_epochs": (1, 1000),
}
"""Lowest and highest value of the settings that have some."""

DEFAULT = SamplingSettings()
"""What a parser has where nothing else is asked for."""
