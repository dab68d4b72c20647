"""Projective trees in the place of any others, and the way back: pseudo-projective transformation.

Source: Nivre and Nilsson 2005, "Pseudo-projective dependency parsing", sections 2 and 3.  Arcs that
are not projective are lifted, the shortest first and of equally short ones that of the leftmost
word, each to the head of its head, until none is left; labels tell the way back.  Of a word with
the label d, lifted away from a head whose own label is h, and of one with the label p, out of which
an arc was lifted (it lies on the path from the old head to the new one):

    scheme       lifted    on a path    both
    head         d↑h       p            d↑h
    head+path    d↑h       p↓           d↑h↓
    path         d↑        p↓           d↑↓

The way back goes through the lifted words from the top down.  From the head of each a breadth-first
search, left to right, looks for the old head: with "head" the first word with the label h; with
"path" it follows marked arcs alone, to the first one that no marked arc continues; with "head+path"
it follows these to a word with the label h, and where there is none does as "head".

How ours differs: of words at the same depth those that are themselves on a path go back first, from
left to right, since others may have to find their way over them.

Lifting an arc takes words away from below its head and from no other word, so that an arc that is
not projective stays so until it is lifted itself: no order of lifts can leave one out.  (Another
order may still end lower: a word can be lifted past a place that would have done.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from tk_spacy.errors import UserError
from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.trees.validity import tree_fault
from tk_spacy.utils.validation import check_choice

Scheme = Literal["head", "head+path", "path"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

LIFTED, PASSED = "↑", "↓"
"""Marks of labels; UD's are made of the letters a to z, ":" and "_"."""

_UNMARKED = f"[^{LIFTED}{PASSED}]+"
_WRITTEN = {
    "head": re.compile(f"{_UNMARKED}{LIFTED}{_UNMARKED}"),
    "head+path": re.compile(f"{_UNMARKED}({LIFTED}{_UNMARKED}{PASSED}?|{PASSED})"),
    "path": re.compile(f"{_UNMARKED}({LIFTED}{PASSED}?|{PASSED})"),
}
"""What marked labels look like in each scheme."""

NO_LABEL = "dep"
"""Of a word whose label is nothing but marks: UD's for a relation that is not known."""


def projectivize(
    heads: ArrayLike, deprels: Sequence[str], scheme: Scheme = "path"
) -> tuple[list[int], list[str]]:
    """The projective tree that takes the place of a tree, with labels that tell the way back.

    heads: int[n], 0 for the root, of a tree with one root.  deprels: n labels.
    A projective tree comes back as it is.  Raises UserError for a label that holds a mark already,
    and for another scheme; ValueError for heads that are no tree, or another number of labels.
    """
    check_choice("scheme", scheme, SCHEMES)
    tree, labels = _checked(heads, deprels, single_root=True)
    check_unmarked(labels)
    crossing = crossing_arcs(tree)
    if not any(crossing):
        return tree, labels
    lifted, passed = _lift(tree, [word for word, crosses in enumerate(crossing, 1) if crosses])
    return lifted, [
        label
        + (LIFTED if head != old else "")
        + (labels[old - 1] if head != old and scheme != "path" else "")
        + (PASSED if word in passed and scheme != "head" else "")
        for word, (label, old, head) in enumerate(zip(labels, tree, lifted, strict=True), 1)
    ]


def deprojectivize(
    heads: ArrayLike, deprels: Sequence[str], scheme: Scheme = "path"
) -> tuple[list[int], list[str]]:
    """The tree that `projectivize` was given, or as near to it as the labels tell.

    heads: int[n], 0 for the root, of a tree; projective or not.  deprels: n labels, which may be a
    parser's mistakes: a word whose search fails stays where it is, and all marks are cut.
    Always a tree, with one root if the given one has one.  Raises UserError for another scheme,
    ValueError for heads that are no tree, or another number of labels.
    """
    check_choice("scheme", scheme, SCHEMES)
    tree, labels = _checked(heads, deprels, single_root=False)
    if not has_marks("".join(labels)):
        return tree, labels
    marks = [_parsed(label) for label in labels]
    nodes = _Nodes([0, *tree], ["", *(mark.label for mark in marks)])
    nodes.passed = [False, *(mark.passed for mark in marks)]
    depths = _depths(nodes.below)
    lifted = [word for word, mark in enumerate(marks, 1) if mark.lifted]
    lifted.sort(key=lambda word: (depths[word], not nodes.passed[word], word))
    before = len(lifted) + 1
    while len(lifted) < before:
        # A head that was lifted itself may be found when it is back in its place.
        before, failed = len(lifted), []
        for word in lifted:
            head = nodes.find(word, marks[word - 1].head_label, scheme)
            if head == nodes.heads[word]:
                failed.append(word)
            else:
                nodes.move(word, head)
        lifted = failed
    return nodes.heads[1:], nodes.labels[1:]


def has_marks(deprel: str) -> bool:
    """Whether a label holds a mark."""
    return LIFTED in deprel or PASSED in deprel


def foreign_mark(deprels: Sequence[str], scheme: Scheme) -> tuple[int, Scheme] | None:
    """The first word whose label another scheme writes but not this one, and that scheme.

    Words count from 1; None where there is none, as where no scheme writes a label.
    """
    for word, label in enumerate(deprels, 1):
        if has_marks(label) and not _WRITTEN[scheme].fullmatch(label):
            for other in SCHEMES:
                if _WRITTEN[other].fullmatch(label):
                    return word, other
    return None


