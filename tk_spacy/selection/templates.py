"""The basic features of an arc, declared: what the kernels of this room combine.

Source: Qian and Liu 2015, Table 1, on the columns of UD: w is FORM, p is the property pos (see
features.schema).  "Concatenate features above with length and direction" is read as: each of them
stands once alone and once with the binned length and the direction.  Ours adds, where DEPREL is
asked for, the first four with it: the paper's trees have no labels.

A feature is a key of 64 bits that holds its template and values, so that equal keys are equal
features and a key can be read again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.schema import BOUNDARY, FIRST_ID, FORM, POS, ROOT, Schema
from tk_spacy.utils.array_types import Int32

WORDS = (
    "hw mw", "hp mp", "hw mp", "hp mw",
    "hp-1 mp", "hp-1 mw", "hp mp-1", "hw mp-1",
    "hp+1 mp", "hp+1 mw", "hp mp+1", "hw mp+1",
    "hp-1 hp mp", "hp hp+1 mp", "hp mp-1 mp", "hp mp mp+1",
)  # fmt: skip
"""Templates over words beside the head h and the modifier m; each alone and with its place."""
BETWEEN = len(WORDS)
"""Number of the template "hp bp mp": the tags of the arc's ends and one of a word between them."""
LABELLED = 4
"""The first templates, which DEPREL is put to where it is asked for."""
PLACES = 18
"""1 + 2 * (bin of the length) + (1 where the head is on the left); 0 for none."""

TEMPLATE_BITS, PLACE_BITS, LABEL_BITS = 5, 5, 12
VALUE_BITS = {2: 21, 3: 14}
"""Bits of each value of templates with so many of them."""

_COLUMNS = {"w": FORM, "p": POS}
_NAMES = {"w": "FORM", "p": "POS"}
LENGTHS = ("", "1", "2", "3", "4", "5-6", "7-10", "11-20", "21+")
"""Of length bins, see template_kernel.length_bin."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a template: a column of the head ("h"), the modifier ("m") or a word between
    ("b"), or of the word beside it."""

    role: str
    column: str
    offset: int

    @classmethod
    def parse(cls, text: str) -> Value:
        """From "hp-1" and the like."""
        return cls(text[0], text[1], int(text[2:] or 0))

    @property
    def name(self) -> str:
        """For readers: "h-1-POS"."""
        beside = f"{self.offset:+d}" if self.offset else ""
        return f"{self.role}{beside}-{_NAMES[self.column]}"


TEMPLATES = tuple(
    tuple(Value.parse(word) for word in text.split()) for text in (*WORDS, "hp bp mp")
)
"""All templates by their numbers."""


def template_table() -> Int32:
    """The templates over words for compiled loops: int32[BETWEEN, 3, 3].

    For each value whether it is the modifier's (1) or the head's (0), the offset, and the column;
    the column is -1 where a template has no third value.
    """
    table = np.full((BETWEEN, 3, 3), -1, dtype=np.int32)
    for number, values in enumerate(TEMPLATES[:BETWEEN]):
        for i, value in enumerate(values):
            table[number, i] = int(value.role == "m"), value.offset, _COLUMNS[value.column]
    return table


def check_sizes(schema: Schema) -> None:
    """Raises ValueError where a schema has more values than a key has room for."""
    for column, bits in ((FORM, VALUE_BITS[2]), (POS, VALUE_BITS[3])):
        size = len(schema.values[column]) + FIRST_ID
        if size > 1 << bits:
            raise ValueError(f"a column has {size} values, expected {1 << bits} at most")
    if len(schema.labels) + FIRST_ID > 1 << LABEL_BITS:
        raise ValueError(f"{len(schema.labels)} labels, expected {1 << LABEL_BITS} at most")


def check_keys(keys: NDArray[np.uint64], schema: Schema, *, labelled: bool) -> None:
    """Raises ValueError unless all keys name templates and values that there are."""
    check_sizes(schema)
    for key in keys.tolist():
        template, place, label, values = unpack(key)
        if place > PLACES or (label and (not labelled or template >= LABELLED or place)):
            raise ValueError(f"a basic feature has place {place} and label {label}")
        if label and not FIRST_ID <= label < FIRST_ID + len(schema.labels):
            raise ValueError(f"a basic feature has label {label}, which is none")
        for value, i in zip(TEMPLATES[template], values, strict=True):
            if not BOUNDARY <= i < FIRST_ID + len(schema.values[_COLUMNS[value.column]]):
                raise ValueError(f"a basic feature has {value.name} {i}, which is no value")


class FeatureNames:
    """Reads keys: what each says, with the values of a schema."""

    def __init__(self, schema: Schema) -> None:
        self._values = {
            column: {i: value for value, i in schema.values[number].items()}
            | {BOUNDARY: "BOUNDARY", ROOT: "ROOT"}
            for column, number in _COLUMNS.items()
        }
        self._labels = {i: label for label, i in schema.labels.items()}

    def name(self, key: int) -> str:
        """A feature in words: "h-POS=NOUN & m-POS=ADJ & length=2 & head=right"."""
        template, place, label, values = unpack(key)
        found = [
            f"{value.name}={self._values[value.column][i]}"
            for value, i in zip(TEMPLATES[template], values, strict=True)
        ]
        if label:
            found.append(f"DEPREL={self._labels[label]}")
        if place:
            side = "left" if (place - 1) & 1 else "right"
            found += [f"length={LENGTHS[(place - 1) >> 1]}", f"head={side}"]
        return " & ".join(found)

    @staticmethod
    def template(key: int) -> str:
        """The same without its values: what a template of features is called."""
        number, place, label, _ = unpack(key)
        found = [value.name for value in TEMPLATES[number]]
        if label:
            found.append("DEPREL")
        if place:
            found.append("place")
        return "&".join(found)


def unpack(key: int) -> tuple[int, int, int, tuple[int, ...]]:
    """Template, place, label and values of a key.  Raises ValueError where it has no template."""
    template = (key & ((1 << TEMPLATE_BITS) - 1)) - 1
    place = key >> TEMPLATE_BITS & ((1 << PLACE_BITS) - 1)
    label = key >> (TEMPLATE_BITS + PLACE_BITS) & ((1 << LABEL_BITS) - 1)
    rest = key >> (TEMPLATE_BITS + PLACE_BITS + LABEL_BITS)
    if not 0 <= template < len(TEMPLATES):
        raise ValueError(f"a basic feature has template {template}, expected 0 to {BETWEEN}")
    n = len(TEMPLATES[template])
    bits = VALUE_BITS[n]
    return template, place, label, tuple(rest >> bits * i & ((1 << bits) - 1) for i in range(n))
