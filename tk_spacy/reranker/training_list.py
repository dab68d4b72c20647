"""A candidate list as Algorithm 1 meets it, again and again, and all lists of a training."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.encoder import EncodedList, PartLists
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.schema import EncodedSentence
from tk_spacy.kernels.support_log import Mark
from tk_spacy.utils.array_store import ArrayStore
from tk_spacy.utils.array_types import Float64


@dataclass(slots=True, eq=False)
class Remembered:
    """What Algorithm 1 remembers of a list between visits.

    sizes: parts of each kernel part type.
    kernel_scores: for each kernel part type float64[p], f-hat as of `mark`.
    """

    sizes: tuple[int, ...]
    mark: Mark = field(default_factory=lambda: Mark(0, (), 0))
    kernel_scores: tuple[Float64, ...] = field(default=())

    def reset(self) -> None:
        """Forget all scores, for a new training."""
        self.mark = Mark(0, (0,) * len(self.sizes), 0)
        self.kernel_scores = tuple(map(np.zeros, self.sizes))


@dataclass(slots=True, eq=False)
class TrainingList:
    """One training list.

    loss: float64[k], of each candidate against the oracle candidate.  oracle: y_1.
    remembered: of the list, by whoever asks for it.
    """

    index: int
    encoded: EncodedList
    loss: Float64
    oracle: int
    remembered: Remembered

    @property
    def mark(self) -> Mark:
        """As of which the kernel scores are."""
        return self.remembered.mark

    @mark.setter
    def mark(self, mark: Mark) -> None:
        self.remembered.mark = mark

    @property
    def kernel_scores(self) -> tuple[Float64, ...]:
        """For each kernel part type float64[p], as of `mark`."""
        return self.remembered.kernel_scores


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is asked of lists without opening them."""

    index: int
    candidates: int
    words: int


class TrainingLists(Sequence[TrainingList]):
    """The lists of a training, whose arrays are in a file where they are many.

    list_features: what the columns of `encoded.listed` are, None without any.
    Each is made when it is asked for; what is remembered of it outlives it.
    """

    def __init__(self, list_features: ListFeatures | None = None) -> None:
        self.list_features = list_features
        self._store = ArrayStore()
        self._facts: list[_Facts] = []
        self._remembered: list[Remembered] = []
        self._oracles: list[int] = []
        self._parts: tuple[list[int], int] | None = None
        self._places: Sequence[int] | None = None

    def append(self, index: int, encoded: EncodedList, *, loss: Float64, oracle: int) -> None:
        """One more list.  index: its number among all.  The rest: see `TrainingList`.

        All must be of one encoder.
        """
        parts = (*encoded.kernel, *encoded.manual)
        if self._parts is None:
            # One object where the kernel and manual features read the same.
            different = [i for i, own in enumerate(parts) if own not in parts[:i]]
            self._parts = [different.index(parts.index(own)) for own in parts], len(encoded.kernel)
        numbers, _ = self._parts
        written = [parts[numbers.index(i)] for i in range(max(numbers, default=-1) + 1)]
        listed = np.zeros((0, 0)) if encoded.listed is None else encoded.listed
        arrays: list[NDArray[Any]] = [encoded.sentence.nodes, encoded.sentence.fields, listed, loss]
        for own in written:
            arrays += [own.rows, own.slots, own.starts, own.members]
        self._store.append(arrays)
        self._facts.append(_Facts(index, encoded.n_candidates, len(encoded.sentence)))
        self._remembered.append(Remembered(tuple(len(own.rows) for own in encoded.kernel)))
        self._oracles.append(oracle)

    def without(self, indices: Collection[int]) -> TrainingLists:
        """The same lists but for some, by their numbers among all; they are not copied."""
        found = TrainingLists(self.list_features)
        for name in ("_store", "_facts", "_remembered", "_oracles", "_parts"):
            setattr(found, name, getattr(self, name))
        found._places = [i for i in self._numbers() if self._facts[i].index not in indices]
        return found

    def __len__(self) -> int:
        return len(self._numbers())

    @overload
    def __getitem__(self, place: int) -> TrainingList: ...
    @overload
    def __getitem__(self, place: slice) -> list[TrainingList]: ...
    def __getitem__(self, place: int | slice) -> TrainingList | list[TrainingList]:
        numbers = self._numbers()[place]
        if isinstance(numbers, int):
            return self._opened(numbers)
        return [self._opened(i) for i in numbers]

    @property
    def remembered(self) -> Iterator[Remembered]:
        """What is remembered of each."""
        return (self._remembered[i] for i in self._numbers())

    @property
    def mean_length(self) -> float:
        """Words of a sentence."""
        return float(np.mean([self._facts[i].words for i in self._numbers()]))

    @property
    def has_choice(self) -> bool:
        """Whether a list has more than one candidate."""
        return any(self._facts[i].candidates > 1 for i in self._numbers())

    def _numbers(self) -> Sequence[int]:
        return range(len(self._facts)) if self._places is None else self._places

    def _opened(self, number: int) -> TrainingList:
        assert self._parts is not None  # there is a list
        nodes, fields, listed, loss, *arrays = self._store[number]
        numbers, n_kernel = self._parts
        written = [PartLists(*arrays[i : i + 4]) for i in range(0, len(arrays), 4)]
        parts = tuple(written[i] for i in numbers)
        facts = self._facts[number]
        return TrainingList(
            index=facts.index,
            encoded=EncodedList(
                sentence=EncodedSentence(nodes, fields),
                kernel=parts[:n_kernel],
                manual=parts[n_kernel:],
                n_candidates=facts.candidates,
                listed=None if self.list_features is None else listed,
            ),
            loss=loss,
            oracle=self._oracles[number],
            remembered=self._remembered[number],
        )
