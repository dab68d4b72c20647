"""Slot combinations against their enumeration: expanded, scored, stored, mined and learnt anew."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reference import length_bin
from scoring_problems import random_problem
from test_hashed_kernel import trained
from test_learning import random_lists

from tk_spacy.features.schema import Schema
from tk_spacy.kernels.support import SupportParts
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.selection.combinations.expanding import expand, slot_form, space_of
from tk_spacy.selection.combinations.expansion import strongest
from tk_spacy.selection.combinations.learning import (
    mine_combinations,
    model_of,
    pattern_table,
    relearned,
)
from tk_spacy.selection.combinations.model import CombinationModel, Combinations, make_model
from tk_spacy.selection.combinations.slot_features import SlotFeatures, encode_lists
from tk_spacy.selection.combinations.slot_keys import slot_keys
from tk_spacy.selection.combinations.slot_space import NOTHING, SlotSpace, slot_of
from tk_spacy.selection.combinations.trie import CombinationTrie
from tk_spacy.selection.gradient_mining import mine, nothing_carried
from tk_spacy.selection.key_table import KeyTable
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.selection.selecting import MiningSettings
from tk_spacy.selection.shares import feature_shares

TYPES = ("arc", "sibling", "grandparent")
CASES = [
    ("arc", ()), ("arc", ("h",)), ("arc", ("node",)), ("sibling", ()), ("sibling", ("s",)),
    ("grandparent", ("g", "m")), ("grand-sibling", ()), ("tri-sibling", ("t",)),
]  # fmt: skip


def slots_of(part, nodes, of_type):
    """For each slot, nodes first, what a part has there: (number, value) pairs."""
    found = []
    for kind, column in zip(of_type.kinds.tolist(), of_type.columns.tolist(), strict=True):
        if kind:
            label, distance = part[column], part[column + 1]
            has = [(0, label)] if label else []
            has += [(1, distance), (2, length_bin(distance) + 1)] if distance else []
        else:
            has = [(p, value) for p, value in enumerate(nodes[part[column]]) if value]
        found.append([(int(a), int(b)) for a, b in has])
    return found


def enumerated(parts, nodes, of_type):
    """The complete combinations of each part, as tuples with None for a slot that is left out."""
    for part in parts.tolist():
        choices = slots_of(part, nodes, of_type)
        for slot, skip in enumerate(of_type.skips.tolist()):
            choices[slot] = choices[slot] + [None] * skip
        yield list(product(*choices))


def weighed(problem, of_type):
    """The weight of every combination of a support, summed in the order of its parts."""
    weights = {}
    every = enumerated(problem.support_parts, problem.support_nodes, of_type)
    for combinations, weight in zip(every, problem.weights, strict=True):
        for combination in combinations:
            weights[combination] = weights.get(combination, 0.0) + weight
    return {name: weight for name, weight in weights.items() if weight}


def read(features, keys, of_type):
    """Rows of feature numbers as the enumeration writes them."""
    rows = []
    for row in features.tolist():
        read_row = []
        for slot, number in enumerate(row):
            if number == NOTHING:
                read_row.append(None)
                continue
            key = int(keys[number])
            value = key & 0xFFFFFFFF
            assert (key >> 48) - 1 == of_type.first + slot
            read_row.append((key >> 32 & 0xFFFF, value - (1 << 32) if value >> 31 else value))
        rows.append(tuple(read_row))
    return rows


def problem_of(name, skip, *, seed=0, n_support=12):
    small = {"arc": 5, "sibling": 3, "grandparent": 3}.get(name, 2)
    return random_problem(
        seed, name=name, skip=skip, n_properties=small, n_support=n_support, n_parts=20, n_nodes=9,
        n_labels=3, longest=5,
    )  # fmt: skip


def searched(problem, **options):
    """What a search finds, read; and its weights."""
    support = problem.support()
    of_type = space_of(support).types[0]
    starts, keys = slot_keys(
        support.nodes, slot_form(support.types[problem.name].columns, slot_layout(problem.kind)),
        of_type.kinds, of_type.columns, 0,
    )  # fmt: skip
    known, ids = np.unique(keys, return_inverse=True)
    features, weights = strongest(
        starts, ids.astype(np.int32), slot_of(known), of_type.skips, problem.weights, **options
    )
    return features, known, weights, of_type


@pytest.mark.parametrize(("name", "skip"), CASES)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_complete_expansion_is_the_enumeration(name, skip, n_threads):
    problem = problem_of(name, skip)
    features, keys, weights, of_type = searched(problem, n_threads=n_threads)
    names = read(features, keys, of_type)
    assert len(names) > 100
    expected = weighed(problem, of_type)
    assert dict(zip(names, weights.tolist(), strict=True)) == expected
    assert len(names) == len(expected)
    assert (np.diff(np.abs(weights)) <= 0).all()


@pytest.mark.parametrize(("name", "skip"), CASES)
@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_the_strongest_ones_are_those_of_the_enumeration(name, skip, n_threads):
    problem = problem_of(name, skip, seed=1)
    # Weights of a few sizes: many combinations are equally strong.
    problem.weights = np.round(np.random.default_rng(2).normal(size=len(problem.weights)), 1)
    *_, of_type = searched(problem)
    expected = weighed(problem, of_type)
    strengths = np.sort(np.abs(list(expected.values())))[::-1]
    for most in (1, 7, 100, len(expected) - 1, len(expected) + 5):
        features, keys, weights, _ = searched(problem, most=most, n_threads=n_threads)
        names = read(features, keys, of_type)
        assert len(set(names)) == len(names) == min(most, len(expected))
        assert np.abs(weights).tolist() == strengths[:most].tolist()
        assert all(expected[name] == w for name, w in zip(names, weights.tolist(), strict=True))
        again = searched(problem, most=most, n_threads=5 - n_threads)
        assert (again[0] == features).all()
    for threshold in (strengths[3], strengths[len(strengths) // 2]):
        features, keys, weights, _ = searched(problem, threshold=threshold, n_threads=n_threads)
        assert dict(zip(read(features, keys, of_type), weights.tolist(), strict=True)) == {
            name: w for name, w in expected.items() if abs(w) >= threshold
        }


def test_bad_searches_are_refused():
    problem = problem_of("arc", ())
    with pytest.raises(ValueError, match="0 combinations, expected 1 at least"):
        searched(problem, most=0)
    with pytest.raises(ValueError, match=r"threshold is -1\.0"):
        searched(problem, threshold=-1.0)
    problem.weights = problem.weights.copy()
    problem.weights[3] = np.nan
    with pytest.raises(ValueError, match="weights are not finite"):
        searched(problem)
    with pytest.raises(ValueError, match="slots of features fall"):
        strongest(
            np.array([0, 1], np.int32), np.array([0], np.int32), np.array([1, 0], np.int32),
            np.array([0, 0], np.int32), np.ones(1),
        )  # fmt: skip


@pytest.mark.parametrize(("name", "skip"), CASES)
@pytest.mark.parametrize("most", [None, 300])
def test_a_trie_sums_what_a_part_holds(name, skip, most):
    problem = problem_of(name, skip, seed=3)
    features, keys, weights, of_type = searched(problem, most=most)
    table = KeyTable()
    table.add_all(keys)
    trie = CombinationTrie(features, weights, table, of_type)
    known = dict(zip(read(features, keys, of_type), weights.tolist(), strict=True))
    expected, scale = [], []
    for combinations in enumerated(problem.parts, problem.nodes, of_type):
        found = [known.get(c, 0.0) for c in combinations]
        expected.append(sum(found))
        scale.append(sum(map(abs, found)))
    halves = [problem.parts[:11], problem.parts[11:11], problem.parts[11:]]
    first = trie.scores([problem.nodes] * 3, halves, n_threads=1)
    assert [len(scores) for scores in first] == [11, 0, 9]
    assert (np.abs(np.concatenate(first) - expected) <= 1e-12 * np.array(scale)).all()
    if most is None:
        exact, scale = problem.expected()
        assert (np.abs(np.concatenate(first) - exact) <= 1e-12 * np.array(scale)).all()
    # The same bits for any threads, and whatever else is scored.
    for n_threads in (2, 3):
        again = trie.scores([problem.nodes] * 3, halves, n_threads=n_threads)
        assert np.concatenate(again).tobytes() == np.concatenate(first).tobytes()
    alone = [trie.scores([problem.nodes], [problem.parts[i : i + 1]])[0] for i in range(20)]
    assert np.concatenate(alone).tobytes() == np.concatenate(first).tobytes()


def few_parts(*, n_support=12, **options):
    """A small trained reranker of few support parts: what these hold can be written out."""
    reranker, pairs = trained(**options)
    types = {
        name: SupportParts(
            np.ascontiguousarray(parts.columns[:, :n_support]), parts.weights[:n_support],
            np.zeros((0, 3), dtype=np.int32), np.zeros(0),
        )
        for name, parts in reranker.support.types.items()
    }  # fmt: skip
    return replace(reranker, support=replace(reranker.support, types=types)), pairs


@pytest.fixture(scope="module")
def model_of_all():
    return few_parts(parts=TYPES, seed=3, n_support=5)


@pytest.mark.parametrize("skip", [(), ("node",)])
@pytest.mark.parametrize("parts", [("arc",), TYPES])
def test_a_complete_expansion_scores_as_the_exact_kernel(parts, skip):
    reranker, pairs = few_parts(parts=parts, skip=skip)
    model = expand(reranker.support, reranker.schema)
    exact = reranker.batch_scores(pairs)
    found = model.scores([model.encode(*pair) for pair in pairs])
    scale = max(np.abs(np.concatenate(exact)).max(), 1.0)
    assert np.allclose(np.concatenate(found), np.concatenate(exact), atol=2e-6 * scale)
    assert len(model) == sum(len(t) for t in model.types) > 1000


def test_the_strongest_of_all_types_are_a_part_of_the_whole(model_of_all):
    reranker, _ = model_of_all
    whole = dict(expand(reranker.support, reranker.schema).listed())
    model = expand(reranker.support, reranker.schema, most=500)
    listed = dict(model.listed())
    assert len(listed) == len(model) == 500
    assert listed.items() <= whole.items()
    weakest = min(map(abs, listed.values()))
    assert sum(abs(w) > weakest for w in whole.values()) < 500
    assert model.strongest(500) is model
    fewer = dict(model.strongest(30).listed())
    assert len(fewer) == 30
    assert fewer.items() <= listed.items()
    with pytest.raises(ValueError, match="0 combinations"):
        model.strongest(0)


@pytest.mark.parametrize("skip", [(), ("node",)])
def test_shares_of_features_sum_to_the_scores(skip):
    reranker, pairs = few_parts(parts=TYPES, skip=skip, seed=3, n_support=5)
    model = expand(reranker.support, reranker.schema, most=5000)
    weights = dict(model.listed())
    # With slots left out, too, each has a name of its own.
    assert len(weights) == len(model)
    for sentence, trees in pairs[:6]:
        rows = range(len(trees))
        shares = feature_shares(model, sentence, trees, rows)
        own = model.scores([model.encode(sentence, trees)])[0]
        for row in rows:
            assert math.fsum(shares[row].values()) == pytest.approx(own[row], abs=1e-9)
            for name, share in shares[row].items():
                assert share / weights[name] == pytest.approx(round(share / weights[name]))


def test_names_say_slot_property_and_value(model_of_all):
    reranker, _ = model_of_all
    model = expand(reranker.support, reranker.schema, most=3000)
    names = model.names()
    assert len(set(names)) == len(names) == len(model)
    columns = {reranker.schema.pos_column, "UPOS", "FORM", *reranker.schema.morph}
    for name in names:
        of_type, _, listed = name.partition(": ")
        assert of_type in model.space.names
        words = listed.split(" & ")
        slots = [word.split("-")[0] for word in words]
        assert {"h", "m"} <= set(slots)
        for word in words:
            slot, rest = word.split("-", 1)
            what, value = rest.split("=", 1)
            if slot.startswith("e"):
                assert what in ("label", "dist", "length")
                assert what != "label" or value in (*reranker.schema.labels, "BOUNDARY")
            else:
                assert what.split("|")[0].rstrip("+-1") in columns
            assert "<" not in value  # each value has a name


def test_a_model_survives_storage(model_of_all):
    reranker, pairs = model_of_all
    model = expand(reranker.support, reranker.schema, most=400)
    data, arrays = model.to_dict(), model.to_arrays()
    again = CombinationModel.from_stored(data, arrays, reranker.schema)
    assert list(again.listed()) == list(model.listed())
    encoded = [model.encode(*pair) for pair in pairs]
    for a, b in zip(model.scores(encoded), again.scores(encoded, n_threads=2), strict=True):
        assert a.tobytes() == b.tobytes()
    assert model.scores([]) == []


def changed(arrays, name, place, value):
    copy = arrays[name].copy()
    copy[place] = value
    return {**arrays, name: copy}


def test_a_broken_model_is_refused(model_of_all):
    reranker, _ = model_of_all
    model = expand(reranker.support, reranker.schema, most=400)
    data, arrays = model.to_dict(), model.to_arrays()
    keys = arrays["keys"]
    last = keys[-1]  # of an edge

    def refused(match, *, data=data, arrays=arrays):
        with pytest.raises(ValueError, match=match):
            CombinationModel.from_stored(data, arrays, reranker.schema)

    refused("keys is float64", arrays={**arrays, "keys": keys.astype(float)})
    refused("do not ascend", arrays=changed(arrays, "keys", 0, keys[1]))
    refused("slot is none of", arrays=changed(arrays, "keys", -1, np.uint64(2**64 - 1)))
    refused("property is none", arrays=changed(arrays, "keys", -1, last | np.uint64(999 << 32)))
    refused("value below 1", arrays=changed(arrays, "keys", -1, last | np.uint64(1 << 31)))
    refused("lacks slot h", arrays=changed(arrays, "arc.features", (0, 0), NOTHING))
    refused("another slot's feature", arrays=changed(arrays, "arc.features", (0, 1), 0))
    refused("names feature", arrays=changed(arrays, "arc.features", (0, 0), len(keys)))
    refused("names feature", arrays=changed(arrays, "arc.features", (0, 0), -2))
    refused("there twice", arrays=changed(arrays, "arc.features", 1, arrays["arc.features"][0]))
    refused("no number", arrays=changed(arrays, "arc.weights", 0, np.nan))
    refused("no number", arrays=changed(arrays, "arc.weights", 0, 1e30))
    refused("arc.weights is", arrays={**arrays, "arc.weights": arrays["arc.weights"][:-1]})
    refused("expected a table", data={**data, "skips": [1]})
    refused("expected a part type", data={**data, "skips": {"arcs": [0, 1, 0]}})
    refused("skips of arc", data={**data, "skips": {"arc": [0, 1]}})
    refused("skips of arc", data={**data, "skips": {"arc": [0, 2, 0]}})
    refused("skips of arc", data={**data, "skips": {"arc": [0, True, 0]}})
    refused("are said to be", data={**data, "combinations": {}})
    with pytest.raises(KeyError):
        CombinationModel.from_stored(data, {"keys": keys}, reranker.schema)


# Mining


def mined_lists(*, skip=(), seed=5, names=("arc", "sibling"), sentences=8, every=4):
    golds, lists = random_lists(seed, sentences=sentences, n=5)
    schema = Schema.fit(golds, labels=["x", "y"])
    space = SlotSpace.default(names, skip)
    encoded = encode_lists(schema, space, golds, lists)
    gold = [trees.oracle(sentence) for sentence, trees in zip(golds, lists, strict=True)]
    features = SlotFeatures.fit(schema, space, encoded)
    # A few of them, so that all that siblings hold can be written out.
    return replace(features, keys=features.keys[::every].copy()), encoded, gold


def grown(choices, skips, first):
    """What can be grown from a part slot by slot, the incomplete as well."""
    found = []
    for tail in range(len(choices)):
        options = [
            [None] * skip + [(first + slot, *pair) for pair in choices[slot]]
            for slot, skip in enumerate(skips[:tail])
        ]
        last = [(first + tail, *pair) for pair in choices[tail]]
        found += [tuple(x for x in c if x is not None) for c in product(*options, last)]
    return found


def counted(features, encoded, candidate, other):
    """How often each pattern occurs in a candidate's parts that another one lacks."""
    total, known = Counter(), set(spelled_keys(features))
    for parts, of_type in zip(encoded.kernel, features.space.types, strict=True):
        members = [
            set(parts.members[parts.starts[c] : parts.starts[c + 1]].tolist())
            for c in (candidate, other)
        ]
        for part in members[0] - members[1]:
            choices = [
                [pair for pair in choice if (slot, *pair) in known]
                for slot, choice in enumerate(
                    slots_of(parts.slots[part].tolist(), encoded.sentence.nodes, of_type),
                    start=of_type.first,
                )
            ]
            total.update(grown(choices, of_type.skips.tolist(), of_type.first))
    return total


