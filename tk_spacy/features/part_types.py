"""Part types, declared: an ordered list of slots over the roles that words play in a tree.

Source: Taub-Tabib et al. 2015, section 2: "parse tree parts can be seen as ordered lists of slots".
A new type is one more declaration below; extraction, kernel, scoring and features read it.

Roles of the words around a modifier m: its head h, the head's head g, the sibling s (the nearest
modifier of h on the same side, between h and m) and that sibling's own sibling t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

ROLES = ("g", "h", "t", "s", "m")
"""Columns 0..4 of a part row: the position of the word in each role, -1 where there is none."""

DEPENDENTS = ("h", "t", "s", "m")
"""Columns 5..8 of a part row: the label of the arc into the word of each of these roles."""

ARC = "arc"
"""The part type of single arcs, which every kernel of parts has."""

ROW_WIDTH = len(ROLES) + len(DEPENDENTS)


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a part type.

    name: as in the paper (h, e1, s, e2, m).
    kind: "node" has the properties of a word, "edge" those of an arc.
    role: the word of a node slot; the dependent of an edge slot's arc.
    """

    name: str
    kind: Literal["node", "edge"]
    role: str


def _slots(text: str) -> tuple[Slot, ...]:
    # "h e1:s s e2:m m": a bare name is a node, name:role the arc into that role's word.
    slots = []
    for word in text.split():
        name, _, role = word.partition(":")
        slots.append(Slot(name, "edge", role) if role else Slot(name, "node", name))
    return tuple(slots)


@dataclass(frozen=True, slots=True)
class PartType:
    """A part type: its name and its slots in order."""

    name: str
    slots: tuple[Slot, ...]

    @property
    def roles(self) -> frozenset[str]:
        """Every role that a slot of this type reads."""
        return frozenset(slot.role for slot in self.slots)

    def skips(self, skip: Mapping[str, int] | Sequence[str] = ()) -> tuple[int, ...]:
        """0 or 1 for each slot: whether it may be left out of a combination.

        Edge slots always may, by the paper's always-on property; node slots where `skip` names
        them ("h", "m"; "node" for all).
        """
        named = set(skip)
        return tuple(
            int(s.kind == "edge" or s.name in named or "node" in named) for s in self.slots
        )


PART_TYPES: dict[str, PartType] = {
    name: PartType(name, _slots(text))
    for name, text in {
        ARC: "h e:m m",
        "sibling": "h e1:s s e2:m m",
        "grandparent": "g e1:h h e2:m m",
        "grand-sibling": "g e1:h h e2:s s e3:m m",
        "tri-sibling": "h e1:t t e2:s s e3:m m",
    }.items()
}


GRAND_TRI_SIBLING = PartType("grand-tri-sibling", _slots("g e1:h h e2:t t e3:s s e4:m m"))
"""A part of fourth order, with manual features alone: no kernel compares it.

Source: Ma and Zhao (COLING 2012).
"""


def part_type(name: str) -> PartType:
    """The part type of that name.  Raises ValueError naming the known ones."""
    try:
        return PART_TYPES[name]
    except KeyError:
        raise ValueError(
            f"unknown part type {name!r}, expected one of {list(PART_TYPES)}"
        ) from None
