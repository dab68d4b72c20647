"""Candidate lists of a whole treebank, of which memory holds the last ones alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.trees.tree_rows import CheckedTrees
from tk_spacy.utils.array_store import ArrayStore

T = TypeVar("T", bound=Hashable)


class StoredLists(Sequence[CandidateList]):
    """Lists that are written to a file (see `utils.array_store`) and made anew when asked for.

    Each is as it was given; one that was asked for twice is two objects.
    """

    def __init__(self, lists: Iterable[CandidateList] = ()) -> None:
        self._store = ArrayStore()
        self._inventories = _Few[LabelInventory](key=id)
        self._names = _Few[tuple[str, ...]](key=lambda names: names)
        self.extend(lists)

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[CandidateList]]]:
        return list, (list(self),)  # another process does not see the file

    def __len__(self) -> int:
        return len(self._store)

    def append(self, trees: CandidateList) -> None:
        """One more list."""
        facts = [
            self._inventories.number(trees.inventory),
            self._names.number(trees.sources),
            self._names.number(tuple(trees.bases)),
            trees.checked is not None,
            trees.base,
            *trees.bases.values(),
        ]
        self._store.append((np.array(facts), trees.heads, trees.labels, trees.scores))

    def extend(self, lists: Iterable[CandidateList]) -> None:
        """More lists."""
        for trees in lists:
            self.append(trees)

    @overload
    def __getitem__(self, place: int) -> CandidateList: ...
    @overload
    def __getitem__(self, place: slice) -> list[CandidateList]: ...
    def __getitem__(self, place: int | slice) -> CandidateList | list[CandidateList]:
        if isinstance(place, slice):
            return [self._opened(i) for i in range(*place.indices(len(self)))]
        return self._opened(place + len(self) if place < 0 else place)

    def _opened(self, place: int) -> CandidateList:
        facts, heads, labels, scores = self._store[place]
        inventory, sources, own, checked, base, *bases = facts.tolist()
        trees = CheckedTrees(heads) if checked else None
        return CandidateList(
            heads if trees is None else trees.heads,
            labels,
            self._inventories[inventory],
            self._names[sources],
            scores,
            base,
            dict(zip(self._names[own], bases, strict=True)),
            trees,
        )


class _Few(Sequence[T]):
    """The few different things that many lists have, by their numbers."""

    def __init__(self, *, key: Callable[[T], Hashable]) -> None:
        self._key = key
        self._things: list[T] = []
        self._numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._things)

    def __getitem__(self, number: Any) -> Any:
        return self._things[number]

    def number(self, thing: T) -> int:
        """Of a thing, which is held if it is new."""
        key = self._key(thing)
        if key not in self._numbers:
            self._numbers[key] = len(self._things)
            self._things.append(thing)
        return self._numbers[key]
