"""Many lists in one go against each by itself, and compiled passes against plain ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_list_features import plain_list_features
from test_combiner import random_list
from test_frames import random_trees

from tk_spacy.ensemble.combiner.arc_features import LOG_FLOOR, ArcFeatures
from tk_spacy.ensemble.combiner.arcs import TEMPERATURES, ListArcs, weights_of_lists
from tk_spacy.ensemble.combiner.learning import arc_log_probabilities
from tk_spacy.ensemble.combiner.list_tables import arc_tables, list_weights
from tk_spacy.ensemble.combiner.list_trees import extended_rows
from tk_spacy.ensemble.combiner.model import ArcCombiner
from tk_spacy.ensemble.combiner.reparsing import best_trees
from tk_spacy.features.encoder import ListEncoder
from tk_spacy.features.list_columns import list_columns
from tk_spacy.features.list_features import LIST_FEATURES, ListFeatures
from tk_spacy.features.node_ids import node_ids
from tk_spacy.features.part_lists import ListTrees
from tk_spacy.features.part_types import GRAND_TRI_SIBLING, PART_TYPES
from tk_spacy.features.parts import (
    contested_parts,
    extract_frames,
    extract_parts,
    extract_spans,
)
from tk_spacy.features.schema import Schema
from tk_spacy.features.templates import (
    FEATURE_TYPES,
    FRAME,
    SPAN,
    add_feature_counts,
    add_scores,
    add_sentence_scores,
    type_code,
)
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import (
    KINDS,
    WordFacts,
    count_violations_of_lists,
    relation_numbers,
    violations,
)
from tk_spacy.trees.tree_rows import CheckedTrees
from tk_spacy.trees.violations import count_bits

SIZES = [(1, 1), (5, 1), (1, 7), (6, 9), (3, 4), (9, 2)]
"""Trees and words of lists."""
ODD = (np.nan, np.inf, -np.inf)


def same(one: object, other: object) -> bool:
    """Whether two arrays are equal to the bit."""
    one, other = np.asarray(one), np.asarray(other)
    return (one.shape, one.dtype, one.tobytes()) == (other.shape, other.dtype, other.tobytes())


def odd_lists(rng: np.random.Generator, n_lists: int) -> list[CandidateList]:
    """Lists of two sources, of one tree or one word among them, with scores that are no numbers."""
    lists = []
    for number in range(n_lists):
        k, n = SIZES[number % len(SIZES)]
        trees = random_list(rng, k, n)
        scores = trees.scores.copy()
        scores[rng.random(scores.shape) < 0.3] = rng.choice(ODD)
        if number % 5 == 4:
            scores[:, 1] = np.nan
        if number % 4 == 3:
            scores[:] = 1.0
        bases = {"b": int(rng.integers(len(trees)))} if number % 2 else {}
        lists.append(replace(trees, scores=scores, base=len(trees) - 1, bases=bases))
    return lists


def words(rng: np.random.Generator, n: int) -> Sentence:
    return Sentence.from_columns(
        forms=[f"f{i}" for i in rng.integers(5, size=n)],
        upos=[("NOUN", "VERB", "ADP")[i] for i in rng.integers(3, size=n)],
        feats=[("_", "A=b", "A=c|B=d")[i] for i in rng.integers(3, size=n)],
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("contested", [False, True])
def test_parts_of_many_lists_are_those_of_each(seed: int, contested: bool) -> None:
    rng = np.random.default_rng(seed)
    trees = [random_trees(rng, k, n) for k, n in SIZES]
    fields = [rng.integers(3, 6, size=(n + 2, 6)).astype(np.int32) for _, n in SIZES]
    table = np.array([0, 0, 0, 9, 7, 8, 11], dtype=np.int32)  # other ids of the labels
    heads = [CheckedTrees(own) for own, _ in trees]
    lists = ListTrees(heads, [labels for _, labels in trees], [table] * len(trees))
    of_all = {kind.name: lists.parts(kind, contested=contested) for kind in PART_TYPES.values()}
    of_all[GRAND_TRI_SIBLING.name] = lists.parts(GRAND_TRI_SIBLING, contested=contested)
    of_all[FRAME] = lists.frames(np.concatenate(fields), contested=contested)
    of_all[SPAN] = lists.spans(contested=contested)
    for name, (rows, members, counts, starts) in of_all.items():
        row = member = start = 0
        for i, (own, labels) in enumerate(trees):
            ids = table[labels]
            if name == FRAME:
                expected = extract_frames(fields[i], own, ids)
            elif name == SPAN:
                expected = extract_spans(own, ids)
            else:
                kind = GRAND_TRI_SIBLING if name == GRAND_TRI_SIBLING.name else PART_TYPES[name]
                expected = extract_parts(own, ids, kind)
            if contested:
                expected = contested_parts(*expected)
            n_rows, n_members = counts[i].tolist()
            assert same(rows[row : row + n_rows], expected[0])
            assert same(starts[start : start + len(own) + 1], expected[1])
            assert same(members[member : member + n_members], expected[2])
            row, member, start = row + n_rows, member + n_members, start + len(own) + 1
        assert (row, member, start) == (len(rows), len(members), len(starts))


@pytest.mark.parametrize("seed", range(20))
def test_contested_parts_are_those_that_some_tree_lacks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heads, labels = random_trees(rng, int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    rows, starts, members = extract_parts(heads, labels, PART_TYPES["arc"])
    sets = [set(members[starts[j] : starts[j + 1]].tolist()) for j in range(len(heads))]
    kept = sorted(set().union(*sets) - set.intersection(*sets))
    new_rows, new_starts, new_members = contested_parts(rows, starts, members)
    assert same(new_rows, rows[kept])
    for j in range(len(heads)):
        own = [kept.index(i) for i in members[starts[j] : starts[j + 1]].tolist() if i in kept]
        assert new_members[new_starts[j] : new_starts[j + 1]].tolist() == own


def test_no_lists_have_no_parts() -> None:
    rows, members, counts, starts = ListTrees([], [], []).parts(PART_TYPES["arc"])
    assert [len(item) for item in (rows, members, counts, starts)] == [0, 0, 0, 0]


def test_trees_of_lists_refuse_what_does_not_fit() -> None:
    heads, labels = np.array([[0, 1]], np.int32), np.array([[0, 2]], np.int32)
    table = np.arange(3, dtype=np.int32)
    trees = CheckedTrees(heads)
    with pytest.raises(ValueError, match=r"labels\[0, 1\] is 2, expected 0 to 1"):
        ListTrees([trees], [labels], [table[:2]])
    with pytest.raises(ValueError, match=r"labels must be int32\[1, 2\]"):
        ListTrees([trees], [labels[:, :1]], [table])
    with pytest.raises(ValueError, match="trees of 1 lists, labels of 2 and 1 tables"):
        ListTrees([trees], [labels, labels], [table])
    with pytest.raises(TypeError):
        ListTrees([heads], [labels], [table])
    lists = ListTrees([trees], [labels], [table])
    with pytest.raises(ValueError, match=r"fields must be int32\[4, _\]"):
        lists.frames(np.zeros((3, 6), np.int32))
    with pytest.raises(ValueError, match="more than 2 columns"):
        lists.frames(np.zeros((4, 2), np.int32))
    with pytest.raises(ValueError, match="expected 0 to"):
        ListTrees([trees], [labels], [table - 2]).frames(np.zeros((4, 6), np.int32))


@pytest.mark.parametrize("seed", range(10))
def test_node_ids_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = (rng.integers(0, 5, size=4) + 2).astype(np.int32)
    fields = rng.integers(0, 4, size=(int(lengths.sum()), 3)).astype(np.int32)
    properties = np.stack(
        [
            rng.integers(0, 3, 9), rng.integers(-1, 2, 9), rng.integers(-1, 3, 9),
            rng.integers(-1, 2, 9), np.full(9, 4),
        ],
        axis=1,
    ).astype(np.int32)  # fmt: skip
    found = node_ids(fields, lengths, properties)
    start = 0
    for length in lengths.tolist():
        own = fields[start : start + length].tolist()

        def value(row: int, field: int, offset: int, own: list[list[int]] = own) -> int:
            if offset == 0:
                return own[row][field]
            if row in (0, len(own) - 1):  # the root and the boundary node
                return 0
            return own[row + offset or -1][field]  # beyond the first word the last row

        for row in range(length):
            expected = []
            for first, at, second, second_at, factor in properties.tolist():
                one = value(row, first, at)
                if second >= 0:
                    other = value(row, second, second_at)
                    one = one * factor + other if one and other else 0
                expected.append(one)
            assert found[start + row].tolist() == expected
        start += length


def test_node_ids_refuse_what_does_not_fit() -> None:
    fields, lengths = np.zeros((3, 2), np.int32), np.array([3], np.int32)
    fine = np.array([[0, 0, -1, 0, 0]], np.int32)
    assert node_ids(fields, lengths, fine).tolist() == [[0]] * 3
    for bad in ([[2, 0, -1, 0, 0]], [[-1, 0, -1, 0, 0]], [[0, 0, 2, 0, 0]], [[0, 0, -2, 0, 0]]):
        with pytest.raises(ValueError, match="properties are of fields"):
            node_ids(fields, lengths, np.array(bad, np.int32))
    with pytest.raises(ValueError, match="beyond the neighbours"):
        node_ids(fields, lengths, np.array([[0, 2, -1, 0, 0]], np.int32))
    for other in ([2], [1, 2], [4, -1]):
        with pytest.raises(ValueError, match="sum to 3 rows"):
            node_ids(fields, np.array(other, np.int32), fine)


@pytest.mark.parametrize("extras", [(), ("suffix1",)])
def test_many_sentences_are_encoded_as_each(extras: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    sentences = [words(rng, n) for n in (1, 3, 8, 2)]
    schema = Schema.fit(sentences[:3], extras=extras)
    for sentence, encoded in zip(sentences, schema.encode_all(sentences), strict=True):
        alone = schema.encode(sentence)
        assert same(encoded.nodes, alone.nodes)
        assert same(encoded.fields, alone.fields)
        assert same(schema.encode_fields(sentence)[:, : schema.n_columns], alone.fields)
    assert schema.encode_all([]) == []


def test_many_lists_are_encoded_as_each() -> None:
    rng = np.random.default_rng(1)
    lists = odd_lists(rng, 12)
    sentences = [words(rng, trees.n_words) for trees in lists]
    features = ListFeatures(groups=LIST_FEATURES, scales={"a": 0.5, "b": 2.0})
    encoder = ListEncoder(
        Schema.fit(sentences, labels=["root", "l1"]),
        kernel_parts=["arc", "tri-sibling"],
        manual_parts=["arc", "grand-tri-sibling", FRAME, SPAN],
        list_features=features,
    )
    pairs = list(zip(sentences, lists, strict=True))
    for pair, encoded in zip(pairs, encoder.encode_all(pairs), strict=True):
        alone = encoder.encode(*pair)
        assert encoded.n_candidates == len(pair[1])
        assert encoded.kernel[0] is encoded.manual[0]
        assert same(encoded.listed, alone.listed)
        assert same(encoded.sentence.nodes, alone.sentence.nodes)
        for kind in ("kernel", "manual"):
            for own, other in zip(getattr(encoded, kind), getattr(alone, kind), strict=True):
                for name in ("rows", "slots", "starts", "members"):
                    assert same(getattr(own, name), getattr(other, name))
    assert encoder.encode_all([]) == []
    with pytest.raises(ValueError, match="candidates have 7 words, the sentence has 1"):
        encoder.encode_all([pairs[0], (sentences[0], lists[2])])


@pytest.mark.parametrize("seed", range(6))
def test_list_features_of_many_lists_are_the_plain_ones_to_the_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = [*odd_lists(rng, 24), random_list(rng, 300, 40)]
    scales = {"b": 0.3, "unknown": 1.0, "a": 2.0}
    both = ListFeatures(groups=LIST_FEATURES, scales=scales, factor=0.7)
    n_scores = len(replace(both, groups=("scores",)).names)
    apart = [replace(both, groups=(name,)).encode_all(lists) for name in LIST_FEATURES]
    for i, (trees, found) in enumerate(zip(lists, both.encode_all(lists), strict=True)):
        assert same(found, plain_list_features(trees, scales, 0.7))
        assert same(apart[0][i], found[:, :n_scores])
        assert same(apart[1][i], found[:, n_scores:])


def test_list_columns_refuse_what_does_not_fit() -> None:
    def columns(**changed: object) -> list[np.ndarray]:
        given = {
            "heads": [np.array([[0, 1]], np.int32)], "labels": [np.array([[0, 1]], np.int32)],
            "scores": [np.zeros((1, 1))], "columns": np.array([[0]], np.int32),
            "bases": np.array([0], np.int32), "scales": np.ones(1), "temperatures": np.ones(1),
            "factor": 1.0,
        }  # fmt: skip
        return list_columns(**{**given, **changed}, of_scores=True, of_shares=True)

    assert columns()[0].shape == (1, 26)
    for changed, message in (
        ({"columns": np.array([[1]], np.int32)}, "column 1 of 1"),
        ({"columns": np.array([[-2]], np.int32)}, "column -2 of 1"),
        ({"bases": np.array([1], np.int32)}, "base 1 of 1"),
        ({"bases": np.zeros(2, np.int32)}, "bases must be"),
        ({"heads": [np.zeros((0, 2), np.int32)]}, r"labels must be int32\[0, 2\]"),
        ({"scores": [np.zeros((2, 1))]}, "scores must be"),
        ({"labels": []}, "labels of 0"),
    ):
        with pytest.raises(ValueError, match=message):
            columns(**changed)


@pytest.mark.parametrize("seed", range(4))
def test_arc_tables_of_many_lists_are_the_plain_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = odd_lists(rng, 12)
    features = ArcFeatures(scales={"b": 0.3, "unknown": 1.0, "a": 2.0})
    pairs = [(words(rng, trees.n_words), trees) for trees in lists]
    weights = weights_of_lists(lists, features.scales)
    each = len(TEMPERATURES) + 1
    for pair, found, own in zip(pairs, features.encode_all(pairs), weights, strict=True):
        arcs = ListArcs.of(pair[1])
        for name in ("words", "heads", "labels", "of_tree", "with_head", "starts"):
            assert same(getattr(found.arcs, name), getattr(arcs, name))
        # Shares are checked one by one elsewhere.
        labelled, heads = arcs.shares(own)
        votes = [
            (shares[each - 1 :: each] > 0).sum(axis=0, keepdims=True)
            for shares in (labelled, heads)
        ]
        logs = [np.log(shares + LOG_FLOOR) for shares in (labelled, heads)]
        assert same(
            found.dense, np.concatenate([labelled, heads, *logs, *votes]).T.astype(np.float32)
        )
        assert same(found.hashed, features.encode(*pair).hashed)
    assert features.encode_all([]) == []


def test_weights_without_an_own_tree_are_those_of_the_best_scored() -> None:
    nan, inf = np.nan, np.inf
    scores = np.array([[nan, nan, nan, 1], [-inf, 2, nan, 3], [-inf, 2, nan, inf]])
    (found,) = list_weights(
        [scores], np.array([[0, 1, 2, 3, -1]]), np.full((1, 5), -1), np.ones(5), np.ones(1)
    )
    third = [1 / 3] * 3
    assert found[1::2].tolist() == [[1, 0, 0], [0, 1, 0], third, [0, 0, 1], third]
    softmax = np.exp([1.0 - 3, 0, -inf])
    assert found[::2].tolist() == [
        third, [0, 0.5, 0.5], third, (softmax / softmax.sum()).tolist(), third
    ]  # fmt: skip
    for columns, own in (([[4]], [[0]]), ([[-2]], [[0]]), ([[0]], [[3]]), ([[0]], [[-2]])):
        with pytest.raises(ValueError, match="source 0 of list 0"):
            list_weights([scores], np.array(columns), np.array(own), np.ones(1), np.ones(1))


def test_arc_tables_refuse_what_does_not_fit() -> None:
    def tables(**changed: object) -> object:
        given = {
            "heads": [np.array([[0, 1]], np.int32)], "labels": [np.array([[0, 1]], np.int32)],
            "weights": [np.ones((2, 1))], "label_codes": [np.zeros(2, np.uint64)],
            "tag_codes": np.zeros(3, np.uint64), "every": 2,
        }  # fmt: skip
        return arc_tables(**{**given, **changed}, nearest=6, bits=18, floor=0.1)

    tables()
    for changed, message in (
        ({"heads": [np.array([[0, 3]], np.int32)]}, r"heads\[0, 1\] is 3"),
        ({"labels": [np.array([[0, 2]], np.int32)]}, r"labels\[0, 1\] is 2"),
        ({"weights": [np.ones((2, 2))]}, "weights must be"),
        ({"tag_codes": np.zeros(2, np.uint64)}, "2 codes of tags, expected 3"),
        ({"every": 3}, "every is 3 of 2 rows"),
        ({"label_codes": []}, "codes of 0"),
    ):
        with pytest.raises(ValueError, match=message):
            tables(**changed)


@pytest.mark.parametrize("seed", range(4))
def test_lists_are_extended_by_the_best_trees_of_their_arcs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = odd_lists(rng, 12)
    arcs = [ListArcs.of(trees) for trees in lists]
    scores = [np.round(rng.normal(size=len(own)), 1) for own in arcs]  # with equals among them
    given = [np.zeros((1, lists[1].n_words), np.int32) if i == 1 else None for i in range(12)]
    found = extended_rows(
        [(own.heads, own.labels, own.with_head, own.of_tree) for own in arcs],
        np.concatenate(scores),
        [(trees.heads, trees.labels, trees.scores) for trees in lists],
        given,
        4,
    )
    for trees, own, values, mine, (heads, labels, sums) in zip(
        lists, arcs, scores, given, found, strict=True
    ):
        more = best_trees(own, values, 4) if mine is None else mine
        rows = np.concatenate([own.of_tree, more])
        assert same(heads, own.heads[rows])
        assert same(labels, own.labels[rows])
        assert same(sums[:, -1], values[rows].sum(axis=1))
        assert same(sums[: len(trees), :-1], trees.scores)
        assert np.isnan(sums[len(trees) :, :-1]).all()


def test_extended_rows_refuse_what_does_not_fit() -> None:
    arcs = ListArcs.of_trees(np.array([[0, 1]], np.int32), np.array([[0, 1]], np.int32))
    own = (arcs.heads, arcs.labels, arcs.with_head, arcs.of_tree)
    trees = (np.array([[0, 1]], np.int32), np.array([[0, 1]], np.int32), np.zeros((1, 1)))
    heads, _, scores = extended_rows([own], np.zeros(2), [trees], [None], 3)[0]
    assert heads.tolist() == [[0, 1], [0, 1]]
    assert scores[:, 1].tolist() == [0, 0]
    for wrong in (np.nan, np.inf, -np.inf, 2e300):
        with pytest.raises(ValueError, match="no number up to 1e"):
            extended_rows([own], np.array([0.0, wrong]), [trees], [None], 3)
    for values in (np.zeros(1), np.zeros(3)):
        with pytest.raises(ValueError, match="scores"):
            extended_rows([own], values, [trees], [None], 3)
    with pytest.raises(ValueError, match=r"added\[0, 0\] is 2"):
        extended_rows([own], np.zeros(2), [trees], [np.array([[2, 0]], np.int32)], 3)
    with pytest.raises(ValueError, match="0 to add"):
        extended_rows([own], np.zeros(2), [trees], [None], 0)


def test_combiner_extends_many_lists_as_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    lists = odd_lists(rng, 12)
    pairs = [(words(rng, trees.n_words), trees) for trees in lists]
    features = ArcFeatures(scales={"a": 1.0, "b": 2.0})
    combiner = ArcCombiner(
        features=features, weights=rng.normal(size=features.width), hashed=rng.normal(size=1 << 18)
    )
    many = combiner.extended_all(pairs)
    monkeypatch.setattr("tk_spacy.kbest.passes.CELLS", 30)
    in_parts = combiner.extended_all(pairs)
    for (sentence, trees), *both in zip(pairs, many, in_parts, strict=True):
        alone = combiner.extended(sentence, trees)
        table = features.encode(sentence, trees)
        values = arc_log_probabilities(
            table.dense, table.hashed, table.arcs.starts, combiner.weights, combiner.hashed
        )
        for found in both:
            assert (found.sources, found.base) == (("a", "b", "combiner"), alone.base)
            for name in ("heads", "labels", "scores"):
                assert same(getattr(found, name), getattr(alone, name))
        best = alone.scores[:, 2].max()
        assert best == values[best_trees(table.arcs, values, 1)[0]].sum()
    assert combiner.extended_all([]) == []


@pytest.mark.parametrize("seed", range(6))
def test_violations_of_many_lists_are_those_of_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["root", "punct", "nsubj", "obj", "case", "conj", "advmod", "obl", "strange"]
    lists, facts = [], []
    for k, n in SIZES:
        heads, labels = random_trees(rng, k, n)
        lists.append((heads, (labels + rng.integers(6, size=labels.shape)).astype(np.int32)))
        tags = [("NOUN", "PUNCT", "ADP", "PROPN")[i] for i in rng.integers(4, size=n)]
        facts.append(WordFacts.of_columns(tags, ["_"] * n, ["_"] * n))
    names += [f"more{i}" for i in range(9)]
    numbers = relation_numbers(tuple(names))
    heads, labels = zip(*lists, strict=True)
    for kinds in (KINDS, KINDS[5:1:-1], KINDS[:1], ()):
        found = count_violations_of_lists(heads, labels, [numbers] * len(lists), facts, kinds)
        for own, (h, lab), words_of in zip(found, lists, facts, strict=True):
            at = violations(h, lab, names, words_of).at
            none = np.zeros(h.shape, dtype=np.bool_)
            expected = [at.get(kind, none).sum(axis=1).astype(np.int32) for kind in kinds]
            assert same(own, np.array(expected, dtype=np.int32).reshape(-1, len(h)).T.copy())
    assert count_violations_of_lists([], [], [], []) == []


def test_violations_of_many_lists_refuse_what_does_not_fit() -> None:
    heads, labels = np.array([[0, 1]], np.int32), np.array([[0, 1]], np.int32)
    numbers = relation_numbers(("root", "obj"))
    facts = WordFacts.of_columns(["NOUN"] * 2, ["_"] * 2, ["_"] * 2)
    (found,) = count_violations_of_lists([heads], [labels], [numbers], [facts])
    assert found.shape == (1, len(KINDS))
    with pytest.raises(ValueError, match=r"labels\[0, 1\] is 1, expected 0 to 0"):
        count_violations_of_lists([heads], [labels], [numbers[:1]], [facts])
    with pytest.raises(ValueError, match=r"heads\[0, 0\] is 3"):
        count_violations_of_lists([heads + 3], [labels], [numbers], [facts])
    with pytest.raises(ValueError, match=r"misfits must be uint64\[3\]"):
        count_violations_of_lists(
            [np.zeros((1, 3), np.int32)], [np.zeros((1, 3), np.int32)], [numbers], [facts]
        )
    with pytest.raises(ValueError, match="labels of 0"):
        count_violations_of_lists([heads], [], [numbers], [facts])
    with pytest.raises(ValueError, match="kinds have the numbers"):
        count_bits(np.zeros((1, 2), np.uint64), [64])


@pytest.mark.parametrize("name", [*FEATURE_TYPES])
def test_scores_of_parts_are_sums_of_weights_in_order_to_the_bit(name: str) -> None:
    """Of several sentences with more parts than are scored at a time, on any number of threads."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=1 << 12)
    fields, rows, expected = [], [], []
    for k, n in ((9, 12), (1, 1), (5, 7)):
        heads, labels = random_trees(rng, k, n)
        fields.append(rng.integers(0, 5, size=(n + 2, 7)).astype(np.int32))
        if name == FRAME:
            own = extract_frames(fields[-1], heads, labels)[0]
        elif name == SPAN:
            own = extract_spans(heads, labels)[0]
        else:
            kind = GRAND_TRI_SIBLING if name == GRAND_TRI_SIBLING.name else PART_TYPES[name]
            own = extract_parts(heads, labels, kind)[0]
        rows.append(own)
        scores = []
        for i in range(len(own)):
            ids = add_feature_counts(
                fields[-1], own, np.array([i], np.int32), np.ones(1, np.int32), type_code(name),
                np.zeros(1 << 12),
            )  # fmt: skip
            total = 0.0
            for number in ids.tolist():
                total += weights[number]
            scores.append(0.5 + total)
        expected.append(np.array(scores))
    for n_threads in (1, 3):
        out = [np.full(len(own), 0.5) for own in rows]
        add_scores(fields, rows, name, weights, out, n_threads=n_threads)
        assert all(same(*pair) for pair in zip(out, expected, strict=True))
    for own, parts, wanted in zip(fields, rows, expected, strict=True):
        alone = np.full(len(parts), 0.5)
        add_sentence_scores(own, parts, type_code(name), weights, alone)
        assert same(alone, wanted)
