"""The slots of part types in the order in which combinations take them, and keys of properties.

A *combination* of a part type takes one property with its value from each slot; a slot that may be
skipped may also give none.  It is *complete* where every slot that may not be skipped gives one:
the kernel counts complete combinations, and those alone have weights.  By default (Settings.skip)
nodes may not be skipped and edges may: the paper's always-on property of an edge is the choice of
none, so it is never counted twice.

A *feature* is one slot's property with its value, as a key of 64 bits:
    (number of the slot + 1) << 48 | number of the property << 32 | the value as 32 bits
so ascending keys are in the order of the slots, and no key is 0.  A node's properties are those of
the schema; an edge's are its label, its signed distance and its binned length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.part_types import PART_TYPES, Slot, part_type
from tk_spacy.features.schema import BOUNDARY, FORM, LEMMA, POS, ROOT, Property, Schema
from tk_spacy.selection.templates import LENGTHS
from tk_spacy.utils.array_types import Int32

UInt64 = NDArray[np.uint64]

LABEL, DISTANCE, LENGTH = 0, 1, 2
"""Numbers of an edge's properties."""
EDGE_PROPERTIES = ("label", "dist", "length")
SLOT_AT, PROPERTY_AT = 48, 32
NOTHING = -1
"""In place of a feature's number: the slot is skipped."""
NO_SLOT = -1


@dataclass(frozen=True, slots=True, eq=False)
class TypeSlots:
    """The slots of one part type, nodes first.

    slots: in this order.  kinds: int32[s], 0 for a node and 1 for an edge.  columns: int32[s], of a
    part in slot form (parts.slot_rows), the first of two for an edge.  skips: int32[s].
    first: number of the first slot among those of all types.
    """

    name: str
    slots: tuple[Slot, ...]
    kinds: Int32
    columns: Int32
    skips: Int32
    first: int

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def after(self) -> Int32:
        """For each slot the last one before it that may not be skipped, -1 for none: int32[s]."""
        last, found = NO_SLOT, []
        for slot, skip in enumerate(self.skips.tolist()):
            found.append(last)
            last = last if skip else slot
        return np.array(found, dtype=np.int32)

    @property
    def last_required(self) -> int:
        """The last slot that may not be skipped, -1 where all may: what has it is complete."""
        required = np.flatnonzero(self.skips == 0)
        return int(required[-1]) if len(required) else NO_SLOT


@dataclass(frozen=True, eq=False)
class SlotSpace:
    """Part types and their skips (0 or 1 for each slot, in the part type's own order).

    Raises ValueError for an unknown part type, one that is there twice, and skips that do not fit.
    """

    names: tuple[str, ...]
    skips: Mapping[str, Sequence[int]]
    types: tuple[TypeSlots, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"part types {list(self.names)}, expected each once")
        types, first = [], 0
        for name in self.names:
            slots = part_type(name).slots
            skips = [int(skip) for skip in self.skips[name]]
            if len(skips) != len(slots) or not set(skips) <= {0, 1}:
                raise ValueError(f"skips of {name} are {skips}, expected {len(slots)} of 0 or 1")
            kinds = [int(slot.kind == "edge") for slot in slots]
            columns = np.cumsum([0, *(kind + 1 for kind in kinds)])[:-1].tolist()
            order = sorted(range(len(slots)), key=lambda i, kinds=kinds: kinds[i])  # type: ignore[misc]
            types.append(
                TypeSlots(
                    name,
                    tuple(slots[i] for i in order),
                    np.array([kinds[i] for i in order], dtype=np.int32),
                    np.array([columns[i] for i in order], dtype=np.int32),
                    np.array([skips[i] for i in order], dtype=np.int32),
                    first,
                )
            )
            first += len(slots)
        object.__setattr__(self, "types", tuple(types))

    @classmethod
    def default(cls, names: Sequence[str], skip: Sequence[str] = ()) -> SlotSpace:
        """Part types with the skips of a reranker's settings, see PartType.skips."""
        return cls(tuple(names), {name: part_type(name).skips(skip) for name in names})

    @cached_property
    def n_slots(self) -> int:
        """Number of slots of all types."""
        return sum(len(of_type) for of_type in self.types)

    @cached_property
    def after(self) -> Int32:
        """As TypeSlots.after, numbered among the slots of all types: int32[n_slots]."""
        found = [
            np.where(t.after == NO_SLOT, NO_SLOT, t.after + t.first).astype(np.int32)
            for t in self.types
        ]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int32)

    @cached_property
    def completes(self) -> NDArray[np.uint8]:
        """1 where a combination that ends in a slot is complete: uint8[n_slots]."""
        found = [np.arange(len(t)) >= t.last_required for t in self.types]
        return np.concatenate(found).astype(np.uint8) if found else np.zeros(0, dtype=np.uint8)

    def to_dict(self) -> dict[str, list[int]]:
        """Each type's skips, in its own order of slots; JSON values."""
        return {name: [int(skip) for skip in self.skips[name]] for name in self.names}

    @classmethod
    def from_dict(cls, data: object) -> SlotSpace:
        """The inverse of `to_dict`.  Raises ValueError where it is none."""
        if not isinstance(data, dict):
            raise ValueError(f"skips of part types are {data!r}, expected a table")
        for name, skips in data.items():
            if name not in PART_TYPES or not isinstance(skips, list):
                raise ValueError(f"skips of {name!r} are {skips!r}, expected a part type's list")
            if any(type(skip) is not int for skip in skips):
                raise ValueError(f"skips of {name} are {skips!r}, expected numbers")
        return cls(tuple(data), data)


