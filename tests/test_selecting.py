"""Selection and the linear model over selected features against the same in explicit spaces."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from test_gradient_mining import N_FEATURES, counted, spelled
from test_kernel_perceptron import random_lists

from tk_spacy.selection import gradient_mining, selecting
from tk_spacy.selection.basic import ArcLists
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.pattern_table import PatternTable
from tk_spacy.selection.selecting import MiningSettings, select_features

MOST = 3


def every_pattern(candidates, *, trees):
    """Of each candidate of each list how often each pattern occurs."""
    return [[counted(tree, trees=trees, most=MOST) for tree in row] for row in candidates]


def score(pattern_counts, weights):
    return sum(weights.get(p, 0) * n for p, n in pattern_counts.items())


def same_trees(row, right):
    return [tree[0] == row[right][0] for tree in row]


def algorithm_1(candidates, patterns, gold, *, threshold, iterations):
    """The paper's algorithm with all patterns written out; returns weights and wrong samples."""
    weights, wrong_ones = {}, []
    for _ in range(iterations):
        better, worse, wrong = Counter(), Counter(), 0
        for row, counts, right in zip(candidates, patterns, gold, strict=True):
            alike = same_trees(row, right)
            scores = [score(c, weights) + (not a) for c, a in zip(counts, alike, strict=True)]
            others = [j for j, a in enumerate(alike) if not a]
            if not others:
                continue
            best = max(others, key=lambda j: (scores[j], -j))
            if scores[best] > scores[right]:
                better += counts[right]
                worse += counts[best]
                wrong += 1
        wrong_ones.append(wrong)
        for name in set(better) | set(worse) | set(weights):
            weight, up, down = weights.get(name, 0), better[name], worse[name]
            if max(up, down) <= threshold and not weight:
                continue
            new = weight + up - down
            side = np.sign(weight) if weight else np.sign(new)
            new -= threshold * side
            weights[name] = new if new * side > 0 else 0
        weights = {name: weight for name, weight in weights.items() if weight}
    return weights, wrong_ones


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_selection_is_the_papers_algorithm(trees, n_threads):
    lists, candidates, gold = random_lists(11, 30)
    settings = MiningSettings(
        trees=trees, max_order=MOST, threshold=2, iterations=4, pretraining=0, contested=False
    )
    seen = []
    found = select_features(
        Corpus(lists, N_FEATURES),
        gold,
        settings,
        n_threads=n_threads,
        progress=lambda _, item: seen.append(item),
    )
    patterns = every_pattern(candidates, trees=trees)
    weights, wrong = algorithm_1(candidates, patterns, gold, threshold=2, iterations=4)
    names = spelled(found.table.parents, found.table.steps, trees=trees)
    kept = {names[i]: found.weights[i] for i in found.selected}
    assert kept == weights
    assert len(kept) >= 20
    assert [item.wrong for item in found.history] == wrong
    assert found.history[-1].selected == len(kept)
    assert list(found.history) == seen
    assert found.stopped is None


def hinge_loss(candidates, patterns, gold, weights):
    total = 0.0
    for row, counts, right in zip(candidates, patterns, gold, strict=True):
        alike = same_trees(row, right)
        own = score(counts[right], weights)
        others = [score(c, weights) + 1 for c, a in zip(counts, alike, strict=True) if not a]
        total += max([0, *(other - own for other in others)])
    return total


@pytest.mark.parametrize("patience", [0, 1, 4])
def test_mining_ends_where_the_loss_does_not_fall(patience):
    lists, candidates, gold = random_lists(12, 25)
    corpus, patterns = Corpus(lists, N_FEATURES), every_pattern(candidates, trees=False)
    settings = MiningSettings(
        max_order=2, threshold=2, pretraining=0, patience=100, filter_bytes=1 << 10
    )
    losses = []
    for iterations in range(16):
        found = select_features(corpus, gold, replace(settings, iterations=iterations))
        names = spelled(found.table.parents, found.table.steps, trees=False)
        weights = {names[i]: found.weights[i] for i in found.selected}
        losses.append(hinge_loss(candidates, patterns, gold, weights))
    fell = [at for at, loss in enumerate(losses) if loss < min(losses[:at], default=np.inf)]
    end = next(at for at in range(16) if at - max(f for f in fell if f <= at) > patience)
    assert fell[0] < end < 15
    found = select_features(corpus, gold, replace(settings, iterations=16, patience=patience))
    assert len(found.history) == end
    assert found.stopped is None


def test_mining_ends_where_no_sample_is_wrong():
    lists, candidates, gold = random_lists(11, 2)
    corpus = Corpus(lists, N_FEATURES)
    settings = MiningSettings(max_order=MOST, threshold=0, pretraining=20, iterations=50)
    found = select_features(corpus, gold, settings)
    patterns = every_pattern(candidates, trees=False)
    names = spelled(found.table.parents, found.table.steps, trees=False)
    weights = {names[i]: found.weights[i] for i in found.selected}
    assert hinge_loss(candidates, patterns, gold, weights) == 0
    assert len(found.history) < settings.patience
    assert len(found.selected) > 0


@pytest.mark.parametrize("trees", [False, True])
def test_pre_training_leaves_fewer_samples_wrong(trees):
    lists, _, gold = random_lists(12, 40)
    corpus = Corpus(lists, N_FEATURES)
    first = {}
    for passes in (0, 10):
        settings = MiningSettings(
            trees=trees, max_order=MOST, threshold=1, iterations=1, pretraining=passes
        )
        first[passes] = select_features(corpus, gold, settings).history[0].wrong
    assert first[10] < 0.7 * first[0]


