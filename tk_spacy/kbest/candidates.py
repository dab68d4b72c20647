"""Candidate lists: the k best trees of a sentence as arrays, whoever proposed them.

A list is built in one vectorised pass (validity, duplicates, order) because a treebank of 170,000
words has millions of candidate arcs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tk_spacy.errors import CandidateError
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.trees.tree_rows import CheckedTrees, check_labels, group_equal, single_rooted
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
    base:      row of spaCy's parser's own first choice, which need not be row 0: a parser that
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
        heads = checked("heads", heads, np.int32, None, None)
        labels = checked("labels", labels, np.int32, *heads.shape)
        scores = checked("scores", scores, np.float64, None, None)
        if k is not None and k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        trees, bad = single_rooted(heads)
        if trees is None:
            row = int(bad[0])
            raise CandidateError(f"candidate {row + 1} of {len(heads)}: {check_tree(heads[row])}")
        if scores.shape != (len(heads), len(sources)):
            raise ValueError(f"scores must be {(len(heads), len(sources))}, got {scores.shape}")
        check_labels(labels, len(inventory))
        for row in (base, *(bases or {}).values()):
            if not 0 <= row < len(heads):
                raise ValueError(f"base must be a row from 0 to {len(heads) - 1}, got {row}")
        group, first = group_equal(heads, labels)
        if len(first) < len(heads):
            merged = scores[first]
            # fmax passes over NaN, so a tree scored by one source only keeps that score.
            np.fmax.at(merged, group, scores)
            scores = merged
        own = {name: int(group[row]) for name, row in (bases or {}).items()}
        base = int(group[base])
        order = _by_main_score(scores)
        if k is not None and k < len(order):
            needed = list(dict.fromkeys([base, *own.values()]))[:k]
            others = [row for row in order.tolist() if row not in needed][: k - len(needed)]
            order = order[np.isin(order, needed + others)]
        place = {row: i for i, row in enumerate(order.tolist())}
        rows = first[order]
        trees = trees.take(rows)
        return cls(
            heads=trees.heads,
            labels=labels[rows],
            inventory=inventory,
            sources=tuple(sources),
            scores=scores[order],
            base=place[base],
            bases={name: place[row] for name, row in own.items() if row in place},
            checked=trees,
        )

    def with_scores(self, scores: NDArray[np.float64]) -> CandidateList:
        """The same trees with other scores, float64[k, n_sources], in the order of the new ones."""
        order = _by_main_score(scores)
        place = np.argsort(order)
        trees = None if self.checked is None else self.checked.take(order)
        return replace(
            self,
            heads=self.heads[order] if trees is None else trees.heads,
            labels=self.labels[order],
            scores=scores[order],
            base=int(place[self.base]),
            bases={name: int(place[row]) for name, row in self.bases.items()},
            checked=trees,
        )

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


def _by_main_score(scores: Float64) -> NDArray[np.intp]:
    """Rows by falling score of the first source, NaN last, otherwise in their order."""
    return np.argsort(-scores[:, 0], kind="stable")  # which puts NaN behind all numbers


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
