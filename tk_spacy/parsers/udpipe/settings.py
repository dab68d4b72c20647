"""The settings of a UDPipe parser: what a user chooses, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.utils.validation import Limits, check_names_of, check_values

ORACLES: Mapping[str, tuple[str, ...]] = {
    "projective": ("dynamic", "static"),
    "swap": ("static_lazy", "static_eager"),
    "link2": ("static",),
}
"""The oracles of each transition system, UDPipe's default first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpipeSettings:
    """Settings of one UDPipe parser, most of them by UDPipe's own names.

    transition_system: "projective" (no crossing arcs), "swap" or "link2" (some).
    transition_oracle: how it is taught; empty for the system's best (the first in ORACLES).
    structured_interval: every so many sentences another one is trained on with a search for the
        best transition; 0 for never.  UDPipe's own default, 8, takes half as long again.
    iterations: passes over the treebank; with a dev part the best one is kept.
    embedding_form, embedding_lemma, embedding_upos, embedding_xpos, embedding_feats,
    embedding_deprel: dimensions, 0 to leave a column out.
    hidden_layer: its width (UDPipe's own default, 200, takes twice the time).
    batch_size: transitions of one step.
    learning_rate, learning_rate_final: of the first and the last pass.  l2: regularization.
    beam_search: unfinished trees that are kept in parsing (training looks at the best one only).
    seed: of the order in which sentences are given to UDPipe; 0 for the treebank's.  UDPipe's own
        random numbers are always the same ones.
    """

    transition_system: str = "projective"
    transition_oracle: str = ""
    structured_interval: int = 0
    iterations: int = 10
    embedding_form: int = 50
    embedding_lemma: int = 0
    embedding_upos: int = 20
    embedding_xpos: int = 0
    embedding_feats: int = 20
    embedding_deprel: int = 20
    hidden_layer: int = 100
    batch_size: int = 10
    learning_rate: float = 0.02
    learning_rate_final: float = 0.001
    l2: float = 0.5
    beam_search: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_values(self, LIMITS)
        if self.transition_system not in ORACLES:
            raise UserError(
                f"transition system is {self.transition_system!r}; choose from {', '.join(ORACLES)}"
            )
        if self.oracle not in ORACLES[self.transition_system]:
            raise UserError(
                f"transition oracle is {self.transition_oracle!r}; the {self.transition_system} "
                f"system has {', '.join(ORACLES[self.transition_system])}"
            )
        if not any(getattr(self, name) for name in EMBEDDINGS):
            raise UserError("all embeddings are 0; the parser must see at least one column")

    @property
    def oracle(self) -> str:
        """The oracle, by its name."""
        return self.transition_oracle or ORACLES.get(self.transition_system, ("",))[0]

    def to_options(self) -> str:
        """The options of UDPipe's parser trainer."""
        options = {
            "use_gold_tags": 1,
            "single_root": 1,
            "transition_system": self.transition_system,
            "transition_oracle": self.oracle,
            **{option: getattr(self, name) for name, option in EMBEDDINGS.items()},
            **{name: getattr(self, name) for name in SAME_NAME},
        }
        return ";".join(f"{name}={value}" for name, value in options.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> UdpipeSettings:
        """The inverse of `to_dict`.  Raises UserError for unknown names and bad values."""
        return cls(**check_names_of(cls, data))

    @classmethod
    def from_text(cls, text: str) -> dict[str, Any]:
        """The settings in a text such as "iterations=20,transition_system=swap".

        Raises UserError where it is none; `from_dict` checks names and values.
        """
        kinds = {field.name: str(field.type) for field in fields(cls)}
        found: dict[str, Any] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, is_pair, value = (part.strip() for part in item.partition("="))
            if not is_pair:
                raise UserError(f"{item!r} is no setting; write NAME=VALUE,NAME=VALUE")
            try:
                found[name] = {"int": int, "float": float}.get(kinds.get(name, ""), str)(value)
            except ValueError:
                found[name] = value  # refused by its kind
        return found


EMBEDDINGS: Mapping[str, str] = {
    "embedding_form": "embedding_form",
    "embedding_lemma": "embedding_lemma",
    "embedding_upos": "embedding_upostag",
    "embedding_xpos": "embedding_xpostag",
    "embedding_feats": "embedding_feats",
    "embedding_deprel": "embedding_deprel",
}
"""UDPipe's names of the embeddings."""

SAME_NAME = (
    "iterations",
    "hidden_layer",
    "batch_size",
    "structured_interval",
    "learning_rate",
    "learning_rate_final",
    "l2",
)

SEARCH_ONLY = ("beam_search",)
"""The settings that a trained parser does not depend on."""

LIMITS: Limits = {
    "structured_interval": (0, 1_000_000),
    "iterations": (1, 1000),
    **dict.fromkeys(EMBEDDINGS, (0, 1000)),
    "hidden_layer": (1, 10_000),
    "batch_size": (1, 10_000),
    "learning_rate": (1e-9, 100.0),
    "learning_rate_final": (1e-9, 100.0),
    "l2": (0.0, 1000.0),
    "beam_search": (1, 1000),
    "seed": (0, 2**32 - 1),
}
"""Lowest and highest value of the settings that are numbers."""
