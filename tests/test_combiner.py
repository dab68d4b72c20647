"""The arc combiner: shares, learning, trees and the plain vote, against plain counting."""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections import Counter

import numpy as np
import pytest
from reference_list_features import own_rows
from samples import corrupted, sentence
from test_kernel import random_tree

from tk_spacy.ensemble.combiner.arc_features import BITS, LOG_FLOOR, ArcFeatures
from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, ListArcs, candidate_weights
from tk_spacy.ensemble.combiner.learning import arc_log_probabilities, learn_arcs
from tk_spacy.ensemble.combiner.model import ADDED_TREES, COMBINER, ArcCombiner
from tk_spacy.ensemble.combiner.reparsing import best_trees, plain_vote
from tk_spacy.ensemble.merging import merge
from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.reranker.model import Reranker
from tk_spacy.reranker.settings import Settings
from tk_spacy.reranker.training import combine_lists, train_reranker
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.treebank.synthetic import generate

SOURCES = ("good", "fair", "poor")


def random_list(rng: np.random.Generator, k: int, n: int, labels: int = 3) -> CandidateList:
    inventory = LabelInventory(["root", *(f"l{i}" for i in range(labels))])
    heads = np.stack([random_tree(rng, n) for _ in range(k)])
    return CandidateList.from_arrays(
        heads,
        np.where(heads == 0, 0, rng.integers(1, labels + 1, heads.shape)),
        rng.normal(size=(k, 2)),
        inventory=inventory,
        sources=("a", "b"),
    )


def three_parsers(seed: int = 0, n: int = 60) -> tuple[list[Sentence], list[CandidateList]]:
    """Gold trees and lists of three parsers that err at different places, more and more."""
    gold = list(generate(n, seed=seed))
    inventory = LabelInventory()
    parses = [
        list(corrupted(gold, rate, seed=seed + number))
        for number, rate in enumerate((0.1, 0.15, 0.3))
    ]
    lists = []
    for trees in zip(*parses, strict=True):
        own = [
            CandidateList.build(
                [(tree.heads, tree.deprels, 0.0)], inventory=inventory, sources=(name,)
            )
            for name, tree in zip(SOURCES, trees, strict=True)
        ]
        merged = merge(own, k=10)
        # Each parser scores a tree by its words that are as in its own.
        scores = np.stack(
            [(merged.heads == tree.heads).sum(axis=1) - 0.0 for tree in trees], axis=1
        )
        lists.append(merged.with_scores(scores))
    return gold, lists


def las(gold: list[Sentence], trees: list[tuple[np.ndarray, tuple[str, ...]]]) -> float:
    found = [s.with_tree(*tree) for s, tree in zip(gold, trees, strict=True)]
    return evaluate(gold, found).las


@pytest.mark.parametrize("seed", range(6))
def test_arcs_and_their_shares_are_those_counted_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = random_list(rng, int(rng.integers(1, 7)), int(rng.integers(1, 8)))
    arcs = ListArcs.of(trees)
    k, n = trees.heads.shape
    triples = [
        (word, int(trees.heads[j, word]), int(trees.labels[j, word]))
        for j, word in itertools.product(range(k), range(n))
    ]
    found = list(zip(arcs.words.tolist(), arcs.heads.tolist(), arcs.labels.tolist(), strict=True))
    assert found == sorted(set(triples))
    assert arcs.starts.tolist() == [sum(a[0] < word for a in found) for word in range(n + 1)]
    weights = rng.random((2, k))
    shares, heads = arcs.shares(weights)
    assert [[found[arc] for arc in row] for row in arcs.of_tree.tolist()] == [
        triples[j * n : (j + 1) * n] for j in range(k)
    ]
    pairs = sorted({triple[:2] for triple in triples})
    assert [pairs[pair] for pair in arcs.with_head.tolist()] == [arc[:2] for arc in found]
    for row in range(2):
        by_arc: Counter[tuple[int, int, int]] = Counter()
        by_head: Counter[tuple[int, int]] = Counter()
        for (j, _), triple in zip(itertools.product(range(k), range(n)), triples, strict=True):
            by_arc[triple] += weights[row, j]
            by_head[triple[:2]] += weights[row, j]
        np.testing.assert_allclose(shares[row], [by_arc[arc] for arc in found])
        np.testing.assert_allclose(heads[row], [by_head[arc[:2]] for arc in found])
        # To the bit: sums from the first candidate on.
        plain = np.bincount(arcs.of_tree.ravel(), np.repeat(weights[row], n))
        assert shares[row].tolist() == plain.tolist()