def slot_of(keys: UInt64) -> Int32:
    """The number of each key's slot, among those of all types: int32[_]."""
    return ((keys >> np.uint64(SLOT_AT)).astype(np.int64) - 1).astype(np.int32)


def property_of(keys: UInt64) -> Int32:
    """The number of each key's property: int32[_]."""
    return (keys >> np.uint64(PROPERTY_AT) & np.uint64(0xFFFF)).astype(np.int32)


def value_of(keys: UInt64) -> Int32:
    """Each key's value: int32[_]."""
    return keys.astype(np.uint32).view(np.int32)


def check_keys(keys: UInt64, space: SlotSpace, schema: Schema) -> None:
    """Raises ValueError unless keys ascend and name properties and values that there are."""
    if len(keys) and not (keys[1:] > keys[:-1]).all():
        raise ValueError("keys of features do not ascend")
    slots, properties, values = slot_of(keys), property_of(keys), value_of(keys)
    if len(keys) and (slots.min() < 0 or slots.max() >= space.n_slots):
        raise ValueError(f"a feature's slot is none of {space.n_slots}")
    kinds = np.concatenate([t.kinds for t in space.types] or [np.zeros(0, dtype=np.int32)])
    edges = kinds[slots] == 1
    most = np.where(edges, len(EDGE_PROPERTIES), len(schema.properties))
    if (properties >= most).any():
        raise ValueError("a feature's property is none of the schema's")
    if (values[~edges | (properties != DISTANCE)] <= 0).any() or (values == 0).any():
        raise ValueError("a feature has a value below 1, which none has")
    if (values[edges & (properties == LENGTH)] >= len(LENGTHS)).any():
        raise ValueError(f"a feature's length is none of {len(LENGTHS) - 1} bins")
    if (properties[edges] == DISTANCE).any():
        distances = values[edges & (properties == DISTANCE)]
        if (distances == np.iinfo(np.int32).min).any():
            raise ValueError("a feature has a distance that no sentence has")


class SlotNames:
    """Reads keys: what each says, with the values of a schema."""

    def __init__(self, space: SlotSpace, schema: Schema) -> None:
        self._slots = [slot for of_type in space.types for slot in of_type.slots]
        self._schema = schema
        self._values: dict[int, dict[int, str]] = {}
        self._labels = {i: label for label, i in schema.labels.items()} | {BOUNDARY: "BOUNDARY"}
        self._columns = {FORM: "FORM", LEMMA: "LEMMA", POS: schema.pos_column, 3: "UPOS"}
        named = [*schema.morph, *(extra.name for extra in schema.extras)]
        self._columns |= dict(enumerate(named, start=len(self._columns)))

    def name(self, key: int) -> str:
        """A feature in words: "h-UPOS=NOUN", "e-label=amod", "m-UPOS-1|UPOS=DET|NOUN"."""
        slot = self._slots[(key >> SLOT_AT) - 1]
        number, value = key >> PROPERTY_AT & 0xFFFF, key & 0xFFFFFFFF
        if slot.kind == "edge":
            return f"{slot.name}-{EDGE_PROPERTIES[number]}={self._of_edge(number, value)}"
        declared = self._schema.properties[number]
        return f"{slot.name}-{self._property(declared)}={self._of_node(declared, value)}"

    def _of_edge(self, number: int, value: int) -> str:
        if number == LABEL:
            return self._labels.get(value, f"<{value}>")
        if number == LENGTH:
            return LENGTHS[value]
        return f"{value - (1 << 32) if value >> 31 else value:+d}"

    def _property(self, declared: Property) -> str:
        first = self._column(declared.first, declared.first_offset)
        if declared.second < 0:
            return first
        return f"{first}|{self._column(declared.second, declared.second_offset)}"

    def _column(self, column: int, offset: int) -> str:
        return self._columns[column] + (f"{offset:+d}" if offset else "")

    def _of_node(self, declared: Property, value: int) -> str:
        if declared.second < 0:
            return self._value(declared.first, value)
        # As schema.Schema makes the value of a pair.
        first, second = divmod(value, len(self._schema.values[declared.second]) + ROOT + 1)
        return f"{self._value(declared.first, first)}|{self._value(declared.second, second)}"

    def _value(self, column: int, value: int) -> str:
        if column not in self._values:
            known = {i: name for name, i in self._schema.values[column].items()}
            self._values[column] = known | {BOUNDARY: "BOUNDARY", ROOT: "ROOT"}
        return self._values[column].get(value, f"<{value}>")
