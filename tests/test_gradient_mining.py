"""Gradient mining against an enumeration of all patterns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from reference_subtrees import combinations_of_arcs, sub_feature_trees
from test_kernel_perceptron import random_lists
from test_tree_kernel import ragged

from tk_spacy.selection.basic import ArcLists
from tk_spacy.selection.corpus import Corpus
from tk_spacy.selection.gradient_mining import (
    PARTS,
    TooManyPatternsError,
    mine,
    nothing_carried,
)
from tk_spacy.selection.linear import train_linear
from tk_spacy.selection.occurrences import Occurrences
from tk_spacy.selection.pattern_table import PatternTable

N_FEATURES = 6
FEATURE = (1 << 25) - 1


def spelled(parents, steps, *, trees):
    """Each pattern as the enumeration writes it."""
    written = []
    for node in range(len(parents)):
        path, at = [], node
        while at >= 0:
            path.append((int(steps[at]) >> 25, int(steps[at]) & FEATURE))
            at = int(parents[at])
        path.reverse()
        if not trees:
            written.append(tuple(feature for _, feature in path))
            continue
        text, depth = "", -1
        for level, feature in path:  # hangs on the word at that depth, which closes deeper ones
            text += ")" * (depth - level + 1) if depth >= level else ""
            text += f"({feature}"
            depth = level
        written.append(text + ")" * (depth + 1))
    return written


def counted(tree, *, trees, most, without=()):
    heads, features = tree
    if trees:
        return sub_feature_trees(heads, features, most=most)
    kept = [f for word, f in enumerate(features) if word not in without]
    return combinations_of_arcs(kept, degree=most)


def enumerated(candidates, samples, *, trees, most, contested=False):
    """#f+ and #f- of every pattern."""
    better, worse = Counter(), Counter()
    for at, right, wrong in samples:
        a, b = candidates[at][right], candidates[at][wrong]
        same = [i for i in range(len(a[0])) if contested and a[0][i] == b[0][i]]
        better += counted(a, trees=trees, most=most, without=same)
        worse += counted(b, trees=trees, most=most, without=same)
    return better, worse


def survivors(found, *, trees):
    kept = {}
    for parents, steps, weights, better, worse, survives in found:
        names = spelled(parents, steps, trees=trees)
        for i in np.flatnonzero(survives):
            assert names[i] not in kept  # none twice
            kept[names[i]] = better[i], worse[i], weights[i]
    return kept


def samples_of(trees, seed):
    rng = np.random.default_rng(seed)
    chosen = [(i, *rng.choice(len(c), 2, replace=False).tolist()) for i, c in enumerate(trees)]
    return [sample for sample in chosen if rng.random() < 0.8]


def columns(samples):
    return [list(column) for column in zip(*samples, strict=True)]


SPACES = [(True, False), (False, False), (False, True)]


