"""Lists made from flat arrays, many at once: each as a plain program says it of one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tk_spacy.ensemble.merging import merge, merge_lists
from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, rescored
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.kbest.list_arrays import arrange_lists, arrange_one
from tk_spacy.kbest.long_sentences import WHOLE_WORDS, list_cut, parse_cut
from tk_spacy.parsers.flat_trees import listed_trees, padded_trees
from tk_spacy.parsers.listing_parser import InventoryIds, flat_trees
from tk_spacy.treebank.conllu import Sentence

NAN = float("nan")
HEADS = {1: [(0,)], 2: [(0, 1), (2, 0)], 3: [(0, 1, 2), (2, 0, 2), (0, 1, 1), (2, 3, 0)]}
N_LABELS = 2
SCORES = st.sampled_from([NAN, -1.0, 0.0, -0.0, 1.0, 2.0, math.inf, -math.inf])

Tree = tuple[tuple[int, ...], tuple[int, ...]]
Part = list[tuple[Tree, tuple[float, ...]]]
"""Trees of one source with its scores."""


@st.composite
def parts(draw: st.DrawFn, columns: Sequence[int]) -> list[Part]:
    """The lists of one sentence; equal trees are common."""
    n = draw(st.sampled_from(sorted(HEADS)))
    trees = st.tuples(st.sampled_from(HEADS[n]), st.tuples(*[st.integers(0, N_LABELS - 1)] * n))
    return [
        draw(st.lists(st.tuples(trees, st.tuples(*[SCORES] * width)), min_size=1, max_size=6))
        for width in columns
    ]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[int], list[list[Part]], list[list[int]], int | None]:
    columns = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    sentences = draw(st.lists(parts(columns), min_size=1, max_size=4))
    own = [
        draw(st.lists(st.integers(0, sum(map(len, of_one)) - 1), min_size=1, max_size=3))
        for of_one in sentences
    ]
    return columns, sentences, own, draw(st.none() | st.integers(1, 8))


def better(one: float, other: float) -> float:
    return other if math.isnan(one) or other > one else one


def plain_list(
    columns: Sequence[int], of_one: list[Part], own: list[int], k: int | None, *, in_turn: bool
) -> tuple[list[Tree], list[list[float]], list[int]]:
    """The trees, their scores, and the rows of the own ones."""
    found: dict[Tree, list[float]] = {}
    trees, ranks = [], []
    for number, part in enumerate(of_one):
        before = sum(columns[:number])
        for place, (tree, scores) in enumerate(part):
            row = found.setdefault(tree, [NAN] * sum(columns))
            for i, score in enumerate(scores, start=before):
                row[i] = better(row[i], score)
            is_own = len(trees) in own
            ranks.append((not is_own, 0 if is_own else place, number, len(trees) != own[0]))
            trees.append(tree)

    def quality(tree: Tree) -> tuple[bool, float]:
        score = found[tree][0]
        return math.isnan(score), 0.0 if math.isnan(score) else -score

    ordered = sorted(found, key=quality)  # stable, as dictionaries keep their order
    if in_turn:
        first = [trees[i] for i in sorted(range(len(trees)), key=lambda i: (*ranks[i], i))]
    else:
        first = [*(trees[i] for i in own), *ordered]
    kept = list(dict.fromkeys(first))[:k]
    result = [tree for tree in ordered if tree in kept]
    places = [result.index(trees[i]) if trees[i] in kept else -1 for i in own]
    return result, [found[tree] for tree in result], places


def arrays_of(sentences: list[list[Part]]) -> dict[str, Any]:
    flat = [item for of_one in sentences for part in of_one for item in part]
    counts = [len(part) for of_one in sentences for part in of_one]
    return {
        "given_heads": np.array([h for (heads, _), _ in flat for h in heads], dtype=np.int32),
        "given_labels": np.array([i for (_, ids), _ in flat for i in ids], dtype=np.int32),
        "given_scores": np.array([s for _, scores in flat for s in scores]),
        "given_starts": np.cumsum([0, *counts], dtype=np.intp),
        "given_lengths": np.array([len(one[0][0][0][0]) for one in sentences], dtype=np.intp),
    }


def assert_is(arranged: Any, expected: tuple[list[Tree], list[list[float]], list[int]]) -> None:
    trees, labels, scores, places = arranged
    assert [
        (tuple(h), tuple(i)) for h, i in zip(trees.heads.tolist(), labels.tolist(), strict=True)
    ] == expected[0]
    np.testing.assert_array_equal(scores, np.array(expected[1]))
    assert places == expected[2]
    assert trees.heads.dtype == labels.dtype == np.int32
    for array in (trees.heads, labels, scores):
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        trees.heads.setflags(write=True)


@given(batches(), st.booleans())
def test_lists_of_a_batch_are_those_of_a_plain_program(batch, in_turn: bool) -> None:
    columns, sentences, own, k = batch
    found = arrange_lists(
        **arrays_of(sentences), columns=columns, own=own, n_labels=N_LABELS, k=k, in_turn=in_turn
    )
    for arranged, of_one, rows in zip(found, sentences, own, strict=True):
        assert_is(arranged, plain_list(columns, of_one, rows, k, in_turn=in_turn))


@given(parts([2]), st.data())
def test_one_list_is_that_of_a_plain_program(of_one: list[Part], data: st.DataObject) -> None:
    (part,) = of_one
    own = data.draw(st.lists(st.integers(0, len(part) - 1), min_size=1, max_size=3))
    k = data.draw(st.none() | st.integers(1, 8))
    heads = np.array([tree[0] for tree, _ in part])
    labels = np.array([tree[1] for tree, _ in part])
    scores = np.array([own_scores for _, own_scores in part])
    found = arrange_one(heads, labels, scores, own, n_labels=N_LABELS, k=k)
    assert_is(found, plain_list([2], of_one, own, k, in_turn=False))


@pytest.mark.parametrize("m", [1, 15, 16, 17, 33, 64, 300])
def test_long_lists_are_sorted_stably(m: int) -> None:
    generator = np.random.default_rng(m)
    scores = generator.integers(0, 7, m).astype(np.float64)
    scores[scores == 3] = NAN
    heads, labels = np.zeros((m, 1), dtype=np.int32), np.arange(m, dtype=np.int32)[:, None]
    _, found, _, places = arrange_one(heads, labels, scores[:, None], [m - 1], n_labels=m)
    order = sorted(range(m), key=lambda i: (math.isnan(scores[i]), -np.nan_to_num(scores[i]), i))
    assert found[:, 0].tolist() == order
    assert places == [order.index(m - 1)]


def test_known_trees_are_put_in_order_alone() -> None:
    heads, labels = np.array([[0, 1], [2, 0], [0, 1]]), np.zeros((3, 2), dtype=np.int32)
    scores = np.array([[1.0], [2.0], [NAN]])
    trees, _, found, places = arrange_one(heads, labels, scores, [2, 0], n_labels=0, known=True)
    assert trees.heads.tolist() == [[2, 0], [0, 1], [0, 1]]
    np.testing.assert_array_equal(found, [[2.0], [1.0], [NAN]])
    assert places == [2, 1]


FINE: dict[str, Any] = {
    "given_heads": np.array([0, 1, 0, 1, 1], dtype=np.int32),
    "given_labels": np.array([0, 1, 0, 1, 1], dtype=np.int32),
    "given_scores": np.array([1.0, 2.0]),
    "given_starts": np.array([0, 1, 2]),
    "given_lengths": np.array([2, 3]),
    "columns": [1],
    "n_labels": 2,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"given_heads": np.zeros(4, dtype=np.int32)}, r"labels must be int32\[4\]"),
        ({"given_heads": np.zeros((5, 1), dtype=np.int32)}, r"heads must be int32\[_\]"),
        ({"given_scores": np.zeros(3)}, "5 heads and 3 scores"),
        ({"given_starts": np.array([0, 2])}, "starts hold 2 numbers, expected 3"),
        ({"given_starts": np.array([1, 1, 2])}, "must ascend from 0"),
        ({"given_starts": np.array([0, 2, 1])}, "must ascend from 0"),
        ({"given_lengths": np.array([3, 3])}, "not as many as"),
        ({"given_lengths": np.array([2**62, 2**62])}, "not as many as"),
        ({"columns": [2**62]}, "not as many as"),
        ({"columns": []}, "the 0 parts of 2 lists"),
        ({"own": [[0]]}, "rows of 1 lists, expected 2"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    assert arrange_lists(**FINE) is not None
    with pytest.raises(ValueError, match=message):
        arrange_lists(**{**FINE, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"given_heads": np.array([0, 1, 0, 1, 0], dtype=np.int32)},
        {"given_heads": np.array([0, 1, 0, 3, 2], dtype=np.int32)},
        {"given_heads": np.array([0, 3, 0, 1, 1], dtype=np.int32)},
        {"given_heads": np.array([0, -1, 0, 1, 1], dtype=np.int32)},
        {"given_labels": np.array([0, 1, 0, 1, 2], dtype=np.int32)},
        {"given_labels": np.array([0, -1, 0, 1, 1], dtype=np.int32)},
        {"n_labels": 0},
        {"given_starts": np.array([0, 2, 2])},
        {"given_lengths": np.array([0, 5])},
        {"columns": [0]},
        {"own": [[0], [1]]},
        {"own": [[0], [-1]]},
    ],
)
def test_what_makes_no_list_makes_none(change: dict[str, Any]) -> None:
    assert arrange_lists(**{**FINE, **change}) is None


def test_no_lists_make_no_lists() -> None:
    nothing = np.zeros(0, dtype=np.int32)
    lengths = np.zeros(0, dtype=np.intp)
    assert arrange_lists(nothing, nothing, np.zeros(0), np.array([0]), lengths, n_labels=1) == []
    one = np.zeros((1, 1), dtype=np.int32)
    assert arrange_one(one[:0], one[:0], np.zeros((0, 1)), [], n_labels=1) is None
    assert arrange_one(one[:, :0], one[:, :0], np.zeros((1, 1)), [0], n_labels=1) is None
    assert arrange_one(one, one, np.zeros((1, 0)), [0], n_labels=1) is None
    assert merge_lists([], k=3) == []
    assert rescored([], np.zeros((0, 1))) == []


# Lists


def same(one: CandidateList, other: CandidateList) -> bool:
    facts = [
        (
            trees.heads.tolist(), trees.labels.tolist(), repr(trees.scores.tolist()),
            trees.sources, trees.base, list(trees.bases.items()), trees.inventory,
        )
        for trees in (one, other)
    ]  # fmt: skip
    return facts[0] == facts[1] and (one.checked is None) == (other.checked is None)


def some_lists(name: str, inventory: LabelInventory, seed: int) -> list[CandidateList]:
    """Lists of sentences of one, two and three words in turn."""
    generator = np.random.default_rng(seed)
    lists = []
    for number in range(12):
        n = number % 3 + 1
        m = int(generator.integers(1, 6))
        heads = np.array([HEADS[n][i] for i in generator.integers(0, len(HEADS[n]), m)])
        labels = generator.integers(0, N_LABELS, (m, n))
        scores = generator.choice([NAN, 1.0, 2.0, 3.0], (m, 1))
        lists.append(
            CandidateList.from_arrays(
                heads, labels, scores, inventory=inventory, sources=(name,),
                base=int(generator.integers(m)), bases={f"{name}-twin": 0} if number % 2 else None,
            )
        )  # fmt: skip
    return lists


def test_flat_lists_are_those_of_each_sentence() -> None:
    inventory = LabelInventory("ab")
    expected, cells = [], []
    for number in range(7):
        n, m = number % 3 + 1, number % 4 + 1
        heads = np.array([HEADS[n][i % len(HEADS[n])] for i in range(m)], dtype=np.int32)
        labels = np.arange(m * n, dtype=np.int32).reshape(m, n) // 3 % 2
        scores = np.arange(2.0 * m).reshape(m, 2)[::-1] % 3
        cells.append((heads, labels, scores))
        expected.append(
            CandidateList.from_arrays(*cells[-1], inventory=inventory, sources=("x", "y"))
        )
    settings: dict[str, Any] = {
        "counts": [len(heads) for heads, _, _ in cells],
        "lengths": [heads.shape[1] for heads, _, _ in cells],
        "inventory": inventory,
    }
    flat = [np.concatenate([own[i].ravel() for own in cells]) for i in (0, 1)]
    scores = np.concatenate([own[2] for own in cells])
    found = CandidateList.from_flat(*flat, scores, sources=["x", "y"], **settings)
    assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    flat[0][1:3] = [2, 1]  # of the second sentence's first tree
    with pytest.raises(CandidateError, match=r"candidate 1 of 2: .*"):
        CandidateList.from_flat(*flat, scores, sources=["x", "y"], **settings)
    with pytest.raises(ValueError, match="scores must be"):
        CandidateList.from_flat(*flat, scores, sources=["x"], **settings)


def test_lists_merged_together_are_those_merged_alone() -> None:
    inventory = LabelInventory("ab")
    proposed = [some_lists(name, inventory, seed) for seed, name in enumerate("xyz")]
    sentences = list(zip(*proposed, strict=True))
    for k in (1, 2, 3, 25):
        together = merge_lists(sentences, k=k)
        assert all(
            same(one, merge(lists, k=k)) for one, lists in zip(together, sentences, strict=True)
        )
    # Others than the first sentence's.
    mixed = [sentences[0], sentences[1][:2], (sentences[2][0].with_sources(["w"]),)]
    found = merge_lists(mixed, k=3)
    assert [trees.sources for trees in found] == [("x", "y", "z"), ("x", "y"), ("w",)]


def test_merging_refuses_what_is_no_list_of_the_same_sentence() -> None:
    inventory = LabelInventory("ab")
    one, two, _ = some_lists("x", inventory, 0)[:3]
    with pytest.raises(ValueError, match="different numbers of words"):
        merge([one, two.with_sources(["y"])], k=3)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        merge([one], k=0)
    cycle = replace(two, heads=np.array([[2, 1]] * len(two), dtype=np.int32))
    with pytest.raises(CandidateError, match="candidate 1 of"):
        merge([cycle], k=3)
    strange = replace(two, labels=np.full(two.labels.shape, 9, dtype=np.int32))
    with pytest.raises(ValueError, match="labels"):
        merge([strange], k=3)


def test_lists_scored_anew_together_are_those_scored_alone() -> None:
    lists = some_lists("x", LabelInventory("ab"), 1)
    lists[3] = replace(lists[3], heads=lists[3].heads.copy())  # not known to be trees
    generator = np.random.default_rng(2)
    scores = [generator.choice([NAN, 1.0, 2.0], trees.scores.shape) for trees in lists]
    found = rescored(lists, np.concatenate(scores))
    for new, trees, own in zip(found, lists, scores, strict=True):
        assert same(new, trees.with_scores(own))
        order = np.argsort(-own[:, 0], kind="stable")
        assert new.heads.tolist() == trees.heads[order].tolist()
        assert new.labels.tolist() == trees.labels[order].tolist()
        np.testing.assert_array_equal(new.scores, own[order])
        assert order[new.base] == trees.base
        assert {name: order[row] for name, row in new.bases.items()} == dict(trees.bases)
    assert found[3].checked is None
    with pytest.raises(ValueError, match="scores must be"):
        rescored(lists, np.concatenate(scores)[1:])
    with pytest.raises(ValueError, match="scores must be"):
        lists[0].with_scores(np.zeros((len(lists[0]), 2)))


def test_other_names_of_sources_change_nothing_else() -> None:
    trees = some_lists("x", LabelInventory("ab"), 3)[5]
    renamed = trees.with_sources(["y"])
    assert same(renamed, replace(trees, sources=("y",)))
    assert renamed.trees is trees.trees
    with pytest.raises(ValueError, match="2 names, expected 1"):
        trees.with_sources("yz")


# Between parsers and lists


@pytest.mark.parametrize("backward", [False, True])
def test_flat_trees_of_a_parser(backward: bool) -> None:
    generator = np.random.default_rng(5)
    lengths, counts, k = [3, 1, 4, 2], [2, 1, 0, 3], 3
    rows = [n + 2 for n in lengths]
    starts = np.cumsum([0, *rows])[:-1]
    heads = generator.integers(0, 9, (sum(rows), k)).astype(np.int32)
    labels = generator.integers(0, 9, (sum(rows), k)).astype(np.int32)
    for start, n in zip(starts, lengths, strict=True):
        heads[start : start + n + 2] %= n + 1
    expected_heads, expected_labels = [], []
    for start, n, count in zip(starts.tolist(), lengths, counts, strict=True):
        for tree in range(count):
            own = heads[start + 1 : start + 1 + n, tree].tolist()
            names = labels[start + 1 : start + 1 + n, tree].tolist()
            if backward:
                own, names = [h and n + 1 - h for h in reversed(own)], names[::-1]
            expected_heads += own
            expected_labels += names
    where = [np.array(values, dtype=np.int32) for values in (starts, rows, counts)]
    found = listed_trees(heads, labels, *where, backward=backward)
    assert [own.tolist() for own in found] == [expected_heads, expected_labels]
    # And back: each tree in the parser's order, after a cell for the root.
    padded_heads, padded_labels = [], []
    for start, n, count in zip(starts.tolist(), lengths, counts, strict=True):
        for tree in range(count):
            padded_heads += [0, *heads[start + 1 : start + 1 + n, tree].tolist()]
            padded_labels += [-1, *labels[start + 1 : start + 1 + n, tree].tolist()]
    sizes = [np.array(values, dtype=np.intp) for values in (counts, lengths)]
    again = padded_trees(*found, *sizes, backward=backward)
    assert [own.tolist() for own in again] == [padded_heads, padded_labels]
    if not backward:
        ends = np.cumsum(np.multiply(counts, lengths))[:-1]
        pairs = [
            (own.reshape(-1, n), ids.reshape(-1, n))
            for own, ids, n in zip(
                np.split(found[0], ends), np.split(found[1], ends), lengths, strict=True
            )
        ]
        assert [own.tolist() for own in flat_trees(pairs)] == [padded_heads, padded_labels]


def test_flat_trees_that_do_not_fit_are_refused() -> None:
    def i32(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int32)

    table = np.zeros((3, 2), dtype=np.int32)
    for where, message in (
        ((i32(0), i32(4), i32(1)), "lengths holds? 4"),
        ((i32(1), i32(3), i32(1)), "beyond the 3 rows"),
        ((i32(0), i32(1), i32(1)), "lengths holds? 1"),
        ((i32(0), i32(3), i32(3)), "counts holds? 3"),
        ((i32(-1), i32(3), i32(1)), "starts holds? -1"),
        ((i32(0), i32(3, 3), i32(1)), r"lengths must be int32\[1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            listed_trees(table, table, *where)
    for counts, lengths, message in (
        ([2], [1], "3 heads, not as many"),
        ([-1], [3], "counts holds? -1"),
        ([1], [0], "lengths holds? 0"),
        ([1, 1], [3], r"lengths must be int64\[2\]"),
        ([2**62] * 2, [2**62] * 2, "counts holds?"),
    ):
        sizes = np.array(counts, dtype=np.intp), np.array(lengths, dtype=np.intp)
        with pytest.raises(ValueError, match=message):
            padded_trees(i32(0, 1, 1), i32(0, 0, 0), *sizes)


def test_labels_get_ids_list_by_list() -> None:
    inventory = LabelInventory(["b"])
    ids = InventoryIds(list("abcd"), inventory)
    flat = np.array([3, 1, 2, 0], dtype=np.int32)
    assert ids(flat, [2]).tolist() == [1, 0, 3, 2]
    assert inventory.names == ["b", "d", "a", "c"]
    whole = InventoryIds(list("dcba"), inventory)
    assert whole(flat.reshape(2, 2)).tolist() == [[2, 3], [0, 1]]
    assert len(inventory) == 4


def test_labels_of_lists_with_several_inventories() -> None:
    tables = LabelTables("_ab".find)
    lists = [
        CandidateList.build([([0, 1], names, 0.0)], inventory=inventory, sources=("x",))
        for names, inventory in (("ab", LabelInventory("a")), ("bz", LabelInventory()))
    ]
    assert tables.flat_labels(lists).tolist() == [1, 2, 2, -1]
    assert tables.flat_labels(lists[:1]).tolist() == [1, 2]


def test_sentences_that_are_short_go_to_the_parser_as_they_are() -> None:
    short = [Sentence.from_columns(forms=["a"]), Sentence.from_columns(forms=["b"])]
    asked = []

    def lists(pieces):
        asked.append(pieces)
        yield from (len(asked) for _ in pieces)

    assert list(list_cut(short, lists, 3)) == [1, 1]
    assert asked[0] is short
    trees = [(np.zeros(1, dtype=np.int32), ("root",))] * 2
    assert (
        list(parse_cut(short, lambda pieces: (t for t, _ in zip(trees, pieces, strict=True)), []))
        == trees
    )
    long = Sentence.from_columns(forms=["a"] * (WHOLE_WORDS + 1))
    sizes = []

    def trees_of(pieces):
        for piece in pieces:
            sizes.append(len(piece))
            yield np.arange(len(piece), dtype=np.int32), ("x",) * len(piece)

    found = list(parse_cut([short[0], long], trees_of, ["x"]))
    assert [len(heads) for heads, _ in found] == [1, WHOLE_WORDS + 1]
    assert len(sizes) > 2