def spelled_keys(features):
    """Each feature as (slot, property, value)."""
    for key in features.keys.tolist():
        value = key & 0xFFFFFFFF
        yield (key >> 48) - 1, key >> 32 & 0xFFFF, value - (1 << 32) if value >> 31 else value


def spelled(features, parents, steps):
    keys = list(spelled_keys(features))
    written = []
    for node in range(len(parents)):
        path, at = [], node
        while at >= 0:
            path.append(keys[int(steps[at])])
            at = int(parents[at])
        written.append(tuple(reversed(path)))
    return written


def is_complete(pattern, space):
    """Whether what a pattern lacks of its part type may be left out."""
    taken = {slot for slot, *_ in pattern}
    of_type = next(t for t in space.types if t.first <= pattern[0][0] < t.first + len(t))
    return all(skip or of_type.first + slot in taken for slot, skip in enumerate(of_type.skips))


@pytest.mark.parametrize("skip", [(), ("h",), ("node",)])
@pytest.mark.parametrize("threshold", [0, 2, 5.5])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_mined_combinations_are_those_of_an_enumeration(skip, threshold, n_threads):
    features, encoded, gold = mined_lists(skip=skip)
    corpus = features.corpus(encoded)
    rng = np.random.default_rng(1)
    worse = [int(rng.integers(item.n_candidates)) for item in encoded]
    found = mine(
        corpus, np.arange(len(encoded)), gold, worse, nothing_carried(), trees=False,
        threshold=threshold, contested=True, n_threads=n_threads,
    )  # fmt: skip
    plus, minus = Counter(), Counter()
    for item, a, b in zip(encoded, gold, worse, strict=True):
        plus += counted(features, item, a, b)
        minus += counted(features, item, b, a)
    kept = {}
    for parents, steps, weights, better, worst, survives in found:
        names = spelled(features, parents, steps)
        for i in np.flatnonzero(survives):
            assert names[i] not in kept
            kept[names[i]] = int(better[i]), int(worst[i]), weights[i]
    expected = {
        name: (plus[name], minus[name])
        for name in plus | minus
        if max(plus[name], minus[name]) > threshold
    }
    assert {name: value[:2] for name, value in kept.items()} == expected
    for name, (better, worst, weight) in kept.items():
        steep = max(abs(better - worst) - threshold, 0)
        if not is_complete(name, features.space):
            steep = 0
        assert weight == (steep if better > worst else -steep)
    assert any(weight for *_, weight in kept.values())


