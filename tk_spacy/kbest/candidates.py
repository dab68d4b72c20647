"""Candidate lists: the k best trees of a sentence as arrays, whoever proposed them.

A list is made in one compiled pass (validity, duplicates, order; see `list_arrays`) because a
treebank of 170,000 words has millions of candidate arcs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from threading import Lock
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.list_arrays import arrange_lists, arrange_one
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.trees.tree_rows import CheckedTrees, check_labels, invalid_trees
from tk_spacy.utils.array_checks import checked
from tk_spacy.utils.array_types import Float64, Int32

MAX_K = 10_000
"""The longest lists that one may ask for."""
LONG_LIST, SHORT_LIST = 25, 8
"""Trees of a sentence that a parser alone is asked for by default, and several are asked for each.

A short list is not searched for longer than the best tree alone.
"""
BATCH = 256
"""Sentences that are worked on in one pass, at most."""
BATCH_CELLS = 1 << 22
"""Words of all trees of all their lists, at most: some 32 MB of heads and labels."""

T = TypeVar("T")
Arranged = tuple[CheckedTrees, Int32, Float64, list[int]]
"""A list as `list_arrays` makes it: trees, labels int32[k, n], scores float64[k, n_sources], and
the rows of own trees."""


class LabelInventory:
    """Append-only table of dependency labels, shared by many candidate lists.

    Ids count from 0 in the order of first use and never change, so that lists built at different
    times with one inventory can be compared by their arrays.
    """

    __slots__ = ("__weakref__", "_ids", "_lock", "_names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._lock = Lock()
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"LabelInventory({self._names!r})"

    @property
    def names(self) -> list[str]:
        """The labels by id; a copy."""
        return list(self._names)

    def add(self, label: str) -> int:
        """Id of a label, which is appended where it is new."""
        label_id = self._ids.get(label)
        if label_id is None:
            with self._lock:
                label_id = self._ids.get(label)
                if label_id is None:
                    self._names.append(label)
                    # Last, so that whoever finds the id also finds the name.
                    label_id = self._ids[label] = len(self._names) - 1
        return label_id

    def __reduce__(self) -> tuple[type[LabelInventory], tuple[list[str]]]:
        return LabelInventory, (self._names,)

    def get(self, label: str) -> int:
        """Id of a label, -1 where it is unknown."""
        return self._ids.get(label, -1)

    def encode(self, deprels: Iterable[str], *, add: bool = True) -> Int32:
        """Ids of labels as int32[n]; unknown labels are appended, or become -1 with add=False."""
        look_up = self.add if add else self.get
        return np.fromiter(map(look_up, deprels), dtype=np.int32)

    def decode(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Labels of ids."""
        names = self._names
        return tuple([names[i] for i in ids])


