"""How many lists are worked on in one compiled pass, so that what it needs stays small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tk_spacy.kbest.candidates import CandidateList

CELLS = 1 << 17
"""Words of all trees of all lists of a pass: a thousand usual lists, or less than one of the
longest."""

T = TypeVar("T")


def in_passes(items: Sequence[T], lists: Sequence[CandidateList]) -> Iterator[Sequence[T]]:
    """Consecutive items whose lists, aligned, have up to CELLS words of trees, one at least."""
    start = total = 0
    for i, candidates in enumerate(lists):
        if i > start and total + candidates.heads.size > CELLS:
            yield items[start:i]
            start, total = i, 0
        total += candidates.heads.size
    if items:
        yield items[start:]