@pytest.mark.parametrize("pretraining", [0, 3])
def test_a_mined_model_scores_as_its_patterns(pretraining):
    features, encoded, gold = mined_lists(sentences=20)
    settings = MiningSettings(threshold=1, iterations=4, pretraining=pretraining)
    model, selection = mine_combinations(features, encoded, gold, settings)
    assert len(model) == len(selection.selected) > 10
    assert max(selection.table.orders) > 2
    patterns = selection.table.scores(features.corpus(encoded), selection.weights)
    for a, b in zip(model.scores(encoded), patterns, strict=True):
        assert np.allclose(a, b, atol=1e-9)
    right = sum(int(s.argmax()) == g for s, g in zip(model.scores(encoded), gold, strict=True))
    assert right > 0.5 * len(gold)


def test_new_weights_are_those_of_an_averaged_perceptron(model_of_all):
    reranker, pairs = model_of_all
    model = expand(reranker.support, reranker.schema, most=100)
    encoded = [model.encode(*pair) for pair in pairs]
    oracles = [trees.oracle(sentence) for sentence, trees in pairs]
    # What each candidate holds, by the scores of models of one combination each.
    held = []
    for at, listed in enumerate(model.types):
        for c in range(len(listed)):
            weights = [np.zeros(len(t)) for t in model.types]
            weights[at][c] = 1.0
            held.append(model.with_weights(weights).scores(encoded))
    held = [np.array([h[i] for h in held]) for i in range(len(encoded))]
    w, total = np.zeros(len(model)), np.zeros(len(model))
    for _ in range(3):
        for counts, oracle in zip(held, oracles, strict=True):
            best = int((w @ counts).argmax())
            # Two candidates may hold the same: then nothing moves either way.
            w = w + counts[:, oracle] - counts[:, best]
            total += w
    found = relearned(model, encoded, oracles, iterations=3)
    assert np.allclose(np.concatenate([t.weights for t in found.types]), total / (3 * len(held)))
    # The same where there is room for what occurs in one list only.
    table, nodes = pattern_table(model)
    corpus = SlotFeatures(model.schema, model.space, model.keys).corpus(encoded)
    weights = train_linear(table, corpus, oracles, iterations=3, most=0)
    assert np.allclose(weights[nodes], total / (3 * len(held)))