def plain_key(number: int, *parts: int) -> int:
    key = number
    for part in parts:
        key = (key ^ part) * 0x9E3779B97F4A7C15 % 2**64
        key ^= key >> 29
    return key >> 64 - BITS


@pytest.mark.parametrize("seed", range(4))
def test_hashed_features_of_arcs_are_those_of_the_plain_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = random_list(rng, 7, int(rng.integers(1, 13)))
    n = trees.n_words
    upos = [("NOUN", "VERB", "ADP")[i] for i in rng.integers(3, size=n)]
    words = Sentence.from_columns(forms=["w"] * n, upos=upos)
    table = ArcFeatures(scales={"a": 1.0, "b": 2.0, "unknown": 1.0}).encode(words, trees)
    own = [own_rows(trees).get(source) for source in ("a", "b", "unknown")]

    def code(name: str) -> int:
        return zlib.crc32(name.encode())

    tags = [code("ROOT"), *map(code, upos)]
    for word, head, label, hashed in zip(
        table.arcs.words.tolist(), table.arcs.heads.tolist(), table.arcs.labels.tolist(),
        table.hashed.tolist(), strict=True,
    ):  # fmt: skip
        has_head = trees.heads[:, word] == head
        has_arc = has_head & (trees.labels[:, word] == label)
        # A source without an own tree votes for all.
        arc, of_head = (
            sum(1 << i for i, row in enumerate(own) if (holds if row is None else holds[row]).any())
            for holds in (has_arc, has_head)
        )
        far = 13 if head == 0 else max(-6, min(6, head - 1 - word)) + 6
        name, tag, above = code(trees.inventory.names[label]), tags[word + 1], tags[head]
        expected = [
            (arc,), (arc, name), (arc, tag), (arc, far), (arc, name, tag), (of_head, tag),
            (of_head, tag, above), (of_head, far, tag), (name, tag), (name, tag, above),
        ]  # fmt: skip
        assert hashed == [plain_key(i, *parts) for i, parts in enumerate(expected, start=1)]