def test_a_limit_keeps_what_was_there():
    lists, _, gold = random_lists(13, 30)
    corpus = Corpus(lists, N_FEATURES)
    settings = MiningSettings(
        trees=True, max_order=4, threshold=0, pretraining=3, max_patterns=3200, iterations=5
    )
    found = select_features(corpus, gold, settings)
    assert found.stopped == "more than 3200 patterns in iteration 1; what it had before is kept"
    assert len(found.selected) > 0
    assert max(found.table.orders) == 2
    settings = replace(settings, max_patterns=64)
    found = select_features(corpus, gold, settings)
    assert found.stopped == "more than 64 patterns in pre-training; nothing is selected"
    assert len(found.table) == 0


@pytest.mark.parametrize(("call", "place"), [(1, "pre-training"), (2, "iteration 1")])
def test_what_was_there_is_kept_where_memory_ends(monkeypatch, call, place):
    lists, _, gold = random_lists(13, 30)
    corpus = Corpus(lists, N_FEATURES)
    calls = []

    def mine(*args, **options):
        calls.append(None)
        if len(calls) == call:
            raise MemoryError("no memory for so many patterns")
        return gradient_mining.mine(*args, **options)

    settings = MiningSettings(max_order=2, threshold=0, pretraining=3, iterations=5)
    before = select_features(corpus, gold, replace(settings, iterations=0))
    monkeypatch.setattr(selecting, "mine", mine)
    found = select_features(corpus, gold, settings)
    assert found.stopped is not None
    assert found.stopped.startswith(f"no memory for so many patterns in {place}; ")
    assert found.weights.tolist() == ([] if call == 1 else before.weights.tolist())
    assert len(before.selected) > 0


@pytest.mark.parametrize("trees", [False, True])
def test_the_linear_model_is_an_averaged_perceptron(trees):
    lists, candidates, gold = random_lists(14, 25)
    corpus = Corpus(lists, N_FEATURES)
    settings = MiningSettings(trees=trees, max_order=2, threshold=1, iterations=1, pretraining=2)
    table = select_features(corpus, gold, settings).table
    names = spelled(table.parents, table.steps, trees=trees)
    patterns = [
        [Counter({p: c[p] for p in names if c[p]}) for c in row]
        for row in every_pattern(candidates, trees=trees)
    ]
    weights, total = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for _ in range(3):
        for row, counts, right in zip(candidates, patterns, gold, strict=True):
            scores = [score(c, weights) for c in counts]
            best = scores.index(max(scores))
            if not same_trees(row, right)[best]:
                for name in names:
                    weights[name] += counts[right][name] - counts[best][name]
            for name in names:
                total[name] += weights[name]
    found = train_linear(table, corpus, gold, iterations=3)
    walked = train_linear(table, corpus, gold, iterations=3, most=0)
    assert walked.tolist() == found.tolist()
    assert np.allclose(found, [total[name] / (3 * len(lists)) for name in names], atol=1e-9)


def test_refuses_patterns_that_are_no_trie():
    with pytest.raises(ValueError, match="pattern 0 extends 0 by 1, expected one before it"):
        PatternTable([0], [1], trees=False)
    with pytest.raises(ValueError, match="pattern 1 is there twice"):
        PatternTable([-1, -1], [1, 1], trees=False)
    lists, _, gold = random_lists(1, 3)
    with pytest.raises(ValueError, match="33554433 features, expected 0 to 33554432"):
        Corpus(lists, (1 << 25) + 1)
    with pytest.raises(ValueError, match="2 right candidates for 3 lists"):
        select_features(Corpus(lists, N_FEATURES), gold[:2], MiningSettings())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"starts": [0, 10**9, 2, 3, 4]},
            r"starts\[1\] is 1000000000, expected numbers from 0 to 4",
        ),
        ({"starts": [0, 2, 1, 3, 4]}, r"starts\[2\] is 1, expected numbers from 0 to 4"),
        ({"starts": []}, "starts are empty"),
        ({"starts": [1, 1, 2, 3, 4]}, "do not fit together"),
        ({"starts": [0, 1, 2, 3, 3]}, "do not fit together"),
        ({"ids": [0, 0, 0, 1]}, r"ids\[3\] is 1, expected 0 to 0"),
        ({"members": [[0, 1], [2, 4]]}, r"members\[3\] is 4, expected 0 to 3"),
        ({"members": [[0, 1], [2, -1]]}, r"members\[3\] is -1, expected 0 to 3"),
        ({"members": [[0, 1]]}, "do not fit together"),
        ({"heads": [[0, 1], [3, 0]]}, r"heads\[2\] is 3, expected 0 to 2"),
    ],
)
def test_refuses_lists_whose_arrays_do_not_fit(change, message):
    arrays = {
        "heads": [[0, 1], [2, 0]],
        "members": [[0, 1], [2, 3]],
        "starts": [0, 1, 2, 3, 4],
        "ids": [0, 0, 0, 0],
    }
    given = {name: np.array(a, dtype=np.int32) for name, a in {**arrays, **change}.items()}
    with pytest.raises(ValueError, match=message):
        Corpus([ArcLists(**given)], 1)
