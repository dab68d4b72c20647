"""Combinations mined from candidate lists, and new weights for listed ones.

Source: Qian and Liu 2015, as in this room's mining of basic features, over the slots of parts: a
part's basic features are (slot, property, value), a pattern takes at most one of each slot in their
order, and the patterns that have all slots which may not be skipped are the combinations that the
template kernel counts.  Others bound those that extend them, and never have a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tk_spacy.features.encoder import EncodedList
from tk_spacy.selection.combinations.model import CombinationModel, make_model
from tk_spacy.selection.combinations.slot_features import SlotFeatures
from tk_spacy.selection.combinations.slot_space import NOTHING, slot_of
from tk_spacy.selection.combinations.trie import patterns_of
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.selection.selecting import Iteration, MiningSettings, Selection, select_features
from tk_spacy.utils.array_types import Float64, Int64


def mine_combinations(
    features: SlotFeatures,
    encoded: Sequence[EncodedList],
    gold: Sequence[int],
    settings: MiningSettings,
    *,
    n_threads: int | None = None,
    progress: Callable[[int, Iteration], None] | None = None,
) -> tuple[CombinationModel, Selection]:
    """The combinations whose gradient is steep, with the weights of the L1-regularised model.

    encoded: candidate lists, see slot_features.encode_lists.  gold: the right candidate of each.
    settings: `trees` and `max_order` are not read: a combination has as many features as slots.
    Also returns what mining says of itself.
    """
    most = max((len(of_type) for of_type in features.space.types), default=1)
    selection = select_features(
        features.corpus(encoded), gold, replace(settings, trees=False, max_order=most),
        n_threads=n_threads, progress=progress,
    )  # fmt: skip
    return model_of(features, selection.table, selection.weights), selection


def model_of(features: SlotFeatures, table: PatternTable, weights: Float64) -> CombinationModel:
    """The model of the patterns that have a weight, the strongest of each part type first.

    table: of patterns over `features`.  weights: float64[p].
    Raises ValueError where an incomplete pattern has a weight.
    """
    nodes = np.flatnonzero(weights)
    nodes = nodes[np.argsort(-np.abs(weights[nodes]), kind="stable")]
    parents, steps = table.parents, table.steps.astype(np.int32)
    slots = slot_of(features.keys)
    rows = np.full((len(nodes), features.space.n_slots), NOTHING, dtype=np.int32)
    at, which = nodes, np.arange(len(nodes))
    while len(at):
        rows[which, slots[steps[at]]] = steps[at]
        at = parents[at]
        which, at = which[at >= 0], at[at >= 0]
    found = []
    for of_type in features.space.types:
        own = rows[:, of_type.first : of_type.first + len(of_type)]
        there = (own != NOTHING).any(axis=1)
        found.append((np.ascontiguousarray(own[there]), weights[nodes[there]]))
    return make_model(features.schema, features.space, features.keys, found)


def relearned(
    model: CombinationModel,
    encoded: Sequence[EncodedList],
    oracles: Sequence[int],
    *,
    iterations: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> CombinationModel:
    """The same combinations with the averaged weights of a perceptron on candidate lists.

    encoded: see CombinationModel.encode.  oracles: the candidate of each list that should win.
    """
    features = SlotFeatures(model.schema, model.space, model.keys)
    table, nodes = pattern_table(model)
    weights = train_linear(
        table, features.corpus(encoded), oracles, iterations=iterations, progress=progress
    )
    # A combination of nothing is in every part: patterns have none, and it is left without weight.
    new = np.where(nodes < 0, 0.0, weights[nodes]) if len(weights) else np.zeros(len(nodes))
    return model.with_weights(np.split(new, np.cumsum([len(t) for t in model.types])[:-1]))


def pattern_table(model: CombinationModel) -> tuple[PatternTable, Int64]:
    """A model's combinations as patterns, and the pattern of each, type after type."""
    rows = np.full((len(model), model.space.n_slots), NOTHING, dtype=np.int32)
    done = 0
    for of_type, listed in zip(model.space.types, model.types, strict=True):
        columns = slice(of_type.first, of_type.first + len(of_type))
        rows[done : done + len(listed), columns] = listed.features
        done += len(listed)
    parents, steps, nodes = patterns_of(rows, len(model.keys))
    return PatternTable(parents, steps, trees=False), nodes
