"""One candidate list from several parsers.

Each parser proposes its k best trees, the union is cut to k again, and every parser scores the
trees of the others.  So each list has the trees that any parser believes in, and a score of each:
where parsers that differ agree, a tree is much more often right than any of them knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from tk_spacy.kbest.candidates import CandidateList, in_batches, joined, lengths_of, rescored
from tk_spacy.kbest.list_arrays import arrange_lists
from tk_spacy.kbest.sources import ParserSource, Remembering
from tk_spacy.parallel.side_by_side import answers
from tk_spacy.treebank.conllu import Sentence

T = TypeVar("T")
Proposed = Mapping[int, Sequence[CandidateList]]
"""Lists of a batch of sentences, by the places of the sources that proposed them."""


class MergedSource:
    """The candidates of several parsers in one list of at most k trees.

    sources: opened parsers that share one LabelInventory.  The first's score gives the order, and
        its own tree is the `base`; the own trees of the others are the `bases`.
    n_threads: None for all cores; with more than one the sources work side by side, which changes
        nothing in the lists.
    seconds: wall time that each source has taken so far, beside the others.

    The union is cut by rank: first the own tree of each parser, then the next best of each, and so
    on in turn, so that every parser's best trees survive whatever the scales of the scores.  (With
    two parsers that share half of their trees, a list of 25 holds the best 17 of each.)
    """

    def __init__(self, sources: Sequence[ParserSource], *, n_threads: int | None = None) -> None:
        if not sources:
            raise ValueError("no source to merge")
        names = [name for source in sources for name in source.names]
        if len(set(names)) < len(names):
            raise ValueError(f"sources must have different names, got {names}")
        self.sources = tuple(sources)
        for source in self.sources:
            source.in_company = len(self.sources) > 1
        self.names = tuple(names)
        self._n_threads = n_threads
        self.seconds = [0.0] * len(self.sources)

    def candidates(self, sentences: Iterable[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list for each sentence; its trees, if any, are not looked at."""
        # The lists of a batch are in memory together.
        for batch in in_batches(sentences, lambda sentence: k * len(sentence)):
            yield from self.joined(batch, self.proposed(batch, k=k), k=k)

    def proposed(
        self, sentences: Sequence[Sentence], *, k: int, places: Sequence[int] | None = None
    ) -> Proposed:
        """The lists of the sources at some places, by default all: one for each sentence."""
        asked = range(len(self.sources)) if places is None else places
        questions = {i: partial(_proposed, self.sources[i], sentences, k) for i in asked}
        return self._asked(questions)

    def joined(
        self, sentences: Sequence[Sentence], proposed: Proposed, *, k: int
    ) -> list[CandidateList]:
        """What sources have proposed as one list each, with the scores of these sources.

        proposed: of some sources or all.
        """
        places = sorted(proposed)
        if len(places) == 1 or not sentences:
            return list(proposed[places[0]])
        each = list(zip(*(proposed[i] for i in places), strict=True))
        return self._completed(sentences, merge_lists(each, k=k), places)

    def forget(self) -> None:
        """Let sources forget sentences, so that the next ones get what they would get alone."""
        for source in self.sources:
            if isinstance(source, Remembering):
                source.forget()

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        """The scores of all parsers: float64[k, n_names] for each sentence."""
        questions = {
            place: partial(source.score, sentences, lists)
            for place, source in enumerate(self.sources)
        }
        columns = self._asked(questions).values()
        return [np.concatenate(rows, axis=1) for rows in zip(*columns, strict=True)]

    def _asked(self, questions: Mapping[int, Callable[[], T]]) -> dict[int, T]:
        """The answers of sources, by their places, at the same time where threads allow it."""

        def timed(place: int) -> T:
            started = time.perf_counter()
            answer = questions[place]()
            self.seconds[place] += time.perf_counter() - started
            return answer

        found = answers([partial(timed, i) for i in questions], n_threads=self._n_threads)
        return dict(zip(questions, found, strict=True))

    def _completed(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList], places: Sequence[int]
    ) -> list[CandidateList]:
        """The lists with the scores of some sources that they lack."""
        counts = [len(trees.heads) for trees in lists]
        questions = {i: partial(self.sources[i].score, sentences, lists) for i in places}
        columns = self._asked(questions).values()
        if any([len(scores) for scores in of_source] != counts for of_source in columns):
            raise ValueError("a source has scored other trees than it was asked for")
        own = np.concatenate([np.concatenate(of_source) for of_source in columns], axis=1)
        known = np.concatenate([trees.scores for trees in lists])
        return rescored(lists, np.where(np.isnan(known), own, known))


def _proposed(source: ParserSource, sentences: Sequence[Sentence], k: int) -> list[CandidateList]:
    return list(source.candidates(sentences, k=k))


def merge(lists: Sequence[CandidateList], *, k: int) -> CandidateList:
    """The union of one sentence's lists, cut to k trees by rank (see `MergedSource`).

    Scores that no list knows are NaN.
    """
    return merge_lists([lists], k=k)[0]


def merge_lists(proposed: Sequence[Sequence[CandidateList]], *, k: int) -> list[CandidateList]:
    """As `merge`, for the lists of each of several sentences.

    Raises ValueError for lists of several inventories or of other words, CandidateError where one
    that was made by hand holds no tree.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not proposed:
        return []
    names = [trees.sources for trees in proposed[0]]
    if any([trees.sources for trees in lists] != names for lists in proposed):
        return [merge(lists, k=k) for lists in proposed]
    parts = [trees for lists in proposed for trees in lists]
    inventory, lengths = parts[0].inventory, lengths_of(parts).reshape(len(proposed), -1)
    if any(trees.inventory is not inventory for trees in parts):
        raise ValueError("lists must share one LabelInventory")
    if (lengths != lengths[:, :1]).any():
        raise ValueError("lists of one sentence have different numbers of words")
    sources = tuple(name for of_part in names for name in of_part)
    own = [_own_rows(lists) for lists in proposed]
    made = arrange_lists(
        *joined(parts),
        np.concatenate([trees.scores.ravel() for trees in parts]),
        np.cumsum([0, *map(len, parts)], dtype=np.intp),
        lengths[:, 0].copy(),
        columns=[len(of_part) for of_part in names],
        own=[list(rows.values()) for rows in own],
        n_labels=len(inventory),
        k=k,
        in_turn=True,
    )
    if made is None:
        for trees in parts:
            trees.check()
        raise ValueError("no list without trees and sources can be merged")
    return [
        CandidateList.of_arranged(item, inventory, sources, list(rows)[1:])
        for item, rows in zip(made, own, strict=True)
    ]


def _own_rows(lists: Sequence[CandidateList]) -> dict[str, int]:
    """The own trees of the sources among those of all their lists, the main one first."""
    rows: dict[str, int] = {}
    start = 0
    for trees in lists:
        rows[trees.sources[0]] = start + trees.base
        for name, row in trees.bases.items():
            rows[name] = start + row
        start += len(trees.heads)
    return rows
