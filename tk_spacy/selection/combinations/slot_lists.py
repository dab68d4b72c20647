"""Candidate lists as parts whose features stand in slots."""

from __future__ import annotations

from dataclasses import dataclass

from tk_spacy.utils.array_types import Int32

NO_PART = -1
"""In a place where a candidate has no part."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotLists:
    """The candidates of a sentence as parts.

    members: int32[k, w], the part in each of a candidate's places (its words, once for each part
    type), a number 0..p-1 of the list's distinct parts, or NO_PART.  Part i has the features
    ids[starts[i]:starts[i + 1]], in ascending order, so slot after slot; int32[p + 1] and int32[_].
    heads: None, where basic.ArcLists has trees.
    """

    members: Int32
    starts: Int32
    ids: Int32
    heads: None = None

    @property
    def n_arcs(self) -> int:
        """Number of distinct parts."""
        return len(self.starts) - 1
