"""Kernel perceptrons over candidate lists: the rows that selected features are compared with.

Source: Qian and Liu 2015, section 6.1: averaged perceptrons with polynomial and dependency tree
kernels; and Collins and Duffy (2002), whom they follow in learning from ten parts of the training
set apart, whose choices are combined by a vote.

Where the best candidate is not the oracle one, the oracle's tree joins the support with weight 1
and the chosen one's with -1.  Weights of the support never change, so a list's scores are brought
up to date by what joined since its last visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.forest import Forest
from tk_spacy.kernels.polynomial_kernel import PolynomialSupport
from tk_spacy.kernels.tree_kernel import TreeSupport
from tk_spacy.selection.basic import ArcLists
from tk_spacy.utils.array_types import Float64, Int32

CHUNK = 64
"""Lists that are brought up to date together, so that threads have enough to do."""

Prepared = TypeVar("Prepared")


class KernelModel(Protocol[Prepared]):
    """A support of trees under some kernel."""

    @property
    def updates(self) -> int:
        """How many differences of two trees it holds."""
        ...

    def prepare(self, arcs: ArcLists) -> Prepared:
        """A candidate list in the form that the kernel compares."""
        ...

    def scores(
        self,
        lists: Sequence[Prepared],
        *,
        since: int = 0,
        averaged: bool = False,
        n_threads: int | None = None,
    ) -> list[Float64]:
        """The score of each candidate of each list: float64[k].

        since: by the updates from that one on.  Comparable within a list.
        """
        ...

    def add(
        self, prepared: Prepared, better: int, worse: int, *, weight: float, averaged: float
    ) -> None:
        """An update: one candidate's tree with a weight, another one's with its negative."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Candidates as sums of vectors, each distinct vector once.

    starts, ids, counts: the vectors, see `PolynomialSupport.append`.  members: int32[k, w], those
    of each candidate; -1 fills up.
    """

    starts: Int32
    ids: Int32
    counts: Int32
    members: Int32


class PolynomialModel:
    """(a . b + 1) ** degree, summed over pairs of arcs, or of whole trees as one vector each."""

    def __init__(self, n_features: int, degree: int, *, whole_trees: bool = False) -> None:
        self._support = PolynomialSupport(n_features, degree)
        self._whole = whole_trees
        self._ends = [0]

    @property
    def updates(self) -> int:
        """How many differences of two trees it holds."""
        return len(self._ends) - 1

    def prepare(self, arcs: ArcLists) -> Vectors:
        """The arcs that some of the trees lack, or the trees."""
        if self._whole:
            return _tree_vectors(arcs)
        times = np.bincount(arcs.members.ravel(), minlength=arcs.n_arcs)
        contested = np.flatnonzero(times < len(arcs.members)).astype(np.int32)
        new = np.full(arcs.n_arcs, -1, dtype=np.int32)
        new[contested] = np.arange(len(contested), dtype=np.int32)
        starts, ids = taken(arcs.starts, arcs.ids, contested)
        return Vectors(starts, ids, np.ones(len(ids), dtype=np.int32), new[arcs.members])

    def scores(
        self,
        lists: Sequence[Vectors],
        *,
        since: int = 0,
        averaged: bool = False,
        n_threads: int | None = None,
    ) -> list[Float64]:
        """See `KernelModel`."""
        sizes = [len(item.starts) - 1 for item in lists]
        values = np.zeros(sum(sizes))
        ends = np.cumsum([0, *(len(item.ids) for item in lists)])
        starts = [item.starts[1:] + end for item, end in zip(lists, ends, strict=False)]
        self._support.add_scores(
            np.concatenate([[0], *starts]).astype(np.int32),
            np.concatenate([item.ids for item in lists]),
            values,
            counts=np.concatenate([item.counts for item in lists]),
            since=self._ends[since],
            averaged=averaged,
            n_threads=n_threads,
        )
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return [summed(part, item.members) for part, item in zip(parts, lists, strict=True)]

    def add(
        self, prepared: Vectors, better: int, worse: int, *, weight: float, averaged: float
    ) -> None:
        """See `KernelModel`.  What both trees have cancels out."""
        a, b = (set(prepared.members[row].tolist()) - {-1} for row in (better, worse))
        for vectors, sign in ((sorted(a - b), 1.0), (sorted(b - a), -1.0)):
            starts, ids = taken(prepared.starts, prepared.ids, vectors)
            _, counts = taken(prepared.starts, prepared.counts, vectors)
            signs = np.full(len(vectors), sign)
            self._support.append(starts, ids, weight * signs, averaged * signs, counts=counts)
        self._ends.append(len(self._support))


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """Candidates as a forest with the features of its arcs, (starts, ids)."""

    forest: Forest
    arcs: tuple[Int32, Int32]


class TreeModel:
    """The number of common sub feature trees; decay: of each arc in them."""

    def __init__(self, *, decay: float = 1.0) -> None:
        self._support = TreeSupport(decay=decay)

    @property
    def updates(self) -> int:
        """How many differences of two trees it holds."""
        return len(self._support)

    def prepare(self, arcs: ArcLists) -> Trees:
        """The trees, equal subtrees once."""
        return Trees(Forest.make(arcs.heads, arcs.members), (arcs.starts, arcs.ids))

    def scores(
        self,
        lists: Sequence[Trees],
        *,
        since: int = 0,
        averaged: bool = False,
        n_threads: int | None = None,
    ) -> list[Float64]:
        """See `KernelModel`."""
        found = []
        for item in lists:
            values = np.zeros(item.forest.n_nodes)
            self._support.add_scores(
                item.forest, item.arcs, values, since=since, averaged=averaged,
                n_threads=n_threads,
            )  # fmt: skip
            found.append(values[item.forest.trees].sum(axis=1))
        return found

    def add(
        self, prepared: Trees, better: int, worse: int, *, weight: float, averaged: float
    ) -> None:
        """See `KernelModel`.  What is equal below two words cancels out."""
        pair, used = prepared.forest.part([better, worse])
        coefficients = np.zeros(pair.n_nodes)
        np.add.at(coefficients, pair.trees[0], 1.0)
        np.add.at(coefficients, pair.trees[1], -1.0)
        self._support.append(
            pair, taken(*prepared.arcs, used), coefficients,
            weight=weight, averaged=averaged,
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class Visited(Generic[Prepared]):
    """A training list between visits.

    prepared: for the kernel.  oracle: the candidate to be preferred.  alike: bool[k], which
    candidates have its arcs.  scores: float64[k], by the first `mark` updates.
    """

    prepared: Prepared
    oracle: int
    alike: NDArray[np.bool_]
    scores: Float64
    mark: int = 0


def train_perceptron(
    model: KernelModel[Prepared],
    lists: Sequence[ArcLists],
    oracles: Sequence[int],
    *,
    iterations: int = 10,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Train an averaged perceptron in the given order of the lists; returns its updates.

    oracles: the candidate of each list that should win; one with the same arcs is as good.  Of
    candidates with equal scores the first is chosen.
    """
    items = [
        Visited(
            model.prepare(arcs),
            oracle,
            (arcs.members == arcs.members[oracle]).all(axis=1),
            np.zeros(len(arcs.heads)),
        )
        for arcs, oracle in zip(lists, oracles, strict=True)
    ]
    total, step = iterations * len(items), 0
    for _ in range(iterations):
        for start in range(0, len(items), CHUNK):
            chunk = items[start : start + CHUNK]
            refresh(model, chunk, n_threads=n_threads)
            for item in chunk:
                step += 1
                scores = item.scores
                if item.mark < model.updates:
                    (recent,) = model.scores([item.prepared], since=item.mark, n_threads=1)
                    scores = scores + recent
                best = int(scores.argmax())
                if not item.alike[best]:
                    model.add(
                        item.prepared, item.oracle, best,
                        weight=1.0, averaged=(total - step + 1) / total,
                    )  # fmt: skip
            if progress is not None:
                progress(step, total)
    return model.updates