@pytest.mark.parametrize(
    ("heads", "labels", "message"),
    [
        ([[0, 3]], [[0, 0]], r"heads\[0, 1\] is 3, expected 0 to 2"),
        ([[0, 1]], [[0, -1]], r"labels\[0, 1\] is -1"),
        ([[0, 1]], [[0]], "labels must be"),
    ],
)
def test_arcs_refuse_what_is_no_tree(
    heads: list[list[int]], labels: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ListArcs.of_trees(np.array(heads, np.int32), np.array(labels, np.int32))


@pytest.mark.parametrize("k", [1, 9, 140])
def test_weights_are_those_of_plain_softmaxes_to_the_bit(k: int) -> None:
    rng = np.random.default_rng(k)
    trees = random_list(rng, k, 30)
    scores = np.where(
        rng.random((len(trees), 2)) < 0.2, np.nan, 5 * rng.normal(size=(len(trees), 2))
    )
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    trees = trees.with_scores(scores)
    found = candidate_weights(trees, {"a": 0.3, "unknown": 1.0, "b": 2.0})
    own = own_rows(trees)
    plain = []
    for number, (source, scale) in enumerate({"a": 0.3, "b": 2.0}.items()):
        column = np.where(np.isfinite(trees.scores[:, number]), trees.scores[:, number], -np.inf)
        for temperature in TEMPERATURES:
            powers = np.exp((column - column.max()) / (scale * temperature))
            plain.append((powers / powers.sum()).tolist())
        plain.append([float(row == own[source]) for row in range(len(trees))])
    each = len(TEMPERATURES) + 1
    assert found[:each].tolist() + found[2 * each :].tolist() == plain
    assert (found[each : 2 * each] == 1 / len(trees)).all()


def test_weights_are_softmaxes_and_own_trees() -> None:
    trees = CandidateList.build(
        [
            ([0, 1], ["root", "x"], (3.0, np.nan, np.nan)),
            ([2, 0], ["x", "root"], (1.0, 5.0, np.nan)),
            ([0, 1], ["root", "y"], (0.0, 5.0, np.nan)),
        ],
        inventory=LabelInventory(),
        sources=("a", "b", "c"),
        base=1,
    )
    assert own_rows(trees) == {"a": 1, "b": 1}
    weights = candidate_weights(trees, {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0})
    step = len(TEMPERATURES) + 1
    assert weights.shape == (4 * step, 3)
    for row, temperature in enumerate(TEMPERATURES):
        powers = np.exp(np.array([3.0, 1.0, 0.0]) / (2.0 * temperature))
        np.testing.assert_allclose(weights[row], powers / powers.sum())
        np.testing.assert_allclose(weights[step + row], [0.0, 0.5, 0.5])
    assert weights[step - 1].tolist() == weights[2 * step - 1].tolist() == [0.0, 1.0, 0.0]
    np.testing.assert_allclose(weights[2 * step :], 1 / 3)  # scored nothing, and not there
    # Nor do they depend on where the scores lie, however far from 0.
    for shift in (-1e5, 1e5):
        shifted = candidate_weights(trees.with_scores(trees.scores + shift), {"a": 2.0, "b": 1.0})
        np.testing.assert_allclose(shifted, weights[: 2 * step], rtol=1e-9)


def test_features_of_an_arc() -> None:
    trees = CandidateList.build(
        [([0, 1], ["root", "x"], 1.0), ([0, 1], ["root", "y"], 0.0)],
        inventory=LabelInventory(),
        sources=("a",),
    )
    features = ArcFeatures(scales={"a": 1.0})
    table = features.encode(sentence("b/NOUN/0/root c/VERB/1/x"), trees)
    assert table.dense.shape == (3, features.width)
    odds = np.exp(-1.0 / np.array(TEMPERATURES))
    likely = np.append(1.0 / (1.0 + odds), 1.0)
    np.testing.assert_allclose(
        table.dense[1],  # root, x and y: the second arc
        [*likely, 1, 1, 1, 1, *np.log(likely + LOG_FLOOR), *[np.log(1 + LOG_FLOOR)] * 4, 1, 1],
        rtol=1e-6,
    )
    # Another tag, label or voter is another feature; the same list has the same ones.
    again = features.encode(sentence("b/NOUN/0/root c/VERB/1/x"), trees)
    other = features.encode(sentence("b/NOUN/0/root c/ADV/1/x"), trees)
    np.testing.assert_array_equal(table.hashed, again.hashed)
    assert (table.hashed[1] != other.hashed[1]).sum() == 7  # of ten, those with the modifier's tag
    assert (table.hashed[1] != table.hashed[2]).sum() == 7  # voters or label differ


def plain_learning(dense, hashed, starts, gold, size, epochs, rate, hashed_rate):
    """learn_arcs by dense numpy vectors, one word at a time."""
    d = dense.shape[1]
    w, g, total = np.zeros(d + size), np.zeros(d + size), np.zeros(d + size)
    rates = np.concatenate([np.full(d, rate), np.full(size, hashed_rate)])
    full = np.zeros((len(dense), d + size))
    full[:, :d] = dense
    for row, ids in enumerate(hashed):
        for i in ids:
            full[row, d + i] += 1.0
    steps = 0
    for _ in range(epochs):
        for word, right in enumerate(gold):
            rows = full[starts[word] : starts[word + 1]]
            if len(rows) < 2:
                continue
            p = np.exp(rows @ w - (rows @ w).max())
            p /= p.sum()
            p[right - starts[word]] -= 1.0
            gradient = p @ rows
            g[:d] += gradient[:d] ** 2
            w_next = w.copy()
            w_next[:d] -= rates[:d] * gradient[:d] / (np.sqrt(g[:d]) + 1e-8)
            # A hashed feature steps once for each arc that has it.
            for slope, ids in zip(p, hashed[starts[word] : starts[word + 1]], strict=True):
                for i in ids:
                    g[d + i] += slope**2
                    w_next[d + i] -= hashed_rate * slope / (np.sqrt(g[d + i]) + 1e-8)
            # The average is over the weights before each step but the first, and after the last.
            w = w_next
            total += w
            steps += 1
    average = total / steps
    return average[:d], average[d:]


@pytest.mark.parametrize("seed", range(3))
def test_learning_equals_plain_learning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, size=12)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    dense = rng.normal(size=(starts[-1], 3)).astype(np.float32)
    hashed = rng.integers(0, 8, size=(starts[-1], 2)).astype(np.int32)
    gold = (starts[:-1] + rng.integers(0, counts)).astype(np.int32)
    given = (dense, hashed, starts, gold, 8, 3, 0.1, 0.05)
    for found, expected in zip(learn_arcs(*given), plain_learning(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    weights, hashed_weights = learn_arcs(*given)
    logs = arc_log_probabilities(dense, hashed, starts, weights, hashed_weights)
    for start, stop in itertools.pairwise(starts):
        z = dense[start:stop] @ weights + hashed_weights[hashed[start:stop]].sum(axis=1)
        np.testing.assert_allclose(logs[start:stop], z - np.log(np.exp(z).sum()), atol=1e-9)


def test_learning_refuses_what_does_not_fit() -> None:
    dense, hashed = np.zeros((2, 1), np.float32), np.zeros((2, 1), np.int32)
    starts, gold = np.array([0, 2], np.int32), np.array([0], np.int32)
    with pytest.raises(ValueError, match="gold arc 5 is not of word 0"):
        learn_arcs(dense, hashed, starts, np.array([5], np.int32), 8, 1, 0.1, 0.1)
    with pytest.raises(ValueError, match="a hashed feature is 8, expected 0 to 7"):
        learn_arcs(dense, hashed + 8, starts, gold, 8, 1, 0.1, 0.1)
    with pytest.raises(ValueError, match="starts must run from 0 to 2"):
        learn_arcs(dense, hashed, np.array([0, 1], np.int32), gold, 8, 1, 0.1, 0.1)


@pytest.mark.parametrize("seed", range(6))
def test_best_trees_are_the_best_of_all_combinations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees = random_list(rng, 4, 5)
    arcs = ListArcs.of(trees)
    scores = rng.normal(size=len(arcs))
    best: dict[tuple[int, int], int] = {}
    for number, pair in enumerate(zip(arcs.words.tolist(), arcs.heads.tolist(), strict=True)):
        if pair not in best or scores[number] > scores[best[pair]]:
            best[pair] = number
    by_word = [[a for (w, _), a in best.items() if w == word] for word in range(5)]
    totals = sorted(
        (
            scores[list(choice)].sum()
            for choice in itertools.product(*by_word)
            if check_tree(arcs.heads[list(choice)]) is None
        ),
        reverse=True,
    )
    found = best_trees(arcs, scores, 3)
    np.testing.assert_allclose(scores[found].sum(axis=1), totals[:3])


@pytest.mark.parametrize("seed", range(4))
def test_best_trees_take_the_first_of_labels_with_equal_scores(seed: int) -> None:
    trees = random_list(np.random.default_rng(seed), 6, 30, labels=5)
    arcs = ListArcs.of(trees)
    pairs = list(zip(arcs.words.tolist(), arcs.heads.tolist(), strict=True))
    assert len(set(pairs)) < len(pairs)
    for row in best_trees(arcs, np.zeros(len(arcs)), 5).tolist():
        assert [pairs.index(pairs[arc]) for arc in row] == row


def test_plain_vote_is_the_tree_with_the_most_votes() -> None:
    trees = [
        ([0, 1, 1], ["root", "x", "x"]),
        ([0, 1, 2], ["root", "y", "x"]),
        ([0, 3, 1], ["root", "y", "y"]),
    ]
    inventory = LabelInventory()
    candidates = CandidateList.build(
        [(*tree, -float(i)) for i, tree in enumerate(trees)], inventory=inventory, sources=("a",)
    )
    heads, labels = plain_vote(
        CandidateList.from_arrays(
            candidates.heads, candidates.labels, candidates.scores,
            inventory=inventory, sources=("a",), base=0, bases={"b": 1, "c": 2},
        )
    )  # fmt: skip
    assert heads.tolist() == [0, 1, 1]
    # Labels of the arcs that were chosen only, of equals the earlier parser's.
    assert inventory.decode(labels) == ("root", "x", "x")
    alone = plain_vote(candidates)
    assert (alone[0].tolist(), inventory.decode(alone[1])) == ([0, 1, 1], ("root", "x", "x"))


@pytest.mark.parametrize("known", [(), ("y", "x", "root")])
@pytest.mark.parametrize("first", [0, 1])
def test_plain_vote_of_two_against_two_is_the_first_parsers(
    known: tuple[str, ...], first: int
) -> None:
    # Parsers 1 and 4 against 2 and 3; whatever ids the labels have.
    trees = [([0, 1, 1], ["root", "x", "x"]), ([0, 1, 2], ["root", "y", "y"])]
    inventory = LabelInventory()
    inventory.encode(known)
    other = 1 - first
    candidates = CandidateList.from_arrays(
        np.array([heads for heads, _ in trees], dtype=np.int32),
        np.array([inventory.encode(labels) for _, labels in trees], dtype=np.int32),
        np.zeros((2, 1)),
        inventory=inventory, sources=("a",), base=first, bases={"b": other, "c": other, "d": first},
    )  # fmt: skip
    heads, labels = plain_vote(candidates)
    assert (heads.tolist(), list(inventory.decode(labels))) == trees[first]


def test_plain_vote_does_not_depend_on_the_other_candidates() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        voters, others = random_list(rng, 3, 8), random_list(rng, 12, 8)
        votes = []
        for heads, labels in (
            (voters.heads, voters.labels),
            (
                np.concatenate([voters.heads, others.heads]),
                np.concatenate([voters.labels, others.labels]),
            ),
        ):
            trees = CandidateList.from_arrays(
                heads, labels, -np.arange(float(len(heads)))[:, None],
                inventory=voters.inventory, sources=("good",), base=0,
                bases={"fair": 1, "poor": 2},
            )  # fmt: skip
            votes.append(plain_vote(trees))
        np.testing.assert_array_equal(votes[0], votes[1])


def test_combiner_learns_whom_to_trust() -> None:
    gold, lists = three_parsers(seed=1, n=150)
    test_gold, test_lists = three_parsers(seed=100, n=60)
    combiner = ArcCombiner.fit(gold, lists)
    voted, combined, parsers = [], [], []
    for s, trees in zip(test_gold, test_lists, strict=True):
        heads, labels = plain_vote(trees)
        voted.append((heads, trees.inventory.decode(labels)))
        longer = combiner.extended(s, trees)
        assert longer.sources == (*SOURCES, COMBINER)
        assert longer.bases.keys() == trees.bases.keys()
        best = int(longer.scores[:, -1].argmax())
        combined.append((longer.heads[best], longer.deprels(best)))
        parsers.append((trees.heads[trees.base], trees.deprels(trees.base)))
        assert not np.isnan(longer.scores[:, -1]).any()
    assert las(test_gold, combined) > las(test_gold, parsers)
    assert las(test_gold, combined) > las(test_gold, voted)


def test_combiner_is_the_same_in_every_run() -> None:
    # That no list is extended by a combiner that learned from it: see test_honest_learning.
    gold, lists = three_parsers(seed=3, n=30)
    steps = []
    combiner, extended = ArcCombiner.fit_apart(
        gold, lists, folds=3, progress=lambda *step: steps.append(step)
    )
    again, same = ArcCombiner.fit_apart(gold, lists, folds=3)
    assert combiner.weights.tobytes() == again.weights.tobytes()
    assert combiner.hashed.tobytes() == again.hashed.tobytes()
    assert combiner.hashed.shape == (2**18,)
    assert [trees.scores.tobytes() for trees in extended] == [t.scores.tobytes() for t in same]
    for trees, longer in zip(lists, extended, strict=True):
        assert longer.sources == (*SOURCES, COMBINER)
        assert longer.n_words == trees.n_words
        assert len(trees) <= len(longer) <= len(trees) + ADDED_TREES
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(UserError, match="at least two candidate lists"):
        ArcCombiner.fit_apart(gold[:1], lists[:1])
    with pytest.raises(ValueError, match="shorter"):
        ArcCombiner.fit(gold, lists[:-1])
    with pytest.raises(ValueError, match="longer"):
        ArcCombiner.fit_apart(gold[:-1], lists)


@pytest.mark.parametrize("apart", [True, False])
def test_combiner_has_nothing_to_learn_where_no_word_has_a_choice(apart: bool) -> None:
    inventory = LabelInventory()
    gold = [sentence("a/X/0/root"), sentence("a/X/0/root b/X/1/dep")]
    lists = [
        CandidateList.build(
            [(s.heads, s.deprels, (0.0, 0.0))], inventory=inventory, sources=("a", "b")
        )
        for s in gold
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if apart:
            combiner, extended = ArcCombiner.fit_apart(gold, lists)
        else:
            combiner = ArcCombiner.fit(gold, lists)
            extended = [combiner.extended(*pair) for pair in zip(gold, lists, strict=True)]
    assert not combiner.weights.any()
    assert not combiner.hashed.any()
    assert combiner.hashed.shape == (2**18,)  # whatever was learned, as in every other model
    # The only tree is certain.
    assert [trees.scores.tolist() for trees in extended] == [[[0.0, 0.0, 0.0]]] * 2


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 1e200])
def test_combiner_of_weights_that_no_training_gives(weight: float) -> None:
    combiner = ArcCombiner.fit(*three_parsers(n=4))
    data = combiner.to_dict()
    assert ArcCombiner.from_dict(data, combiner.hashed).weights.tolist() == data["weights"]
    data["weights"][0] = weight
    with pytest.raises(ValueError, match=r"a weight of combiner is .*, (expected|beyond)"):
        ArcCombiner.from_dict(data, combiner.hashed)


def test_reranker_keeps_its_combiner(tmp_path) -> None:
    gold, lists = three_parsers(seed=4, n=40)
    settings = Settings(bits=12, iterations=2, manual_parts=("arc",))
    combiner, combined = combine_lists(gold, lists, settings)
    reranker, _ = train_reranker(
        gold, combined, settings, schema=Schema.fit(gold), n_threads=1, tuning_folds=2
    )
    assert combiner is not None
    reranker = Reranker.from_bytes(reranker.to_bytes())  # still without
    assert reranker.completed(gold[0], lists[0]) is lists[0]
    object.__setattr__(reranker, "combiner", combiner)
    reranker.to_disk(tmp_path / "model")
    again = Reranker.from_disk(tmp_path / "model")
    for pair in zip(gold, lists, strict=True):
        longer, same = reranker.completed(*pair), again.completed(*pair)
        assert longer.sources[-1] == COMBINER
        assert longer.scores.tobytes() == same.scores.tobytes()
        assert reranker.completed(pair[0], longer) is longer
    rows = [row for *_, row in again.choices(zip(gold, lists, strict=True), n_threads=1)]
    assert len(rows) == len(gold)


def test_lists_of_one_parser_are_not_combined() -> None:
    gold, lists = three_parsers(seed=5, n=4)
    single = [
        CandidateList.from_arrays(
            trees.heads, trees.labels, trees.scores[:, :1],
            inventory=trees.inventory, sources=("good",),
        )
        for trees in lists
    ]  # fmt: skip
    assert combine_lists(gold, single, Settings()) == (None, single)
    assert combine_lists(gold, lists, Settings(combiner=False)) == (None, lists)
