"""Labels with marks: what makes trees projective, and the way back (see trees.pseudo_projective).

The parser works on projective trees, whose labels may tell of lifted arcs; what it is given and
what it gives are trees of all kinds with plain labels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.trees.pseudo_projective import (
    LIFTED,
    PASSED,
    Scheme,
    deprojectivize,
    has_marks,
    projectivize,
)
from tk_spacy.utils.array_types import Int32

SCHEME: Scheme = "path"


def unmarked(label: str) -> str:
    """A label without its marks."""
    return label.partition(LIFTED)[0].partition(PASSED)[0]


class Marks:
    """The labels of a parser with and without marks.

    labels: all, by id.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._names = tuple(labels)
        self._ids = {name: i for i, name in enumerate(self._names)}
        plain = [unmarked(name) for name in self._names]
        self.plain = tuple(sorted(set(plain)))
        """The labels without marks, in order."""
        self._plain_ids = {name: i for i, name in enumerate(self.plain)}
        self._unmarked = np.array([self._plain_ids[name] for name in plain], dtype=np.int32)
        self._is_marked = np.array([a != b for a, b in zip(plain, self._names, strict=True)])
        # A label that never was without marks: the first one with some stands for it.
        for name, own in zip(reversed(self._names), reversed(plain), strict=True):
            if own not in self._names:
                self._ids[own] = self._names.index(name)
        self._tables = LabelTables(self._id_of)

    def _id_of(self, name: str) -> int:
        """The label that a list's one is, -1 for none: marks there would not be the parser's."""
        return -1 if has_marks(name) else self._ids.get(name, -1)

    def any_in(self, labels: Int32) -> bool:
        """Whether some of the labels have marks."""
        return bool(self._is_marked[labels].any())

    def undone(self, heads: Int32, labels: Int32) -> tuple[Int32, Int32]:
        """Projective trees with their arcs taken back, and ids among the plain labels.

        heads, labels: int32[k, n].
        """
        plain = self._unmarked[labels]
        marked = np.flatnonzero(self._is_marked[labels].any(axis=1))
        if not len(marked):
            return np.ascontiguousarray(heads), plain
        heads = heads.copy()
        for row in marked.tolist():
            names = [self._names[i] for i in labels[row].tolist()]
            back, names = deprojectivize(heads[row], names, SCHEME)
            heads[row] = back
            plain[row] = [self._plain_ids[name] for name in names]
        return heads, plain

    def made_projective(self, trees: CandidateList) -> tuple[Int32, Int32]:
        """The trees of a list made projective: int32[k, n] heads and ids of labels, -1 for unknown.

        Where a label with marks is unknown, the one without them stands for it.
        """
        labels = self._tables.labels(trees)
        lifted = np.flatnonzero(crossing(trees.heads))
        if not len(lifted):
            return trees.heads, labels
        heads, labels = trees.heads.copy(), labels.copy()
        for row in lifted.tolist():
            names = trees.deprels(row)
            if (labels[row] < 0).any():  # it has no score
                continue
            heads[row], marked = projectivize(heads[row], names, SCHEME)
            labels[row] = [
                self._ids.get(name, self._ids.get(unmarked(name), -1)) for name in marked
            ]
        return heads, labels


def crossing(heads: Int32) -> np.ndarray:
    """Whether each of many trees has crossing arcs: bool[k], heads int32[k, n]."""
    words = np.arange(1, heads.shape[1] + 1, dtype=np.int32)
    low, high = np.minimum(heads, words), np.maximum(heads, words)
    out = np.empty(len(heads), dtype=bool)
    for row, (first, last) in enumerate(zip(low, high, strict=True)):
        begins = (first[:, None] < first) & (first < last[:, None])
        out[row] = (begins & (last > last[:, None])).any()
    return out
