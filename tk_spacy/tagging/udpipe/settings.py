"""The settings of a UDPipe tagger: what a user chooses, checked once."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tk_spacy.utils.validation import Limits, check_values

LIMITS: Limits = {
    "models": (1, 2),
    "iterations": (1, 1000),
    "guesser_suffix_rules": (1, 1000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerSettings:
    """Settings of a UDPipe tagger, by UDPipe's own names and at its own defaults.

    models: 1 for one model of tags and lemmas, 2 for one of each.
    iterations: passes over the treebank; with a dev part the best one is kept.
    guesser_suffix_rules: rules that a suffix of an unknown word has at most.
    """

    models: int = 1
    iterations: int = 20
    guesser_suffix_rules: int = 8

    def __post_init__(self) -> None:
        check_values(self, LIMITS)

    def to_options(self) -> str:
        """The options of UDPipe's trainer."""
        own = asdict(self)
        models = own.pop("models")
        # Each model has its own options; UDPipe numbers them.
        each = [f"{name}_{i}={value}" for i in range(1, models + 1) for name, value in own.items()]
        return ";".join([f"models={models}", *each])