def refresh(
    model: KernelModel[Prepared], items: Iterable[Visited[Prepared]], *, n_threads: int | None
) -> None:
    """Bring the scores of lists up to all updates so far."""
    behind: dict[int, list[Visited[Prepared]]] = {}
    for item in items:
        if item.mark < model.updates:
            behind.setdefault(item.mark, []).append(item)
    for mark, group in behind.items():
        recent = model.scores([item.prepared for item in group], since=mark, n_threads=n_threads)
        for item, scores in zip(group, recent, strict=True):
            item.scores = item.scores + scores
            item.mark = model.updates


@dataclass(frozen=True, slots=True)
class Committee(Generic[Prepared]):
    """Perceptrons that learnt from parts of the training lists apart.

    models: one for each part.
    """

    models: Sequence[KernelModel[Prepared]] = field(default_factory=list)

    @classmethod
    def train(
        cls,
        make: Callable[[], KernelModel[Prepared]],
        lists: Sequence[ArcLists],
        oracles: Sequence[int],
        *,
        parts: int = 10,
        iterations: int = 10,
        n_threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Committee[Prepared]:
        """parts: of consecutive lists, as equal in number as can be; 1 for a single perceptron."""
        bounds = np.linspace(0, len(lists), parts + 1).round().astype(int).tolist()
        models, done = [], 0
        for start, stop in pairwise(bounds):
            model, before = make(), done

            def on_step(step: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + step, iterations * len(lists))

            train_perceptron(
                model, lists[start:stop], oracles[start:stop],
                iterations=iterations, n_threads=n_threads, progress=on_step,
            )  # fmt: skip
            done += iterations * (stop - start)
            models.append(model)
        return cls(models)

    def scores(self, lists: Sequence[ArcLists], *, n_threads: int | None = None) -> list[Float64]:
        """The averaged score of each candidate by each model: float64[models, k] for each list."""
        of_models = []
        for model in self.models:
            prepared: list[Any] = [model.prepare(arcs) for arcs in lists]
            found: list[Float64] = []
            for start in range(0, len(prepared), CHUNK):
                part = prepared[start : start + CHUNK]
                found += model.scores(part, averaged=True, n_threads=n_threads)
            of_models.append(found)
        return [np.stack(rows) for rows in zip(*of_models, strict=True)]


def voted(scores: Float64) -> int:
    """The candidate that most models of a committee choose; of equals the first.

    scores: float64[models, k].
    """
    return int(np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]).argmax())


def summed(values: Float64, members: Int32) -> Float64:
    """The sum of values over each candidate's members: float64[k]; -1 counts nothing."""
    return np.append(values, 0.0)[members].sum(axis=1)


def taken(starts: Int32, ids: Int32, rows: Sequence[int] | Int32) -> tuple[Int32, Int32]:
    """Some rows of a ragged array, as new starts and ids."""
    rows = np.asarray(rows, dtype=np.intp)
    sizes = starts[rows + 1] - starts[rows]
    new = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    where = np.arange(new[-1]) + np.repeat(starts[rows] - new[:-1], sizes)
    return new, ids[where]


def _tree_vectors(arcs: ArcLists) -> Vectors:
    starts, ids, counts = [0], [], []
    for row in arcs.members:
        found, times = np.unique(taken(arcs.starts, arcs.ids, row)[1], return_counts=True)
        ids.append(found)
        counts.append(times)
        starts.append(starts[-1] + len(found))
    return Vectors(
        np.array(starts, dtype=np.int32),
        np.concatenate(ids).astype(np.int32),
        np.concatenate(counts).astype(np.int32),
        np.arange(len(arcs.members), dtype=np.int32)[:, None],
    )
