"""Values of a stored model's JSON, each checked for its kind; messages name the value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST_SHOWN = 60
"""Characters of a value in a message."""
LEAST, MOST = 1e-100, 1e100
"""Of positive numbers, and of absolute values: their sums, products and ratios stay finite."""


def shown(value: object) -> str:
    """A value as messages have it: cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, values within values
        return "a value beyond all bounds"
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."


def stored_table(value: object, name: str) -> dict[str, Any]:
    """A JSON object.  Raises ValueError for anything else.

    name: of the value, for the message; as in all functions here.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {shown(value)}, expected names with values")
    return value


def stored_entry(table: object, key: str, name: str) -> Any:
    """A value of a JSON object.  Raises ValueError where it is none, or lacks the value."""
    found = stored_table(table, name)
    if key not in found:
        raise ValueError(f"{name} lacks {key!r}")
    return found[key]


def stored_number(
    value: object, name: str, *, below: float = MOST, positive: bool = False
) -> float:
    """A number.  Raises ValueError for anything else.

    below: what its absolute value is below.  positive: whether it is above LEAST.
    """
    wanted = "a positive number" if positive else "a number"
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:  # noqa: PLR0124  (nan)
        raise ValueError(f"{name} is {shown(value)}, expected {wanted}")
    if positive and not value > LEAST:
        raise ValueError(f"{name} is {shown(value)}, expected {wanted}")
    if not abs(value) < below:
        raise ValueError(f"{name} is {shown(value)}, beyond all bounds")
    return float(value)


def stored_numbers(
    value: object, name: str, *, below: float = MOST, positive: bool = False
) -> dict[str, float]:
    """Numbers by names; see `stored_number`."""
    return {
        key: stored_number(item, f"{key!r} of {name}", below=below, positive=positive)
        for key, item in stored_table(value, name).items()
    }


def stored_whole(value: object, name: str, *, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number from `least` to `most`.  Raises ValueError for anything else."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is {shown(value)}, expected a whole number {least} to {most}")
    return value


def stored_text(value: object, name: str) -> str:
    """A text.  Raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {shown(value)}, expected a text")
    return value


def stored_list(value: object, name: str) -> list[Any]:
    """A JSON list.  Raises ValueError for anything else."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is {shown(value)}, expected a list")
    return value


def stored_texts(value: object, name: str) -> list[str]:
    """A list of texts.  Raises ValueError for anything else."""
    for item in stored_list(value, name):
        if not isinstance(item, str):
            raise ValueError(f"{name} has {shown(item)}, expected texts")
    return list(value)  # type: ignore[call-overload]


def check_same(given: Iterable[str], expected: Iterable[str], name: str) -> None:
    """Raises ValueError unless the names are the expected ones, in any order."""
    if set(given) != set(expected):
        raise ValueError(f"{name} are of {sorted(given)}, expected {sorted(expected)}")
