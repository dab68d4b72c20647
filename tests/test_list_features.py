"""Features of a candidate within its list, against numbers counted arc by arc."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from reference_list_features import plain_list_features
from test_kernel import random_sentence, random_tree

from tk_spacy.features.consensus import LOG_FLOOR, SHARE_FEATURES, share_features
from tk_spacy.features.list_features import LIST_FEATURES, TEMPERATURES, ListFeatures
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import train_reranker


def slow_shares(heads, labels, weights, j):
    """The SHARE_FEATURES of candidate j, from dictionaries of shares."""
    totals = dict.fromkeys(SHARE_FEATURES, 0.0)
    for m in range(len(heads[0])):
        arcs = [(int(h[m]), int(label[m])) for h, label in zip(heads, labels, strict=True)]
        if len(set(arcs)) == 1:
            continue
        by_arc, by_head = {}, {}
        for arc, weight in zip(arcs, weights, strict=True):
            by_arc[arc] = by_arc.get(arc, 0.0) + weight
            by_head[arc[0]] = by_head.get(arc[0], 0.0) + weight
        labelled, head = by_arc[arcs[j]], by_head[arcs[j][0]]
        rivals = [share for h, share in by_head.items() if h != arcs[j][0]]
        totals["labelled"] += labelled
        totals["heads"] += head
        totals["log-labelled"] += math.log(labelled + LOG_FLOOR)
        totals["log-heads"] += math.log(head + LOG_FLOOR)
        totals["margin"] += head - max(rivals, default=0.0)
    return list(totals.values())


def three_trees(scores, sources=("s",), base=0):
    """Of the second word's heads, the first has two trees; of the third's labels, x has two."""
    trees = [
        ([0, 1, 1], ["root", "x", "x"]),
        ([0, 1, 2], ["root", "x", "x"]),
        ([0, 3, 1], ["root", "x", "y"]),
    ]
    return CandidateList.build(
        [(*tree, score) for tree, score in zip(trees, scores, strict=True)],
        inventory=LabelInventory(),
        sources=sources,
        base=base,
    )


@pytest.mark.parametrize("seed", range(8))
def test_consensus_shares_equal_those_counted_arc_by_arc(seed):
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(1, 9)), int(rng.integers(1, 8))
    heads = np.stack([random_tree(rng, n) for _ in range(k)]).astype(np.int32)
    labels = rng.integers(0, 2, size=(k, n)).astype(np.int32)
    weights = rng.dirichlet(np.ones(k), size=3)
    fast = share_features(heads, labels, weights)
    slow = [[v for w in weights for v in slow_shares(heads, labels, w, j)] for j in range(k)]
    np.testing.assert_allclose(fast, slow, atol=1e-12)


def test_consensus_shares_a_reader_can_count():
    trees = three_trees([3.0, 2.0, 1.0])
    shares = share_features(trees.heads, trees.labels, np.full((1, 3), 1 / 3))
    # Word 2: head 1 in two of three trees; word 3: head 1 in two, each with a label of its own.
    np.testing.assert_allclose(shares[:, 0] * 3, [2 + 1, 2 + 1, 1 + 1])
    np.testing.assert_allclose(shares[:, 1] * 3, [2 + 2, 2 + 1, 1 + 2])
    np.testing.assert_allclose(shares[:, 4] * 3, [1 + 1, 1 - 1, -1 + 1])


@pytest.mark.parametrize(
    ("heads", "labels", "weights", "message"),
    [
        ((2, 3), (2, 4), (1, 2), r"labels must be int32\[2, 3\]"),
        ((2, 3), (2, 3), (1, 3), r"weights must be float64\[_, 2\]"),
        ((2, 3), (2, 3), (2,), r"weights must be float64\[_, 2\]"),
    ],
)
def test_consensus_refuses_shapes_that_do_not_fit(heads, labels, weights, message):
    with pytest.raises(ValueError, match=message):
        share_features(np.zeros(heads, int), np.zeros(labels, int), np.zeros(weights))


def columns(features, trees):
    return dict(zip(features.names, features.encode(trees).T, strict=True))


def centred(values):
    return np.array(values) - np.mean(values)


def test_list_features_of_scores():
    trees = three_trees([[5.0, 0.0], [3.0, 4.0], [1.0, np.nan]], sources=("a", "b"), base=2)
    features = ListFeatures(groups=("scores",), scales={"a": 2.0, "b": 1.0}, factor=10.0)
    found = columns(features, trees)
    expected = {
        "a gap": [0, -1, -2],
        "a standard": np.array([2, 0, -2]) / math.sqrt(8 / 3),
        "a rank": [0, -math.log(2), -math.log(3)],
        "a first": [1, 0, 0],
        "a unscored": [0, 0, 0],
        "b gap": [-4, 0, -4],  # unscored: as bad as the worst
        "b standard": np.array([-4, 8, -4]) / 3 / math.sqrt(32 / 9),
        "b rank": [-math.log(2), 0, -math.log(3)],
        "b first": [0, 1, 0],
        "b unscored": [0, 0, 1],
        "base": [0, 0, 1],
    }
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], 10 * centred(values), atol=1e-12, err_msg=name)


def test_list_features_of_shares_weigh_by_each_source():
    trees = three_trees([[4.0, np.nan], [3.0, 1.0], [1.0, 2.0]], sources=("a", "b"), base=1)
    features = ListFeatures(groups=("shares",), scales={"a": 2.0, "b": 1.0})
    found = columns(features, trees)

    def softmax(values, t):
        weights = np.exp(np.array(values) / t)
        return weights / weights.sum()

    weightings = {"all": [1 / 3] * 3, "base": [0, 1, 0], "a first": [1, 0, 0], "b first": [0, 0, 1]}
    for t in TEMPERATURES:
        weightings[f"a softmax/{t:g}"] = softmax([4, 3, 1], 2 * t)
        weightings[f"b softmax/{t:g}"] = [0, *softmax([1, 2], t)]
    assert len(found) == len(weightings) * len(SHARE_FEATURES)
    for name, weights in weightings.items():
        slow = np.array([slow_shares(trees.heads, trees.labels, weights, j) for j in range(3)])
        for kind, values in zip(SHARE_FEATURES, slow.T, strict=True):
            np.testing.assert_allclose(
                found[f"{kind} share, {name}"], centred(values), atol=1e-12, err_msg=name
            )


@pytest.mark.parametrize("shift", [-1e5, 1e5])
def test_list_features_do_not_depend_on_where_the_scores_lie(shift):
    trees = three_trees([[4.0, np.nan], [3.0, 1.0], [1.0, 2.0]], sources=("a", "b"), base=1)
    features = ListFeatures(groups=LIST_FEATURES, scales={"a": 2.0, "b": 1.0})
    found = features.encode(trees.with_scores(trees.scores + shift))
    np.testing.assert_allclose(found, features.encode(trees), atol=1e-9)


def test_list_features_where_a_source_scored_nothing_or_is_not_there():
    features = ListFeatures(groups=LIST_FEATURES, scales={"a": 1.0, "b": 1.0})
    none = three_trees([[4.0, np.nan], [3.0, np.nan], [1.0, np.nan]], sources=("a", "b"))
    absent = three_trees([4.0, 3.0, 1.0], sources=("a",))
    more = three_trees([[9.0, 4.0], [1.0, 3.0], [5.0, 1.0]], sources=("new", "a"), base=0)
    for trees in (none, absent, more):
        values = features.encode(trees)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
        found = columns(features, trees)
        for name in ("gap", "standard", "rank", "first", "unscored"):
            assert not found[f"b {name}"].any()
    np.testing.assert_array_equal(features.encode(none), features.encode(absent))


def test_list_features_do_not_mark_a_gold_tree_that_was_added():
    trees = three_trees([2.0, 1.0, np.nan])
    found = columns(ListFeatures(groups=("scores",), scales={"s": 1.0}), trees)
    assert not found["s unscored"].any()


def test_list_features_bear_infinite_scores_and_single_trees():
    features = ListFeatures(groups=LIST_FEATURES, scales={"s": 1.0})
    trees = three_trees([2.0, 1.0, -np.inf])
    np.testing.assert_allclose(columns(features, trees)["s gap"], centred([0, -1, -1]))
    alone = CandidateList.build([([0], ["root"], 1.0)], inventory=LabelInventory(), sources=("s",))
    assert features.encode(alone).tolist() == [[0.0] * len(features.names)]


def test_list_features_scales_are_the_mean_spread_of_each_source():
    lists = [three_trees([4.0, 2.0, np.nan]), three_trees([5.0, 5.0, 5.0])]
    features = ListFeatures.fit(lists, ["shares"], factor=2.0)
    # The unscored tree counts as the worst: 4, 2, 2.
    assert features.scales == {"s": pytest.approx(math.sqrt(8 / 9) / 2)}
    assert (features.groups, features.factor) == (("shares",), 2.0)
    for made in (features, ListFeatures.fit(lists, LIST_FEATURES)):
        assert ListFeatures.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_list_features_let_the_reranker_trust_a_source_that_is_right():
    # Only the score tells the trees apart in a way that carries over: words are never seen again.
    rng = np.random.default_rng(3)
    inventory = LabelInventory()
    golds, lists = [], []
    for _ in range(60):
        gold = random_sentence(rng, n=5)
        trees = [(gold.heads, gold.deprels, [float(rng.normal()), 1.0 + float(rng.random())])]
        for _ in range(4):
            labels = [str(v) for v in rng.choice(["x", "y"], size=5)]
            trees.append((random_tree(rng, 5), labels, [float(rng.normal()), float(rng.random())]))
        golds.append(gold)
        lists.append(CandidateList.build(trees, inventory=inventory, sources=("noise", "good")))
    schema = Schema.fit(golds[:40])
    right = {}
    for groups in ((), ("scores",), LIST_FEATURES):
        settings = Settings(manual_parts=("arc",), bits=12, list_scale=10, list_features=groups)
        reranker, _ = train_reranker(golds[:40], lists[:40], settings, schema=schema, n_threads=1)
        alone = reranker.batch_scores(list(zip(golds[40:], lists[40:], strict=True)), n_threads=1)
        right[groups] = sum(
            (trees.heads[scores.argmax()] == gold.heads).all()
            for gold, trees, scores in zip(golds[40:], lists[40:], alone, strict=True)
        )
    assert right[()] < 15 < min(right[("scores",)], right[LIST_FEATURES])


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 25, 130, 300])
def test_list_features_are_those_of_the_plain_twin_to_the_bit(k):
    rng = np.random.default_rng(k)
    sources = ("a", "b", "none", "c")
    scores = rng.normal(size=(k, 4)) * 10.0 ** rng.integers(-3, 4, size=4)
    scores[:, 3] = scores[:, 3].round()  # equal ones
    scores[rng.random(scores.shape) < 0.2] = np.nan
    scores[rng.random(scores.shape) < 0.05] = -np.inf
    scores[:, 2] = np.nan
    heads = np.stack([random_tree(rng, 40) for _ in range(k)])
    trees = CandidateList.from_arrays(
        heads, np.zeros(heads.shape, np.int32), scores,
        inventory=LabelInventory(["x"]), sources=sources, base=int(rng.integers(k)),
    )  # fmt: skip
    scales = {"a": 0.7, "b": 1.3, "none": 1.0, "elsewhere": 2.0, "c": 0.1}
    found = ListFeatures(groups=LIST_FEATURES, scales=scales, factor=0.3).encode(trees)
    assert found.tolist() == plain_list_features(trees, scales, 0.3).tolist()
    assert len(found) == k