@pytest.mark.parametrize("filter_bytes", [16, 1 << 16])
@pytest.mark.parametrize("threshold", [0, 1, 3, 5.5])
@pytest.mark.parametrize(("trees", "contested"), SPACES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_survivors_are_those_of_an_enumeration(
    trees, contested, threshold, filter_bytes, n_threads
):
    lists, candidates, _ = random_lists(int(threshold), 25)
    samples = samples_of(candidates, 1)
    most = 4
    found = mine(
        Corpus(lists, N_FEATURES), *columns(samples), nothing_carried(), trees=trees,
        threshold=threshold, max_order=most, filter_bytes=filter_bytes, contested=contested,
        n_threads=n_threads,
    )  # fmt: skip
    better, worse = enumerated(candidates, samples, trees=trees, most=most, contested=contested)
    expected = {
        name: (better[name], worse[name])
        for name in better | worse
        if max(better[name], worse[name]) > threshold
    }
    kept = survivors(found, trees=trees)
    assert {name: value[:2] for name, value in kept.items()} == expected
    for plus, minus, weight in kept.values():
        steep = max(abs(int(plus) - int(minus)) - threshold, 0)
        assert weight == (steep if plus > minus else -steep)


@pytest.mark.parametrize(("trees", "contested"), SPACES)
def test_a_pattern_with_a_weight_survives_whatever_its_counts(trees, contested):
    lists, candidates, _ = random_lists(7, 20)
    corpus = Corpus(lists, N_FEATURES)
    options = {"trees": trees, "max_order": 3, "contested": contested}
    first = samples_of(candidates, 1)
    before = mine(corpus, *columns(first), nothing_carried(), threshold=0, **options)
    carried = [(p, s, w) for p, s, w, *_ in before]
    weights = {}
    for parents, steps, values in carried:
        weights |= dict(zip(spelled(parents, steps, trees=trees), values, strict=True))
    second = samples_of(candidates, 2)
    found = mine(corpus, *columns(second), carried, threshold=4, **options)
    better, worse = enumerated(candidates, second, trees=trees, most=3, contested=contested)
    expected = {}
    for name in better | worse | Counter(dict.fromkeys(weights, 1)):
        plus, minus, weight = better[name], worse[name], weights.get(name, 0.0)
        if max(plus, minus) > 4 or weight:
            new = weight + plus - minus
            # Towards 0 by the threshold, from the side where the weight was.
            side = np.sign(weight) if weight else np.sign(new)
            new -= 4 * side
            expected[name] = plus, minus, new if new * side > 0 else 0.0
    assert survivors(found, trees=trees) == expected


@pytest.mark.parametrize("threshold", [0, 1, 3])
@pytest.mark.parametrize("most", [2, 4])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_trees_have_in_common_changes_no_gradient(threshold, most, n_threads):
    lists, candidates, _ = random_lists(threshold, 30)
    samples = samples_of(candidates, 1)
    options = {"trees": True, "threshold": threshold, "max_order": most, "n_threads": n_threads}
    corpus = Corpus(lists, N_FEATURES)
    whole, apart = (
        survivors(
            mine(corpus, *columns(samples), nothing_carried(), contested=contested, **options),
            trees=True,
        )
        for contested in (False, True)
    )
    assert apart.keys() <= whole.keys()
    counted_in_all = [sum(int(a + b) for a, b, _ in kept.values()) for kept in (whole, apart)]
    assert counted_in_all[1] < counted_in_all[0]
    for name, (better, worse, weight) in whole.items():
        if weight:
            assert apart[name][2] == weight
        if name in apart:
            assert apart[name][0] <= better
            assert apart[name][1] <= worse
            assert apart[name][2] == weight
    assert any(weight for *_, weight in whole.values())


def test_trees_of_the_same_arcs_leave_nothing_to_count():
    # The first sample's trees differ in one arc, and the words on its left in none.
    heads = np.array([[2, 0, 2, 3, 4], [2, 0, 2, 3, 3]], dtype=np.int32)
    members = np.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 5]], dtype=np.int32)
    features = [[0], [1], [2], [3], [4], [5]]
    arcs = ArcLists(heads, members, *ragged(features))
    found = mine(
        Corpus([arcs], N_FEATURES), [0], [0], [1], nothing_carried(), trees=True, threshold=0,
        max_order=2, contested=True,
    )  # fmt: skip
    # (0) and (1) are too far from the arcs into word 5; (2) and (3) may still get one of them.
    assert {name: value[:2] for name, value in survivors(found, trees=True).items()} == {
        "(2)": (0, 1), "(3)": (1, 1), "(4)": (1, 0), "(5)": (0, 1), "(3(4))": (1, 0),
        "(2(5))": (0, 1), "(3)(5)": (0, 1),
    }  # fmt: skip


