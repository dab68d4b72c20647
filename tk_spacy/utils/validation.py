"""What the settings of parsers and rerankers have in common: checks of names, kinds and ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from tk_spacy.errors import UserError

Choice = TypeVar("Choice", bound=str)

Limits = Mapping[str, tuple[float, float]]
"""The lowest and the highest value of settings that have some."""

KINDS: Mapping[str, tuple[Any, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": (int | float, "a number"),
    "str": (str, "a text"),
    "int | None": (int | None, "a whole number"),
    "str | None": (str | None, "a text"),
}


def words_of(name: str) -> str:
    """A setting's name as messages have it."""
    return name.replace("_", " ")


def check_values(settings: Any, limits: Limits, *, but: Collection[str] = ()) -> None:
    """Raises UserError where a value of a dataclass is not of its field's kind, or out of range.

    but: fields that are checked elsewhere.
    """
    for field in fields(settings):
        if field.name in but:
            continue
        value: Any = getattr(settings, field.name)
        name = words_of(field.name)
        wanted, kind = KINDS[str(field.type)]
        # True is an int, and nan no number (math.isnan fails on a whole number beyond floats).
        if (
            not isinstance(value, wanted)
            or (isinstance(value, bool) and wanted is not bool)
            or value != value  # noqa: PLR0124
        ):
            raise UserError(f"{name} is {value!r}; it must be {kind}")
        if field.name in limits and value is not None:
            low, high = limits[field.name]
            if not low <= value <= high:
                raise UserError(f"{name} is {value!r}; it must be from {low:.10g} to {high:.10g}")


def check_names_of(kind: type, data: object) -> dict[str, Any]:
    """Values of a dataclass's fields by name.  Raises UserError where they are none, or unknown."""
    if not isinstance(data, Mapping):
        raise UserError(f"settings are {data!r}; give names with values")
    known = [field.name for field in fields(kind)]
    if unknown := sorted(map(str, set(data) - set(known))):
        raise UserError(f"unknown settings: {', '.join(unknown)}; choose from {', '.join(known)}")
    return dict(data)


def check_choice(name: str, value: str, choices: Sequence[Choice]) -> Choice:
    """The one of several texts that a value is.  Raises UserError where it is none of them."""
    for choice in choices:
        if value == choice:
            return choice
    raise UserError(f"{name} is {value!r}; choose from {', '.join(choices)}")