def check_unmarked(deprels: Sequence[str]) -> None:
    """Raises UserError, naming the word, where a label of a sentence holds a mark already."""
    if not has_marks("".join(deprels)):
        return
    word = next(i for i, label in enumerate(deprels) if has_marks(label))
    raise UserError(
        f"DEPREL of word {word + 1} is {deprels[word]!r}, but {LIFTED} and {PASSED} mark lifted "
        "arcs; undo the transformation that wrote them, or take them out of the label"
    )


def lost_arcs(heads: ArrayLike, deprels: Sequence[str], scheme: Scheme = "path") -> int:
    """How many words have another head or label after the way there and back.

    Takes and raises what `projectivize` does.
    """
    back = deprojectivize(*projectivize(heads, deprels, scheme), scheme)
    before = zip(np.asarray(heads).tolist(), deprels, strict=True)
    return sum(old != new for old, new in zip(before, zip(*back, strict=True), strict=True))


def _checked(
    heads: ArrayLike, deprels: Sequence[str], *, single_root: bool
) -> tuple[list[int], list[str]]:
    """Lists of one's own.  Raises ValueError where they are no tree with a label for each word."""
    tree, labels = np.asarray(heads).tolist(), list(deprels)
    if len(tree) != len(labels):
        raise ValueError(f"deprels has {len(labels)} values for {len(tree)} words")
    fault = tree_fault(tree, single_root=single_root)
    if fault is not None:
        raise ValueError(f"heads {tree} are no tree: {fault[1]}")
    return tree, labels


def _lift(heads: list[int], crossing: list[int]) -> tuple[list[int], set[int]]:
    """The heads when all is lifted, and the words out of which arcs were lifted.

    crossing: the words whose arcs cross others; an arc that crosses none is projective.
    """
    new = [0, *heads]
    waiting = [(abs(word - new[word]), word) for word in crossing if not _is_projective(new, word)]
    waits = {word for _, word in waiting}
    heapify(waiting)
    passed = set()
    while waiting:
        word = heappop(waiting)[1]
        waits.remove(word)
        head = new[word]
        new[word] = new[head]
        passed.add(head)
        # The head alone has lost words below it: its other arcs may not be projective any more.
        others = [other for other, above in enumerate(new) if above == head and other not in waits]
        for other in (word, *others):
            if not _is_projective(new, other):
                heappush(waiting, (abs(other - new[other]), other))
                waits.add(other)
    return new[1:], passed


def _is_projective(heads: list[int], word: int) -> bool:
    """Whether all words between a word and its head are below that head.

    heads: of node 0, too.
    """
    head = heads[word]
    for between in range(min(word, head) + 1, max(word, head)):
        above = between
        while above not in (0, head):
            above = heads[above]
        if above != head:
            return False
    return True


class _Mark(NamedTuple):
    """What a label tells: its own text, and the label of the old head ("" for none)."""

    label: str
    lifted: bool
    passed: bool
    head_label: str


def _parsed(label: str) -> _Mark:
    own, arrow, rest = label.replace(PASSED, "").partition(LIFTED)
    return _Mark(own or NO_LABEL, bool(arrow), PASSED in label, rest.partition(LIFTED)[0])


class _Nodes:
    """A tree whose words move; node 0 is above the root.

    heads, labels: of all nodes.  passed: which of them are marked as on a path.
    below: the words below each node, from left to right.
    """

    def __init__(self, heads: list[int], labels: list[str]) -> None:
        self.heads, self.labels = heads, labels
        self.passed = [False] * len(heads)
        self.below: list[list[int]] = [[] for _ in heads]
        for word in range(1, len(heads)):
            self.below[heads[word]].append(word)

    def move(self, word: int, head: int) -> None:
        """Attach a word to a head that is not below it."""
        self.below[self.heads[word]].remove(word)
        self.heads[word] = head
        self.below[head] = sorted([*self.below[head], word])

    def find(self, word: int, head_label: str, scheme: Scheme) -> int:
        """The head that a lifted word had, as far as can be told; else its present one."""

        def has_label(node: int) -> bool:
            return self.labels[node] == head_label

        def ends_path(node: int) -> bool:
            return not any(self.passed[child] for child in self.below[node])

        found = 0
        if scheme != "head":
            is_head = has_label if scheme == "head+path" else ends_path
            found = self._search(word, is_head, on_path=True)
        if scheme != "path" and not found:
            found = self._search(word, has_label)
        return found or self.heads[word]

    def _search(self, word: int, is_head: Callable[[int], bool], *, on_path: bool = False) -> int:
        """The first word below a word's head, but not below the word itself, that is the one.

        0 where none is.
        """
        queue = [self.heads[word]]
        for parent in queue:
            for child in self.below[parent]:
                if child == word or (on_path and not self.passed[child]):
                    continue
                if is_head(child):
                    return child
                queue.append(child)
        return 0


def _depths(below: list[list[int]]) -> list[int]:
    """How far each node is below node 0."""
    depths = [0] * len(below)
    queue = [0]
    for node in queue:
        for child in below[node]:
            depths[child] = depths[node] + 1
            queue.append(child)
    return depths
