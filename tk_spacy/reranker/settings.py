"""The settings of a reranker: what a user chooses, checked once."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from tk_spacy.errors import UserError
from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.templates import FEATURE_TYPES, FRAME, SPAN, USUAL_FEATURE_TYPES
from tk_spacy.features.word_properties import LEMMA_NAME, check_names
from tk_spacy.utils.validation import check_names_of, words_of

MIN_SCALE, MAX_SCALE = 1e-9, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one reranker.

    kernel_parts: part types that the kernel compares; empty for no kernel (base reranker).
    manual_parts: part types with manual features; empty for the kernel alone.
    list_features: groups of features of a candidate within its list: "scores" of the sources,
        "shares" of the candidates that hold its arcs; empty for the paper's reranker, which sees
        the trees alone.
    list_scale: factor on the features of the list beside the manual features and the kernel.
    iterations: passes over the training lists.
    C: aggressiveness of an update, positive, possibly infinite.
    loss: "labelled" counts wrong heads and wrong labels, "heads" wrong heads only (the paper).
    competitor: "best" is the candidate with the highest score (the paper), "violator" the one
        whose score plus loss is highest.
    skip: node slots that may be left out of a combination ("h", "m", ..., "node" for all).
    kernel_scale: factor on the kernel beside the manual features.
    bits: the manual features are hashed to that many bits.
    budget: the kernel keeps at most so many support parts while training (see budget); None for
        all.
    use_lemma: LEMMA as an extra property.
    combiner: where several parsers propose trees, learn to weigh what they say of each arc first.
    properties: names of further properties of words that the kernel compares, see
        word_properties.CHOICES;
        "lemma" among them is use_lemma by another name.
    shuffle_seed: shuffles the sentences anew in each iteration; None keeps their order.
    add_gold: adds the gold tree to training lists that lack it.
    count_single: lists of a single tree are steps of the average too, in which nothing moves (the
        paper); else they are left out.
    """

    kernel_parts: tuple[str, ...] = ("arc",)
    manual_parts: tuple[str, ...] = USUAL_FEATURE_TYPES
    list_features: tuple[str, ...] = LIST_FEATURES
    list_scale: float = 1.0
    iterations: int = 10
    C: float = math.inf
    loss: Literal["labelled", "heads"] = "labelled"
    competitor: Literal["best", "violator"] = "violator"
    skip: tuple[str, ...] = ()
    kernel_scale: float = 0.1
    bits: int = 22
    budget: int | None = None
    use_lemma: bool = False
    combiner: bool = True
    properties: tuple[str, ...] = ()
    shuffle_seed: int | None = None
    add_gold: bool = False
    count_single: bool = False

    def __post_init__(self) -> None:
        for name in ("kernel_parts", "manual_parts", "skip", "list_features"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple) or len(set(map(str, value))) < len(value):
                raise UserError(f"{words_of(name)} is {value!r}; give a list of different names")
            object.__setattr__(self, name, tuple(value))
        for name, kinds, wanted in (
            ("iterations", (int,), "a whole number"),
            ("bits", (int,), "a whole number"),
            ("C", (int, float), "a number"),
            ("kernel_scale", (int, float), "a number"),
            ("list_scale", (int, float), "a number"),
            ("shuffle_seed", (int, type(None)), "a whole number or none"),
            ("budget", (int, type(None)), "a whole number or none"),
        ):
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise UserError(f"{words_of(name)} is {value!r}; it must be {wanted}")
        for name in ("use_lemma", "add_gold", "combiner", "count_single"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(
                    f"{words_of(name)} is {getattr(self, name)!r}; it must be true or false"
                )
        names = check_names("properties", self.properties)
        if LEMMA_NAME in names:
            object.__setattr__(self, "use_lemma", True)
        object.__setattr__(self, "properties", tuple(n for n in names if n != LEMMA_NAME))
        for names, known in (
            (self.kernel_parts, tuple(PART_TYPES)),
            (self.manual_parts, FEATURE_TYPES),
        ):
            for name in names:
                if name not in known:
                    raise UserError(f"unknown part type {name!r}; choose from {', '.join(known)}")
        if not self.kernel_parts and not self.manual_parts:
            raise UserError("neither kernel nor manual features: choose at least one part type")
        for name in self.list_features:
            if name not in LIST_FEATURES:
                choices = ", ".join(LIST_FEATURES)
                raise UserError(f"unknown list features {name!r}; choose from {choices}")
        slots = {s.name for t in PART_TYPES.values() for s in t.slots if s.kind == "node"}
        for name in self.skip:
            if name not in slots | {"node"}:
                choices = ", ".join([*sorted(slots), "node"])
                raise UserError(f"unknown slot {name!r}; choose from {choices}")
        if self.iterations < 1:
            raise UserError(f"iterations is {self.iterations}; it must be at least 1")
        if not self.C > 0:
            raise UserError(f"C is {self.C}; it must be positive (or infinite)")
        # Beyond these bounds the weights do not fit the numbers that they are stored as.
        for name in ("kernel_scale", "list_scale"):
            value = getattr(self, name)
            if not MIN_SCALE <= value <= MAX_SCALE:
                raise UserError(
                    f"{words_of(name)} is {value}; it must be positive, from {MIN_SCALE:g} to "
                    f"{MAX_SCALE:g}"
                )
        if self.shuffle_seed is not None and self.shuffle_seed < 0:
            raise UserError(f"shuffle seed is {self.shuffle_seed}; it must not be negative")
        if self.budget is not None and self.budget < 1:
            raise UserError(f"budget is {self.budget}; it must be at least 1")
        if self.budget is not None and not self.kernel_parts:
            raise UserError("a budget without a kernel: it bounds the kernel's support parts")
        if not 8 <= self.bits <= 30:
            raise UserError(f"bits is {self.bits}; it must be from 8 to 30")
        if self.loss not in ("labelled", "heads"):
            raise UserError(f"loss is {self.loss!r}; choose labelled or heads")
        if self.competitor not in ("best", "violator"):
            raise UserError(f"competitor is {self.competitor!r}; choose best or violator")

    def to_dict(self) -> dict[str, Any]:
        """JSON values (C as null where it is infinite).

        Without further properties, budget and count of single trees as before there were any.
        """
        data = asdict(self)
        if self.budget is None:
            del data["budget"]
        if not self.count_single:
            del data["count_single"]
        data["C"] = None if math.isinf(self.C) else self.C
        if not self.properties:
            del data["properties"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """The inverse of `to_dict`.  Raises UserError for unknown names."""
        known = check_names_of(cls, data)
        return cls(**{**known, "C": math.inf if known.get("C") is None else known["C"]})


SUITED: Mapping[tuple[str, ...], Mapping[str, Any]] = {
    ("sampling",): {"manual_parts": (FRAME, SPAN), "kernel_scale": 0.01, "list_scale": 0.3},
}
"""What does better than the general defaults, by the sources of the lists.

The sampling parser has chosen by the other part types' features already, so more of them only fit
the training lists; a parser of another kind has not.
"""


def suit(settings: Settings, left_open: Collection[str], sources: tuple[str, ...]) -> Settings:
    """The settings, those left open replaced by what suits lists with these sources."""
    changes = SUITED.get(sources, {})
    return replace(settings, **{name: changes[name] for name in changes if name in left_open})


LEFT_OPEN = frozenset(name for changes in SUITED.values() for name in changes)
"""The settings that depend on the lists where they are left open."""
