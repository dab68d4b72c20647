"""Selected features with their weights: a linear model that scores candidate lists.

Source: Qian and Liu 2015, section 6.1.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.selection.basic import ArcLists, BasicFeatures
from tk_spacy.selection.corpus import MAX_FEATURES, Corpus
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.selection.templates import FeatureNames, check_keys
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int64
from tk_spacy.utils.serialization import META, reading
from tk_spacy.utils.stored_values import shown, stored_entry

TREES, LABELLED = "trees", "labelled"
MOST_WEIGHT = 1e24
"""Of a stored feature; sums of so many of them are finite numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class SelectedFeatures:
    """Patterns of basic features, each with a weight; a tree's score is the sum over those it has.

    basic: what the patterns consist of.  table: the patterns, closed under prefixes.  weights:
    float64[p], kept to float32 precision, in which they are stored.
    """

    basic: BasicFeatures
    table: PatternTable
    weights: Float64
    _placed: Float64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_placed", self.table.placed(self.weights))

    @classmethod
    def make(cls, basic: BasicFeatures, table: PatternTable, weights: Float64) -> SelectedFeatures:
        """Without the patterns that have no weight, and the basic features that none has.

        Raises ValueError for another number of weights than patterns.
        """
        if len(weights) != len(table):
            raise ValueError(f"{len(weights)} weights for {len(table)} patterns")
        parents, steps = table.parents, table.steps
        values = np.asarray(weights, dtype=np.float32).astype(np.float64)
        keep = values != 0
        for node in range(len(keep) - 1, -1, -1):  # what they grow from
            if keep[node] and parents[node] >= 0:
                keep[parents[node]] = True
        numbers = np.cumsum(keep) - 1
        parents, steps, values = parents[keep], steps[keep], values[keep]
        # The order of the features stays, and with it that of the patterns' steps.
        features, new = np.unique(steps % MAX_FEATURES, return_inverse=True)
        return cls(
            BasicFeatures(basic.schema, basic.keys[features], basic.labelled),
            PatternTable(
                np.where(parents < 0, -1, numbers[parents]),
                steps - steps % MAX_FEATURES + new,
                trees=table.trees,
            ),
            values,
        )

    def __len__(self) -> int:
        """The number of patterns with a weight."""
        return int(np.count_nonzero(self.weights))

    @property
    def schema(self) -> Schema:
        """Properties and values."""
        return self.basic.schema

    def encode(self, sentence: Sentence, candidates: CandidateList) -> ArcLists:
        """What `scores` reads of a sentence and its candidates."""
        return self.basic.encode(sentence, candidates)

    def encode_all(self, pairs: Sequence[tuple[Sentence, CandidateList]]) -> list[ArcLists]:
        """As `encode`, for several sentences in one go."""
        return [self.basic.encode(*pair) for pair in pairs]

    def scores(self, encoded: Sequence[ArcLists], *, n_threads: int | None = None) -> list[Float64]:
        """The score of every candidate of some lists: float64[k] for each.

        Comparable within a list only: what all its candidates have is left out.  The same to the
        last bit for any number of threads, and whatever else is in the batch.
        """
        corpus = Corpus(encoded, len(self.basic), trees=self.table.trees)
        return self.table.placed_scores(corpus, self._placed, n_threads=n_threads)

    # For readers

    def listed(self) -> Iterator[tuple[str, float]]:
        """Each pattern in words and its weight.

        The features of one arc are joined by "+", the values of a feature by "&"; in the space of
        trees each arc stands in brackets, with the arcs below it.
        """
        for node, name in self.names_of(np.flatnonzero(self.weights)).items():
            yield name, float(self.weights[node])

    def names_of(self, nodes: NDArray[np.intp]) -> dict[int, str]:
        """The patterns of these numbers in words."""
        words = self.basic.names()
        steps, parents = self.table.steps.tolist(), self.table.parents.tolist()
        return {
            node: _spelled(node, parents, steps, words, trees=self.table.trees)
            for node in nodes.tolist()
        }

    def n_templates(self) -> int:
        """The number of different templates: patterns without the values of their features."""
        words = [FeatureNames.template(key) for key in self.basic.keys.tolist()]
        ids = {word: i for i, word in enumerate(dict.fromkeys(words))}
        of_features = np.array([ids[word] for word in words], dtype=np.int64)
        plain = self.table.steps // MAX_FEATURES * len(ids)
        plain += of_features[self.table.steps % MAX_FEATURES]
        # Features of one arc stand in the order of their numbers, which says nothing of templates.
        paths: dict[tuple[int, ...], int] = {}
        known: list[tuple[int, ...]] = []
        of_nodes = np.empty(len(plain), dtype=np.int64)
        for node, (parent, step) in enumerate(
            zip(self.table.parents.tolist(), plain.tolist(), strict=True)
        ):
            path = (*(known[of_nodes[parent]] if parent >= 0 else ()), step)
            if not self.table.trees:
                path = tuple(sorted(path))
            if path not in paths:
                paths[path] = len(known)
                known.append(path)
            of_nodes[node] = paths[path]
        return len(np.unique(of_nodes[self.weights != 0]))

    # Storage

    def to_dict(self) -> dict[str, Any]:
        """What meta.json says of it."""
        return {
            TREES: self.table.trees,
            LABELLED: self.basic.labelled,
            "features": len(self),
            "basic_features": len(self.basic),
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays by name, for an .npz file."""
        return {
            "keys": self.basic.keys,
            "parents": self.table.parents.astype(np.int32),
            "steps": self.table.steps.astype(np.uint32),
            "weights": self.weights.astype(np.float32),
        }

    @classmethod
    def from_stored(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], schema: Schema
    ) -> SelectedFeatures:
        """The inverse of `to_dict` and `to_arrays`.

        Raises KeyError where something is missing, ValueError where it does not fit together.
        """
        with reading(META):
            trees, labelled = (stored_entry(data, name, "explicit") for name in (TREES, LABELLED))
            if type(trees) is not bool or type(labelled) is not bool:
                raise ValueError(
                    f"trees {shown(trees)} and labelled {shown(labelled)}, expected true or false"
                )
        for name, dtype in (
            ("keys", np.uint64), ("parents", np.int32), ("steps", np.uint32),
            ("weights", np.float32),
        ):  # fmt: skip
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"{name} are {arrays[name].dtype}, expected {np.dtype(dtype)}[_]")
        keys, weights = arrays["keys"], arrays["weights"].astype(np.float64)
        steps: Int64 = arrays["steps"].astype(np.int64)
        if len(weights) != len(steps):
            raise ValueError(f"{len(weights)} weights for {len(steps)} patterns")
        if not (np.abs(weights) < MOST_WEIGHT).all():
            raise ValueError(f"a weight is no number, or beyond {MOST_WEIGHT:g}")
        if len(steps) and (steps % MAX_FEATURES).max() >= len(keys):
            raise ValueError("a pattern has a feature that is not there")
        check_keys(keys, schema, labelled=labelled)
        table = PatternTable(arrays["parents"].astype(np.int64), steps, trees=trees)
        _check_growth(table)
        model = cls(BasicFeatures(schema, keys, labelled), table, weights)
        with reading(META):
            for name, there in (("features", len(model)), ("basic_features", len(keys))):
                if (said := stored_entry(data, name, "explicit")) != there:
                    raise ValueError(f"{name} are said to be {shown(said)}, there are {there}")
        return model


def _check_growth(table: PatternTable) -> None:
    """Raises ValueError for patterns that are never grown, and so never found: see patterns.pyx."""
    parents = table.parents
    depths, features = np.divmod(table.steps, MAX_FEATURES)
    first = parents < 0
    above = np.where(first, 0, parents)
    if table.trees:
        fits = depths <= np.where(first, 0, depths[above] + 1)
    else:
        fits = (depths == 0) & (first | (features > features[above]))
    if not fits.all():
        raise ValueError(f"pattern {fits.argmin()} cannot be grown from the one that it extends")


def _spelled(
    node: int, parents: Sequence[int], steps: Sequence[int], words: Sequence[str], *, trees: bool
) -> str:
    path = []
    while node >= 0:
        path.append(divmod(steps[node], MAX_FEATURES))
        node = parents[node]
    path.reverse()
    if not trees:
        return " + ".join(words[feature] for _, feature in path)
    text, open_arcs = "", 0
    for depth, feature in path:
        # What hangs on the word at a depth closes the arcs that are deeper.
        text += "]" * (open_arcs - depth) + (" [" if text else "[") + words[feature]
        open_arcs = depth + 1
    return text + "]" * open_arcs