def test_siblings_that_another_word_parts_are_no_pair():
    # Words 2 and 4 hang on word 1 in both trees; in the second one word 3 stands between them.
    heads = np.array([[0, 1, 2, 1], [0, 1, 1, 1]], dtype=np.int32)
    members = np.array([[0, 1, 4, 3], [0, 1, 2, 3]], dtype=np.int32)
    corpus = Corpus([ArcLists(heads, members, *ragged([[0], [1], [2], [3], [4]]))], N_FEATURES)
    found = mine(
        corpus, [0], [0], [1], nothing_carried(), trees=True, threshold=0, max_order=2,
        contested=True,
    )  # fmt: skip
    weights = {name: value[2] for name, value in survivors(found, trees=True).items()}
    assert {name: weight for name, weight in weights.items() if weight} == {
        "(4)": 1, "(2)": -1, "(1(4))": 1, "(1)(3)": 1, "(0(2))": -1, "(1)(2)": -1, "(2)(3)": -1,
    }  # fmt: skip
    table = PatternTable([-1, 0], [1, 3], trees=True)
    assert table.scores(corpus, np.array([0.0, 1.0]))[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("trees", [False, True])
def test_scores_and_moves_of_patterns(trees):
    lists, candidates, _ = random_lists(3, 12)
    corpus = Corpus(lists, N_FEATURES)
    samples = samples_of(candidates, 1)
    parts = mine(
        corpus, *columns(samples), nothing_carried(), trees=trees, threshold=2, max_order=3
    )
    offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
    parents = np.concatenate(
        [np.where(p[0] < 0, -1, p[0] + start) for p, start in zip(parts, offsets, strict=False)]
    )
    table = PatternTable(parents, np.concatenate([part[1] for part in parts]), trees=trees)
    names = spelled(table.parents, table.steps, trees=trees)
    weights = np.random.default_rng(0).integers(-5, 6, size=len(table)).astype(float)
    by_name = dict(zip(names, weights, strict=True))
    for n_threads in (1, 2):
        for scores, trees_of in zip(
            table.scores(corpus, weights, n_threads=n_threads), candidates, strict=True
        ):
            expected = [
                sum(by_name.get(p, 0) * n for p, n in counted(t, trees=trees, most=3).items())
                for t in trees_of
            ]
            # What all candidates have is left out.
            assert (scores - scores[0]).tolist() == [value - expected[0] for value in expected]
    better, worse = (counted(candidates[5][row], trees=trees, most=3) for row in (2, 1))
    differences = [better[name] - worse[name] for name in names]
    assert np.count_nonzero(differences) >= 3
    n = len(Occurrences(table, corpus))
    # With room for all, for some lists at a time, for one at a time.
    for n_threads, most in ((1, None), (2, n), (2, n - 1), (1, n // 4), (2, 0)):
        occurrences = Occurrences(table, corpus, most=most, n_threads=n_threads)
        assert len(occurrences) == n
        for i, trees_of in [*enumerate(candidates), (3, candidates[3]), (1, candidates[1])]:
            found = occurrences.scores(i, weights)
            expected = [
                sum(by_name.get(p, 0) * n for p, n in counted(t, trees=trees, most=3).items())
                for t in trees_of
            ]
            assert (found - found[0]).tolist() == [value - expected[0] for value in expected]
        again, stepped_again = weights.copy(), np.zeros(len(table))
        occurrences.move(5, 2, 2.0, again, stepped_again, 7.0)
        occurrences.move(5, 1, -2.0, again, stepped_again, 7.0)
        assert (again - weights).tolist() == [2.0 * n for n in differences]
        assert stepped_again.tolist() == [14.0 * n for n in differences]
    with pytest.raises(ValueError, match="there is no candidate 4 of a list 5"):
        occurrences.move(5, 4, 1.0, again, stepped_again, 1.0)
    with pytest.raises(ValueError, match="there is no candidate 0 of a list 12"):
        occurrences.scores(12, weights)


def wide_table(rng, n_features, *, trees):
    """All patterns of one feature and of two, some of three, what extends one right after it."""
    depths = (0, 1) if trees else (0,)
    pairs = [
        ((0, i), (depth, j))
        for i in range(n_features)
        for depth in depths
        for j in range(0 if trees else i + 1, n_features)
    ]
    extended = [
        (*pair, (depth, j))
        for pair in pairs
        for depth in range(pair[1][0] + 2 if trees else 1)
        for j in range(0 if trees else pair[1][1] + 1, n_features)
    ]
    triples = [extended[i] for i in rng.choice(len(extended), 4000, replace=False)]
    firsts = rng.permutation(n_features).tolist()
    paths = [((0, i),) for i in range(n_features)] + pairs + triples
    paths.sort(key=lambda path: (firsts[path[0][1]], path))
    order = {path: i for i, path in enumerate(paths)}
    parents = [order.get(path[:-1], -1) for path in order]
    steps = [path[-1][0] << 25 | path[-1][1] for path in order]
    return PatternTable(np.array(parents), np.array(steps), trees=trees)


@pytest.mark.parametrize("trees", [False, True])
def test_scores_where_patterns_have_many_extensions(trees):
    n_features = 60
    lists, candidates, _ = random_lists(4, 15, n_features=n_features)
    rng = np.random.default_rng(1)
    table = wide_table(rng, n_features, trees=trees)
    extensions = np.bincount(table.parents[table.parents >= 0], minlength=len(table))
    assert (extensions > 40).sum() > 10
    assert ((extensions > 0) & (extensions < 20)).sum() > 100
    assert (extensions == 0).sum() > 100
    names = spelled(table.parents, table.steps, trees=trees)
    weights = rng.integers(-5, 6, size=len(table)).astype(float)
    by_name = dict(zip(names, weights, strict=True))
    found = table.scores(Corpus(lists, n_features), weights, n_threads=2)
    for i, trees_of in enumerate(candidates):
        counts = [counted(tree, trees=trees, most=3) for tree in trees_of]
        expected = [sum(by_name.get(p, 0) * n for p, n in c.items()) for c in counts]
        assert (found[i] - found[i][0]).tolist() == [value - expected[0] for value in expected]
    assert np.count_nonzero(np.concatenate(found)) > 20


@pytest.mark.parametrize("trees", [False, True])
def test_weights_may_be_whole_numbers(trees):
    lists, _, _ = random_lists(4, 3)
    corpus = Corpus(lists, N_FEATURES)
    table = PatternTable([-1, -1, 0], [3, 1, 4], trees=trees)
    expected = [found.tolist() for found in table.scores(corpus, np.array([5.0, 7.0, 2.0]))]
    assert np.count_nonzero(np.concatenate(expected)) > 3
    for weights in ([5, 7, 2], np.array([5, 7, 2], dtype=np.float32)):
        assert [found.tolist() for found in table.scores(corpus, weights)] == expected


@pytest.mark.parametrize("trees", [False, True])
def test_no_patterns_and_no_lists(trees):
    lists, candidates, _ = random_lists(4, 3)
    corpus, none = Corpus(lists, N_FEATURES), np.zeros(0)
    empty, one = PatternTable([], [], trees=trees), PatternTable([-1], [0], trees=trees)
    assert (len(empty), len(empty.parents), len(empty.steps), len(empty.orders)) == (0, 0, 0, 0)
    zeros = [[0.0] * len(c) for c in candidates]
    assert [found.tolist() for found in empty.scores(corpus, none)] == zeros
    nothing = Occurrences(empty, corpus)
    assert len(nothing) == 0
    assert [nothing.scores(i, none).tolist() for i in range(3)] == zeros
    nothing.move(0, 0, 1.0, none, none, 1.0)
    assert one.scores(Corpus([], N_FEATURES), np.ones(1)) == []
    assert len(Occurrences(one, Corpus([], N_FEATURES))) == 0


def test_patterns_that_cannot_be_grown_are_not_found():
    lists, _, _ = random_lists(4, 5)
    corpus = Corpus(lists, N_FEATURES)
    # Far below the root's word, with a first feature that hangs deep, and more features than any.
    deep = [126 << 25 | i for i in range(40)]
    parents = [-1, -1, *[0] * 40, *[1] * 40, 0, 0]
    steps = [2, 126 << 25 | 2, *deep, *deep, 1 << 25 | FEATURE, FEATURE]
    found = PatternTable(parents, steps, trees=True).scores(corpus, np.ones(len(steps)))
    alone = PatternTable([-1], [2], trees=True).scores(corpus, np.ones(1))
    assert np.concatenate(found).tolist() == np.concatenate(alone).tolist()
    assert np.count_nonzero(np.concatenate(found)) > 5


@pytest.mark.parametrize("width", [1, 40])
def test_chains_are_looked_at_so_deep_and_no_deeper(width):
    """width: extensions of each pattern, few or many."""
    n, order = 200, 127
    heads = np.tile(np.arange(n, dtype=np.int32), (2, 1))
    members = np.tile(np.arange(n, dtype=np.int32), (2, 1))
    members[1, n - 1] = n
    features = [*[[0]] * n, [1]]
    corpus = Corpus([ArcLists(heads, members, *ragged(features))], 64)
    parents, steps, last = [], [], -1
    for depth in range(order):
        for i in range(width):
            parents.append(last)
            steps.append(depth << 25 | (0 if i == 0 else i + 2))
        last = len(steps) - width
    table = PatternTable(parents, steps, trees=True)
    weights = np.zeros(len(steps))
    weights[::width] = 1.0
    # The last arc ends one chain of each length; words 127 below each other are not looked at.
    assert table.scores(corpus, weights)[0].tolist() == [126.0, 0.0]
    assert len(Occurrences(table, corpus)) == 126


def test_a_limit_ends_it():
    lists, candidates, _ = random_lists(3, 12)
    with pytest.raises(TooManyPatternsError, match="more than 64 patterns"):
        mine(
            Corpus(lists, N_FEATURES), *columns(samples_of(candidates, 1)), nothing_carried(),
            trees=True, threshold=0, max_patterns=64,
        )  # fmt: skip


def test_refuses_what_does_not_fit():
    lists, _, _ = random_lists(3, 2)
    corpus = Corpus(lists, N_FEATURES)
    options = {"trees": True, "threshold": 1}
    with pytest.raises(ValueError, match=r"lists\[0\] is 2, expected 0 to 1"):
        mine(corpus, [2], [0], [1], nothing_carried(), **options)
    with pytest.raises(ValueError, match="sample 0 names candidates 0 and 4 of 4"):
        mine(corpus, [1], [0], [4], nothing_carried(), **options)
    with pytest.raises(ValueError, match="a filter has 48 cells, expected a power of two"):
        mine(corpus, [1], [0], [1], nothing_carried(), filter_bytes=48, **options)
    with pytest.raises(ValueError, match=f"3 parts, expected {PARTS}"):
        mine(corpus, [1], [0], [1], nothing_carried()[:3], **options)


@pytest.mark.parametrize(
    ("parents", "steps", "message"),
    [
        ([10**7], [0], "carried pattern 0 extends 10000000 by 0, expected one before it"),
        ([0], [0], "carried pattern 0 extends 0 by 0"),
        ([-2], [0], "carried pattern 0 extends -2 by 0"),
        ([-1], [N_FEATURES], f"carried pattern 0 extends -1 by {N_FEATURES}"),
        ([-1], [-1], "carried pattern 0 extends -1 by -1"),
        ([-1], [127 << 25], "carried pattern 0 extends -1 by 4261412864"),
        ([-1, -1], [0, 0], "carried pattern 1 is there twice"),
        (list(range(-1, 255)), [0] * 256, "carried pattern 255 has over 255 features"),
    ],
)
def test_refuses_carried_patterns_that_are_no_trie(parents, steps, message):
    lists, _, _ = random_lists(3, 2)
    carried = nothing_carried()
    carried[0] = np.array(parents), np.array(steps), np.ones(len(parents))
    with pytest.raises(ValueError, match=message):
        mine(Corpus(lists, N_FEATURES), [1], [0], [1], carried, trees=True, threshold=1)


def test_refuses_patterns_of_trees_among_arcs():
    lists, _, gold = random_lists(3, 2)
    arcs = Corpus(lists, N_FEATURES, trees=False)
    table = PatternTable([-1], [0], trees=True)
    for work in (
        lambda: table.scores(arcs, [1.0]),
        lambda: train_linear(table, arcs, gold),
        lambda: train_linear(table, arcs, gold, most=0),
        lambda: mine(arcs, [1], [0], [1], nothing_carried(), trees=True, threshold=1),
    ):
        with pytest.raises(ValueError, match="patterns of trees in a corpus of other parts"):
            work()
