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

from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.kbest.sources import ParserSource, Remembering
from tk_spacy.parallel.side_by_side import answers
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.tree_rows import group_equal

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
        if len(places) == 1:
            return list(proposed[places[0]])
        each = zip(*(proposed[i] for i in places), strict=True)
        lists = [merge(own, k=k) for own in each]
        scores = self._scores(sentences, lists, places)
        return [
            trees.with_scores(np.where(np.isnan(trees.scores), own, trees.scores))
            for trees, own in zip(lists, scores, strict=True)
        ]

    def forget(self) -> None:
        """Let sources forget sentences, so that the next ones get what they would get alone."""
        for source in self.sources:
            if isinstance(source, Remembering):
                source.forget()

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[np.ndarray]:
        """The scores of all parsers: float64[k, n_names] for each sentence."""
        return self._scores(sentences, lists, range(len(self.sources)))

    def _scores(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList], places: Sequence[int]
    ) -> list[np.ndarray]:
        questions = {i: partial(self.sources[i].score, sentences, lists) for i in places}
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


def _proposed(source: ParserSource, sentences: Sequence[Sentence], k: int) -> list[CandidateList]:
    return list(source.candidates(sentences, k=k))


def merge(lists: Sequence[CandidateList], *, k: int) -> CandidateList:
    """The union of one sentence's lists, cut to k trees by rank (see `MergedSource`).

    Scores that no list knows are NaN.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if any(trees.inventory is not lists[0].inventory for trees in lists):
        raise ValueError("lists must share one LabelInventory")
    heads = np.concatenate([trees.heads for trees in lists])
    labels = np.concatenate([trees.labels for trees in lists])
    starts = np.cumsum([0, *map(len, lists)]).tolist()
    sources = [name for trees in lists for name in trees.sources]
    columns = np.cumsum([0, *(len(trees.sources) for trees in lists)]).tolist()
    scores = np.full((len(heads), len(sources)), np.nan)
    own: dict[str, int] = {}
    for i, trees in enumerate(lists):
        scores[starts[i] : starts[i + 1], columns[i] : columns[i + 1]] = trees.scores
        for name, row in {trees.sources[0]: trees.base, **trees.bases}.items():
            own[name] = starts[i] + row
    # A parser's own trees come first, whatever their scores, and of all the main parser's.
    main, first = own[sources[0]], set(own.values())
    ranked = sorted(
        (0 if starts[i] + row in first else row + 1, i, starts[i] + row != main, starts[i] + row)
        for i, trees in enumerate(lists)
        for row in range(len(trees))
    )
    group, _ = group_equal(heads, labels)
    kept = list(dict.fromkeys(int(group[row]) for *_, row in ranked))[:k]
    rows = np.flatnonzero(np.isin(group, kept))
    place = {int(group[row]): i for i, row in reversed(list(enumerate(rows.tolist())))}
    del own[sources[0]]
    found = {name: place.get(int(group[row])) for name, row in own.items()}
    return CandidateList.from_arrays(
        heads[rows],
        labels[rows],
        scores[rows],
        inventory=lists[0].inventory,
        sources=sources,
        base=place[int(group[main])],
        bases={name: row for name, row in found.items() if row is not None},
    )
