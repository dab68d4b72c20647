"""The arc combiner as a model: learns from lists, adds its score and its best trees to lists.

Several parsers propose trees and score them all; for each arc the combiner weighs what they say,
by relation and part of speech, into a probability.  The k best spanning trees of these arcs, which
need not be in any parser's list, become candidates, and the log-probability of a tree becomes a
score of its own, which the reranker sees beside those of the parsers.

Source of the idea: Sagae and Lavie 2006 (reparsing with votes), Surdeanu and Manning 2010 (learned
weights by part of speech and label gave them little over votes); here the shares of whole lists
under several temperatures are learned from too, and all of it on jackknifed lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arc_features import BITS, ArcFeatures, ArcTable
from tk_spacy.ensemble.combiner.arcs import ListArcs
from tk_spacy.ensemble.combiner.learning import arc_log_probabilities, learn_arcs
from tk_spacy.ensemble.combiner.list_trees import extended_rows
from tk_spacy.ensemble.combiner.reparsing import best_trees
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.kbest.long_sentences import WHOLE_WORDS
from tk_spacy.kbest.passes import in_passes
from tk_spacy.kbest.stored_lists import StoredLists
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_store import ArrayStore
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.stored_values import stored_entry, stored_list, stored_number

COMBINER = "combiner"
"""The name of its score in lists."""
EPOCHS = 12
RATE, HASHED_RATE = 0.05, 0.03
FOLDS = 5
ADDED_TREES = 10
"""Trees that the combiner adds to a list, at most."""
COLUMNS, ROWS = 8, 1 << 16
"""Of the arcs' features, that are worked on at a time."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArcCombiner:
    """A trained combiner.

    features: as fitted.  weights: float64[d] of the dense ones.  hashed: float64[2 ** BITS], kept
    to float32 precision, in which it is stored.
    """

    features: ArcFeatures
    weights: Float64
    hashed: Float64

    def __post_init__(self) -> None:
        if self.weights.shape != (self.features.width,):
            raise ValueError(
                f"weights have shape {self.weights.shape}, expected ({self.features.width},)"
            )
        object.__setattr__(self, "hashed", self.hashed.astype(np.float32).astype(np.float64))

    @classmethod
    def fit(
        cls, gold: Sequence[Sentence], lists: Sequence[CandidateList], *, epochs: int = EPOCHS
    ) -> ArcCombiner:
        """Learn from gold trees and their lists, aligned, of parsers that did not see them."""
        return cls._learn(*_lessons(gold, lists), range(len(gold)), epochs=epochs)

    @classmethod
    def fit_apart(
        cls,
        gold: Sequence[Sentence],
        lists: Sequence[CandidateList],
        *,
        folds: int = FOLDS,
        epochs: int = EPOCHS,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[ArcCombiner, StoredLists]:
        """As `fit`, and the same lists extended, each by a combiner that did not learn from it.

        folds: consecutive parts of the lists that are held out in turn.
        """
        report = progress or (lambda done, total: None)
        steps = min(folds, len(lists)) + 1
        features, lessons = _lessons(gold, lists)
        extended = StoredLists()
        for apart, held in cls._apart(
            features, lessons, folds=folds, epochs=epochs,
            progress=lambda done, _: report(done, steps),
        ):  # fmt: skip
            given = ((gold[i], lists[i]) for i in held)
            for some in in_batches(given, lambda pair: pair[1].heads.size):
                extended.extend(apart.extended_all(some))
        combiner = cls._learn(features, lessons, range(len(lists)), epochs=epochs)
        report(steps, steps)
        return combiner, extended

    @classmethod
    def judge_apart(
        cls,
        gold: Sequence[Sentence],
        lists: Sequence[CandidateList],
        *,
        folds: int = FOLDS,
        epochs: int = EPOCHS,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[tuple[ListArcs, Float64]]:
        """The arcs of each list with their log-probabilities, by a combiner without that list.

        The other parameters are those of `fit_apart`.
        """
        features, lessons = _lessons(gold, lists)
        for apart, held in cls._apart(
            features, lessons, folds=folds, epochs=epochs, progress=progress
        ):
            given = ((gold[i], lists[i]) for i in held)
            for some in in_batches(given, lambda pair: pair[1].heads.size):
                for table in features.encode_all(some):
                    yield table.arcs, apart._log_probabilities([table])

    @classmethod
    def _apart(
        cls,
        features: ArcFeatures,
        lessons: ArrayStore,
        *,
        folds: int,
        epochs: int,
        progress: Callable[[int, int], None] | None,
    ) -> Iterator[tuple[ArcCombiner, list[int]]]:
        """The numbers of all lists in order, with combiners that did not learn from them."""
        if len(lessons) < 2:
            raise UserError("training needs at least two candidate lists")
        parts = np.array_split(np.arange(len(lessons)), min(folds, len(lessons)))
        for number, held in enumerate(parts, start=1):
            away = set(held.tolist())
            rest = [i for i in range(len(lessons)) if i not in away]
            yield cls._learn(features, lessons, rest, epochs=epochs), held.tolist()
            if progress is not None:
                progress(number, len(parts))

    @classmethod
    def _learn(
        cls,
        features: ArcFeatures,
        lessons: ArrayStore,
        which: Iterable[int],
        *,
        epochs: int,
    ) -> ArcCombiner:
        """lessons: see `_lessons`; which: of them it learns from."""
        chosen = [lessons[i] for i in which]
        dense = np.concatenate([item[0] for item in chosen])
        if not len(dense):  # no word has a choice, as in sentences of one word
            return cls(
                features=features,
                weights=np.zeros(features.width),
                hashed=np.zeros(1 << BITS),
            )
        factors = _normalize(dense)
        offsets = np.cumsum([0, *(len(item[0]) for item in chosen)])
        weights, hashed = learn_arcs(
            dense,
            np.concatenate([hashed for _, hashed, _, _ in chosen]),
            np.concatenate([[0], *(counts for _, _, counts, _ in chosen)])
            .cumsum()
            .astype(np.int32),
            np.concatenate(
                [gold + start for (_, _, _, gold), start in zip(chosen, offsets[:-1], strict=True)]
            ).astype(np.int32),
            1 << BITS,
            epochs,
            RATE,
            HASHED_RATE,
        )
        return cls(features=features, weights=weights * factors, hashed=hashed)

    def extended(
        self, sentence: Sentence, candidates: CandidateList, *, added: int = ADDED_TREES
    ) -> CandidateList:
        """The list with the combiner's best trees and, as last source, its score of every tree.

        added: trees of its own, at most.  The order stays that of the main source.
        """
        return self.extended_all([(sentence, candidates)], added=added)[0]

    def extended_all(
        self,
        pairs: Sequence[tuple[Sentence, CandidateList]],
        *,
        added: int = ADDED_TREES,
    ) -> list[CandidateList]:
        """As `extended`, of several lists in one go."""
        found: list[CandidateList] = []
        for some in in_passes(pairs, [candidates for _, candidates in pairs]):
            lists = [candidates for _, candidates in some]
            found += self._extended(self.features.encode_all(some), lists, added)
        return found

    def _extended(
        self, tables: Sequence[ArcTable], lists: Sequence[CandidateList], added: int
    ) -> list[CandidateList]:
        scores = self._log_probabilities(tables)
        stops = np.cumsum([len(table.arcs) for table in tables]).tolist()
        rows = extended_rows(
            [
                (arcs.heads, arcs.labels, arcs.with_head, arcs.of_tree)
                for arcs in (table.arcs for table in tables)
            ],
            scores,
            [(item.heads, item.labels, item.scores) for item in lists],
            [
                best_trees(table.arcs, scores[stop - len(table.arcs) : stop], added)
                if item.n_words > WHOLE_WORDS
                else None
                for table, item, stop in zip(tables, lists, stops, strict=True)
            ],
            added,
        )
        return [
            CandidateList.from_arrays(
                *own,
                inventory=item.inventory,
                sources=(*item.sources, COMBINER),
                base=item.base,
                bases=item.bases,
            )
            for own, item in zip(rows, lists, strict=True)
        ]

    def arc_scores(
        self, sentence: Sentence, candidates: CandidateList, heads: Int32, labels: Int32
    ) -> Float64:
        """The log-probability of each arc of some trees: float64[t, n]; a tree's sum is its score.

        candidates: a list as `extended` takes it.  heads, labels: int32[t, n], trees of its arcs,
        such as those that `extended` adds.  Raises ValueError for an arc that it does not have.
        """
        table = self.features.encode(sentence, candidates)
        arcs, scores = table.arcs, self._log_probabilities([table])
        n = heads.shape[1]
        n_labels = int(max(arcs.labels.max(), labels.max())) + 1

        def keys(words: Any, heads: Int32, labels: Int32) -> NDArray[np.int64]:
            return (words * (n + 1) + heads.astype(np.int64)) * n_labels + labels

        known = keys(arcs.words.astype(np.int64), arcs.heads, arcs.labels)  # ascending
        asked = keys(np.arange(n), heads, labels)
        found = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        if (known[found] != asked).any():
            raise ValueError("a tree has an arc that no candidate of the list has")
        return scores[found]

    def _log_probabilities(self, tables: Sequence[ArcTable]) -> Float64:
        """Of the arcs of some lists, one list after the other."""
        if len(tables) == 1:
            return arc_log_probabilities(
                tables[0].dense, tables[0].hashed, tables[0].arcs.starts, self.weights, self.hashed
            )
        starts = np.concatenate([[0], *(np.diff(table.arcs.starts) for table in tables)])
        return arc_log_probabilities(
            np.concatenate([table.dense for table in tables]),
            np.concatenate([table.hashed for table in tables]),
            starts.cumsum().astype(np.int32),
            self.weights,
            self.hashed,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values: all but the hashed weights."""
        return {"features": self.features.to_dict(), "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], hashed: Float64) -> ArcCombiner:
        """The inverse of `to_dict`.  Raises ValueError for what is no such thing."""
        features = ArcFeatures.from_dict(stored_entry(data, "features", "combiner"))
        weights = [
            stored_number(weight, "a weight of combiner")
            for weight in stored_list(stored_entry(data, "weights", "combiner"), "combiner.weights")
        ]
        if len(weights) != features.width:
            raise ValueError(
                f"combiner.weights are {len(weights)} for {features.width} features of arcs"
            )
        return cls(features=features, weights=np.array(weights, dtype=np.float64), hashed=hashed)


def _normalize(dense: NDArray[np.float32]) -> Float64:
    """Take the mean from each column of float32[m, d], and divide it by its spread, in place.

    Returns float64[d], what it was multiplied by: 0 where it never varies and so tells nothing.
    """
    width = dense.shape[1]
    means = dense.mean(axis=0, dtype=np.float64)
    # A few columns at a time, as numpy copies them as float64; never one, whose sum has another
    # order than the sums of several.
    columns = np.array_split(np.arange(width), -(-width // COLUMNS))
    deviations = np.concatenate(
        [dense[:, own[0] : own[-1] + 1].std(axis=0, dtype=np.float64) for own in columns]
    )
    factors = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 1e-6)
    for start in range(0, len(dense), ROWS):
        rows = dense[start : start + ROWS]
        rows[:] = (rows - means) * factors
    return factors


def _lessons(
    gold: Sequence[Sentence], lists: Sequence[CandidateList]
) -> tuple[ArcFeatures, ArrayStore]:
    """What is learnt from each list: the arcs of words where they compete with the right one.

    A record of each list: dense float32[m, d] and hashed int32[m, h], features of these arcs;
    counts int32[w], arcs of each such word; gold int32[w], the row of its right arc.
    """
    features = ArcFeatures.fit(lists)
    lessons = ArrayStore()
    given = zip(gold, lists, strict=True)
    for some in in_batches(given, lambda pair: pair[1].heads.size):
        for (sentence, candidates), table in zip(some, features.encode_all(some), strict=True):
            arcs = table.arcs
            labels = candidates.inventory.encode(sentence.deprels, add=False)
            right = (arcs.heads == sentence.heads[arcs.words]) & (arcs.labels == labels[arcs.words])
            counts = np.diff(arcs.starts)
            has_gold = np.zeros(len(counts), dtype=np.bool_)
            has_gold[arcs.words[right]] = True
            learned = (has_gold & (counts > 1))[arcs.words]
            rows = np.flatnonzero(learned)
            lessons.append(
                (
                    table.dense[rows],
                    table.hashed[rows],
                    counts[has_gold & (counts > 1)].astype(np.int32),
                    np.flatnonzero(right[rows]).astype(np.int32),
                )
            )
    return features, lessons