@dataclass(frozen=True, slots=True, eq=False)
class CandidateList:
    """Distinct trees over one sentence of n words, best first.

    heads:     int32[k, n], HEAD of each word, 0 for the root's child.
    labels:    int32[k, n], DEPREL as ids of `inventory`.
    inventory: the labels; shared with other lists.
    sources:   names of what scored the trees; the first one is the main source and gives the order.
    scores:    float64[k, n_sources], higher is better; NaN where a source did not score a tree.
    base:      row of the main source's own first choice, which need not be row 0: a parser that
               decides greedily may find a better-scored tree only in the search around its choice.
    bases:     rows of the own first choices of further parsers, by the names of their sources.
    checked:   these heads, where they are known to be trees; see `trees`.
    """

    heads: Int32
    labels: Int32
    inventory: LabelInventory
    sources: tuple[str, ...]
    scores: Float64
    base: int = 0
    bases: Mapping[str, int] = field(default_factory=dict)
    checked: CheckedTrees | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        k, n = self.heads.shape if self.heads.ndim == 2 else (0, 0)
        if k == 0 or n == 0:
            raise ValueError(f"heads must be [k >= 1, n >= 1], got shape {self.heads.shape}")
        if self.labels.shape != (k, n) or self.scores.shape != (k, len(self.sources)):
            raise ValueError(
                f"labels must be {(k, n)} and scores {(k, len(self.sources))}, got "
                f"{self.labels.shape} and {self.scores.shape}"
            )
        for row in (self.base, *self.bases.values()):
            if not 0 <= row < k:
                raise ValueError(f"base must be a row from 0 to {k - 1}, got {row}")
        for array in (self.heads, self.labels, self.scores):
            array.setflags(write=False)
        # Of a changed list (`replace`): those were other trees.
        if self.checked is not None and self.checked.heads is not self.heads:
            object.__setattr__(self, "checked", None)

    def __reduce__(self) -> tuple[type[CandidateList], tuple[Any, ...]]:
        # Made anew, as pickled arrays come back writable.
        return CandidateList, (
            self.heads, self.labels, self.inventory, self.sources, self.scores, self.base,
            self.bases,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def n_words(self) -> int:
        """Number of words of the sentence."""
        return int(self.heads.shape[1])

    @property
    def trees(self) -> CheckedTrees:
        """The heads, checked: once for a list that its class methods made.

        One made by hand is checked at each call, as whoever gave the arrays may change them.
        Raises TypeError or ValueError where they are no trees.
        """
        return CheckedTrees(self.heads) if self.checked is None else self.checked

    def deprels(self, j: int) -> tuple[str, ...]:
        """DEPREL of each word in candidate j."""
        return self.inventory.decode(self.labels[j].tolist())

    def row_of(self, heads: Int32, labels: Int32) -> int:
        """The row of a tree, int32[n] each.  Raises ValueError where it is not there."""
        same = (self.heads == heads).all(axis=1) & (self.labels == labels).all(axis=1)
        if not same.any():
            raise ValueError(
                "the tree is not in the candidate list; add it, with the parsers' scores"
            )
        return int(same.argmax())

    @classmethod
    def build(
        cls,
        trees: Iterable[tuple[ArrayLike, Sequence[str], float | Sequence[float]]],
        *,
        inventory: LabelInventory,
        sources: Sequence[str],
        k: int | None = None,
        base: int = 0,
    ) -> CandidateList:
        """A list from (heads, deprels, scores) triples; see `from_arrays` for the rest."""
        heads, labels, scores = [], [], []
        for tree_heads, deprels, tree_scores in trees:
            heads.append(tree_heads)
            labels.append(inventory.encode(deprels))
            scores.append(tree_scores)
        if not heads:
            raise CandidateError("no candidate tree; a list needs at least one")
        if len({len(row) for row in labels} | {np.shape(row)[0] for row in heads}) != 1:
            raise CandidateError("candidates of one sentence have different numbers of words")
        return cls.from_arrays(
            np.asarray(heads),
            np.stack(labels),
            np.asarray(scores, dtype=np.float64).reshape(len(heads), -1),
            inventory=inventory,
            sources=sources,
            k=k,
            base=base,
        )

    @classmethod
    def from_arrays(
        cls,
        heads: NDArray[Any],
        labels: NDArray[Any],
        scores: NDArray[Any],
        *,
        inventory: LabelInventory,
        sources: Sequence[str],
        k: int | None = None,
        base: int = 0,
        bases: Mapping[str, int] | None = None,
    ) -> CandidateList:
        """Check, merge, sort and cut candidates, in that order.

        heads, labels: integer [m, n]; scores: [m, n_sources].  Equal trees (by heads and labels)
        become one, which keeps the best score of each source.  The order is by the first source's
        score, NaN last, and otherwise the given order.  At most k trees are kept, row `base` of the
        input always among them, and those of `bases` where there is room.

        Raises CandidateError, saying which candidate, where a row is no tree with a single root;
        TypeError or ValueError for other arrays, and for a base or a label that there is none of.
        """
        own = (base,) if bases is None else (base, *bases.values())
        made = None
        if (k is None or k > 0) and np.shape(scores) == (len(heads), len(sources)):
            made = arrange_one(heads, labels, scores, own, n_labels=len(inventory), k=k)
        if made is None:
            _refuse(heads, labels, scores, own, len(inventory), len(sources), k)
        return cls.of_arranged(made, inventory, tuple(sources), tuple(bases or ()))

    @classmethod
    def from_flat(
        cls,
        heads: Int32,
        labels: Int32,
        scores: Float64,
        *,
        counts: Sequence[int],
        lengths: Sequence[int],
        inventory: LabelInventory,
        sources: Sequence[str],
    ) -> list[CandidateList]:
        """As `from_arrays`, for many sentences whose trees stand one after the other.

        heads, labels: int32[cells], the words of one tree after the other, list by list.
        scores: float64[trees, n_sources].  counts: trees of each sentence, whose first one is the
        base.  lengths: words of each sentence.
        """
        starts, made = np.cumsum([0, *counts], dtype=np.intp), None
        if np.shape(scores) == (starts[-1], len(sources)):
            made = arrange_lists(
                heads, labels, np.ravel(scores), starts, np.array(lengths, dtype=np.intp),
                columns=[len(sources)], n_labels=len(inventory),
            )  # fmt: skip
        if made is None:
            ends = np.cumsum(np.multiply(counts, lengths))[:-1]
            for own_heads, own_labels, own_scores, n in zip(
                np.split(heads, ends), np.split(labels, ends), np.split(scores, starts[1:-1]),
                lengths, strict=True,
            ):  # fmt: skip
                cls.from_arrays(
                    own_heads.reshape(-1, n), own_labels.reshape(-1, n), own_scores,
                    inventory=inventory, sources=sources,
                )  # fmt: skip
            raise ValueError("arrays of lists do not fit each other")
        names = tuple(sources)
        return [cls.of_arranged(item, inventory, names) for item in made]

    @classmethod
    def of_arranged(
        cls,
        arranged: Arranged,
        inventory: LabelInventory,
        sources: tuple[str, ...],
        own: Iterable[str] = (),
    ) -> CandidateList:
        """A list of what `list_arrays` has made, which needs no other check.

        own: names of the further own trees.
        """
        trees, labels, scores, (base, *places) = arranged
        bases = {name: row for name, row in zip(own, places, strict=True) if row >= 0}
        return cls._new(trees.heads, labels, inventory, sources, scores, base, bases, trees)

    @classmethod
    def _new(cls, *values: Any) -> CandidateList:
        """A list of all its fields, which are known to fit."""
        made = cls.__new__(cls)
        for set_field, value in zip(_SETTERS, values, strict=True):
            set_field(made, value)
        return made

    def check(self) -> None:
        """Raises CandidateError or ValueError for what no method of the class would have made."""
        self.from_arrays(
            self.heads, self.labels, self.scores, inventory=self.inventory, sources=self.sources
        )

    def with_sources(self, sources: Sequence[str]) -> CandidateList:
        """The same list with other names of its sources.  Raises ValueError for another number."""
        if len(sources) != len(self.sources):
            raise ValueError(f"{len(sources)} names, expected {len(self.sources)} of sources")
        return self._new(
            self.heads, self.labels, self.inventory, tuple(sources), self.scores, self.base,
            self.bases, self.checked,
        )  # fmt: skip

    def with_scores(self, scores: NDArray[np.float64]) -> CandidateList:
        """The same trees with other scores, float64[k, n_sources], in the order of the new ones."""
        if scores.shape != self.scores.shape:
            raise ValueError(f"scores must be {self.scores.shape}, got {scores.shape}")
        own = (self.base, *self.bases.values())
        made = arrange_one(self.heads, self.labels, scores, own, n_labels=0, known=True)
        assert made is not None  # the list is none
        return self._rearranged(made)

    def _rearranged(self, arranged: Arranged) -> CandidateList:
        """The list's own trees in another order."""
        made = self.of_arranged(arranged, self.inventory, self.sources, self.bases)
        # Trees that nobody has checked are not known to be some.
        return made if self.checked is not None else replace(made, checked=None)

    def oracle(self, gold: Sentence, *, labelled: bool = False) -> int:
        """Row of the candidate nearest the gold tree in Hamming distance.

        On heads; among equals the fewer wrong labels, then the higher main score.  With labelled,
        a word counts as right where head and label are, and among equals the fewer wrong heads win.
        """
        if len(gold) != self.n_words:
            raise ValueError(f"gold has {len(gold)} words, the candidates {self.n_words}")
        wrong_head = self.heads != gold.heads
        wrong_label = self.labels != self.inventory.encode(gold.deprels, add=False)
        if labelled:
            first = (wrong_head | wrong_label).sum(axis=1)
            second = wrong_head.sum(axis=1)
        else:
            first = wrong_head.sum(axis=1)
            second = wrong_label.sum(axis=1)
        # Rows are sorted by score, so the first of the equals has the highest.
        return int(np.argmin(first * (self.n_words + 1) + second))


_SETTERS = tuple(getattr(CandidateList, item.name).__set__ for item in fields(CandidateList))
"""Of the fields, in order: what makes a list of known arrays in a third of the time."""


def _refuse(
    heads: NDArray[Any],
    labels: NDArray[Any],
    scores: NDArray[Any],
    own: Sequence[int],
    n_labels: int,
    n_sources: int,
    k: int | None,
) -> NoReturn:
    """Raises what is wrong with arrays of which no list can be made."""
    heads = checked("heads", heads, np.int32, None, None)
    labels = checked("labels", labels, np.int32, *heads.shape)
    scores = checked("scores", scores, np.float64, None, None)
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    bad = invalid_trees(heads)
    if bad.size:
        row = int(bad[0])
        raise CandidateError(f"candidate {row + 1} of {len(heads)}: {check_tree(heads[row])}")
    if scores.shape != (len(heads), n_sources) or not n_sources:
        raise ValueError(f"scores must be {(len(heads), max(1, n_sources))}, got {scores.shape}")
    check_labels(labels, n_labels)
    row = next(row for row in own if not 0 <= row < len(heads))
    raise ValueError(f"base must be a row from 0 to {len(heads) - 1}, got {row}")


def joined(lists: Iterable[CandidateList]) -> tuple[Int32, Int32]:
    """The trees of lists, the words of one tree after the other: heads and labels int32[cells]."""
    heads, labels = [], []
    for trees in lists:
        heads.append(trees.heads.ravel())
        labels.append(trees.labels.ravel())
    return np.concatenate(heads), np.concatenate(labels)


def lengths_of(lists: Sequence[CandidateList]) -> NDArray[np.intp]:
    """The words of the sentence of each list: intp[lists]."""
    return np.array([trees.heads.shape[1] for trees in lists], dtype=np.intp)


def rescored(lists: Sequence[CandidateList], scores: Float64) -> list[CandidateList]:
    """As `CandidateList.with_scores`, for many lists with as many sources.

    scores: float64[trees of all lists, n_sources].  Raises ValueError for another shape.
    """
    if not lists:
        return []
    starts, width = np.cumsum([0, *map(len, lists)], dtype=np.intp), lists[0].scores.shape[1]
    if scores.shape != (starts[-1], width) or any(t.scores.shape[1] != width for t in lists):
        raise ValueError(f"scores must be {(int(starts[-1]), width)}, got {scores.shape}")
    made = arrange_lists(
        *joined(lists), scores.ravel(), starts, lengths_of(lists), columns=[width],
        own=[(trees.base, *trees.bases.values()) for trees in lists], n_labels=0, known=True,
    )  # fmt: skip
    assert made is not None  # the lists are some
    return [trees._rearranged(item) for trees, item in zip(lists, made, strict=True)]


def in_batches(
    items: Iterable[T], cells: Callable[[T], int], *, most: int = BATCH
) -> Iterator[list[T]]:
    """Consecutive items, as many at a time as memory should hold, one at least.

    cells: of an item, the words of all trees of its list.  most: items of a batch.
    """
    batch: list[T] = []
    total = 0
    for item in items:
        size = cells(item)
        if batch and total + size > BATCH_CELLS:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
        if len(batch) == most:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def check_aligned(sentences: Sequence[Sentence], lists: Sequence[CandidateList]) -> None:
    """Raises ValueError unless there is a list for each sentence, of as many words."""
    if len(sentences) != len(lists):
        raise ValueError(f"{len(lists)} lists for {len(sentences)} sentences")
    for sentence, trees in zip(sentences, lists, strict=True):
        if trees.n_words != len(sentence):
            raise ValueError(f"a list of {trees.n_words} words for a sentence of {len(sentence)}")


def check_alternatives(lists: Iterable[CandidateList], *, where: str) -> None:
    """Raises CandidateError where no list of a file leaves a choice, and so nothing to learn."""
    if all(len(trees) == 1 for trees in lists):
        raise CandidateError(
            f"{where}: no list has more than one tree, so there is nothing to choose from; make "
            "longer ones (`tk-spacy kbest` with a k over 1)"
        )