def test_patterns_of_a_model_are_read_back(model_of_all):
    reranker, _ = model_of_all
    model = expand(reranker.support, reranker.schema, most=200)
    table, nodes = pattern_table(model)
    weights = np.zeros(len(table))
    weights[nodes] = np.concatenate([t.weights for t in model.types])
    features = SlotFeatures(model.schema, model.space, model.keys)
    again = model_of(features, table, weights)
    assert dict(again.listed()) == dict(model.listed())
    assert isinstance(table, PatternTable)


def test_rare_features_are_left_out():
    features, encoded, _ = mined_lists(every=1, names=("arc",))
    fewer = SlotFeatures.fit(features.schema, features.space, encoded, min_count=20)
    assert 0 < len(fewer) < len(features)
    assert set(fewer.keys.tolist()) < set(features.keys.tolist())
    assert len(set(fewer.names())) == len(fewer)


def test_trees_are_not_looked_for_among_parts():
    features, encoded, gold = mined_lists()
    corpus = features.corpus(encoded)
    with pytest.raises(ValueError, match="expected one of trees"):
        mine(corpus, [0], [0], [1], nothing_carried(), trees=True, threshold=1)
    empty = np.zeros(0, dtype=np.int64)
    table = PatternTable(np.array([-1]), np.array([0]), trees=True)
    with pytest.raises(ValueError, match="expected one of trees"):
        table.scores(corpus, np.ones(1))
    assert len(PatternTable(empty, empty, trees=False).scores(corpus, np.zeros(0))) == len(gold)


def test_a_space_is_checked():
    with pytest.raises(ValueError, match="expected each once"):
        SlotSpace.default(("arc", "arc"))
    with pytest.raises(ValueError, match="unknown part type"):
        SlotSpace.default(("arcs",))
    features, *_ = mined_lists()
    with pytest.raises(ValueError, match="do not ascend"):
        replace(features, keys=features.keys[::-1].copy())
    model = make_model(
        features.schema, features.space, features.keys,
        [(np.zeros((0, len(t)), dtype=np.int32), np.zeros(0)) for t in features.space.types],
    )  # fmt: skip
    assert len(model) == len(model.names()) == 0
    with pytest.raises(ValueError, match="combinations of 1 part types, expected 2"):
        CombinationModel(features.schema, features.space, model.keys, model.types[:1])
    wrong = Combinations(np.zeros((0, 2), dtype=np.int32), np.zeros(0))
    with pytest.raises(ValueError, match="expected 3 columns"):
        CombinationModel(features.schema, features.space, model.keys, (wrong, model.types[1]))
