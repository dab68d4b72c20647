"""Candidate lists: checks, duplicates, order, cut, union, oracle; and the k-best of small cases."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tk_spacy.errors import CandidateError
from tk_spacy.kbest.candidates import BATCH, BATCH_CELLS, CandidateList, LabelInventory, in_batches
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.trees.tree_rows import group_equal, invalid_trees

CHAIN = [0, 1, 2]  # 1 <- 2 <- 3
STAR = [0, 1, 1]
RIGHT_HEADED = [2, 3, 0]
LABELS = ["root", "a", "b"]


def build(trees, **settings) -> CandidateList:
    settings = {"inventory": LabelInventory(), "sources": ("main",), **settings}
    return CandidateList.build(trees, **settings)


def gold(heads=CHAIN, deprels=LABELS) -> Sentence:
    return Sentence.from_columns(forms="x y z".split(), heads=heads, deprels=deprels)


def test_candidates_are_sorted_best_first_and_equal_scores_keep_their_order():
    trees = build([(CHAIN, LABELS, 1.0), (STAR, LABELS, 2.0), (RIGHT_HEADED, LABELS, 1.0)])
    assert trees.heads.tolist() == [STAR, CHAIN, RIGHT_HEADED]
    assert trees.scores[:, 0].tolist() == [2.0, 1.0, 1.0]
    assert trees.base == 1  # the first tree given


def test_candidates_with_equal_heads_and_labels_become_one_with_each_sources_best_score():
    nan = float("nan")
    trees = build(
        [(CHAIN, LABELS, (1.0, nan)), (STAR, LABELS, (1.5, 7.0)), (CHAIN, LABELS, (2.0, 3.0))],
        sources=("main", "other"),
    )
    assert trees.heads.tolist() == [CHAIN, STAR]
    assert trees.scores.tolist() == [[2.0, 3.0], [1.5, 7.0]]


def test_candidates_that_differ_in_one_label_stay_two():
    assert len(build([(CHAIN, LABELS, 1.0), (CHAIN, ["root", "a", "a"], 1.0)])) == 2


def test_candidates_cut_keeps_the_base_tree():
    trees = [(CHAIN, LABELS, -5.0), (STAR, LABELS, 2.0), (RIGHT_HEADED, LABELS, 1.0)]
    cut = build(trees, k=2)
    assert cut.heads.tolist() == [STAR, CHAIN]
    assert cut.base == 1


def test_candidates_arrays_are_read_only_and_typed():
    trees = build([(CHAIN, LABELS, 1.0)])
    assert trees.heads.dtype == trees.labels.dtype == np.int32
    assert trees.scores.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        trees.heads[0, 0] = 1


@pytest.mark.parametrize(
    ("heads", "reason"),
    [([2, 1, 0], "cycle"), ([0, 0, 1], "root"), ([2, 3, 1], "root"), ([0, 4, 1], "4")],
)
def test_candidates_reject_what_is_no_tree(heads, reason):
    with pytest.raises(CandidateError, match=rf"candidate 2 of 2: .*{reason}"):
        build([(CHAIN, LABELS, 1.0), (heads, LABELS, 0.0)])


def test_candidates_reject_trees_of_different_length():
    with pytest.raises(CandidateError, match="different numbers of words"):
        build([(CHAIN, LABELS, 1.0), ([0, 1], ["root", "a"], 0.0)])


def test_candidates_reject_an_empty_list():
    with pytest.raises(CandidateError, match="at least one"):
        build([])


def test_union_keeps_the_first_lists_main_source_and_base():
    inventory = LabelInventory()
    first = build([(STAR, LABELS, -3.0), (CHAIN, LABELS, 0.0)], inventory=inventory)
    second = build(
        [(CHAIN, LABELS, 9.0), (RIGHT_HEADED, LABELS, 8.0)], inventory=inventory, sources=("file",)
    )
    both = CandidateList.union([first, second])
    assert both.sources == ("main", "file")
    assert both.heads.tolist() == [CHAIN, STAR, RIGHT_HEADED]
    np.testing.assert_array_equal(both.scores, [[0.0, 9.0], [-3.0, np.nan], [np.nan, 8.0]])
    assert both.heads[both.base].tolist() == STAR


def test_union_needs_one_inventory():
    with pytest.raises(ValueError, match="share one LabelInventory"):
        CandidateList.union([build([(CHAIN, LABELS, 1.0)]), build([(CHAIN, LABELS, 1.0)])])


def test_oracle_takes_the_nearest_heads_then_the_fewer_wrong_labels_then_the_score():
    near = [0, 1, 1]
    trees = build(
        [
            (RIGHT_HEADED, LABELS, 9.0),
            (near, ["root", "b", "b"], 5.0),
            (near, LABELS, 4.0),
            ([0, 3, 1], LABELS, 3.0),
        ]
    )
    assert trees.oracle(gold()) == 2


def test_oracle_prefers_the_higher_score_among_equals():
    trees = build([([0, 3, 1], LABELS, 1.0), (STAR, LABELS, 2.0), ([3, 1, 0], LABELS, 3.0)])
    assert trees.heads[trees.oracle(gold())].tolist() == STAR


def test_oracle_labelled_counts_words_with_head_and_label_right():
    trees = build([(CHAIN, ["x", "y", "z"], 1.0), (STAR, LABELS, 0.0)])
    assert trees.oracle(gold()) == 0
    assert trees.oracle(gold(), labelled=True) == 1


def test_oracle_names_a_sentence_of_another_length():
    with pytest.raises(ValueError, match="gold has 2 words, the candidates 3"):
        build([(CHAIN, LABELS, 1.0)]).oracle(
            Sentence.from_columns(forms="x y".split(), heads=[0, 1], deprels=["root", "a"])
        )


def test_inventory_ids_never_change():
    inventory = LabelInventory(["root", "nsubj"])
    assert [inventory.add(name) for name in ("nsubj", "obj", "root", "obj")] == [1, 2, 0, 2]
    assert inventory.names == ["root", "nsubj", "obj"]
    assert inventory.encode(["obj", "iobj"], add=False).tolist() == [2, -1]
    assert inventory.decode([2, 0]) == ("obj", "root")
    assert inventory.get("iobj") == -1


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_invalid_trees_agree_with_check_tree_on_every_head_array(n):
    everything = np.array(list(itertools.product(range(-1, n + 2), repeat=n)), dtype=np.int32)
    expected = [row for row, heads in enumerate(everything) if check_tree(heads) is not None]
    assert invalid_trees(everything).tolist() == expected


@given(st.lists(st.integers(0, 40), min_size=40, max_size=40))
def test_invalid_trees_agree_with_check_tree_on_long_sentences(heads):
    # Word i + 1 may hang on any other word; most of these have long cycles or several roots.
    row = np.array([heads], dtype=np.int32)
    assert bool(len(invalid_trees(row))) == (check_tree(row[0]) is not None)


def test_invalid_trees_of_several_rows_do_not_mix():
    rows = np.array([[2, 1, 0], [2, 0, 2], [0, 0, 1], [3, 1, 0], [2, 3, 1], [4, 0, 1]])
    assert invalid_trees(rows).tolist() == [0, 2, 4, 5]
    assert invalid_trees(np.zeros((2, 0), dtype=np.int32)).tolist() == [0, 1]
    assert invalid_trees(np.zeros((0, 3), dtype=np.int32)).tolist() == []


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), max_size=40))
def test_group_equal_numbers_trees_as_a_dictionary_does(rows):
    table = np.array(rows, dtype=np.int32).reshape(len(rows), 4)
    group, first = group_equal(table[:, :2], table[:, 2:])
    numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    assert group.tolist() == [numbers[row] for row in rows]
    assert first.tolist() == [rows.index(row) for row in numbers]


def test_group_equal_refuses_labels_of_other_trees():
    with pytest.raises(ValueError, match=r"labels must be int32\[2, 3\], got int32 of"):
        group_equal(np.zeros((2, 3), dtype=np.int32), np.zeros((2, 2), dtype=np.int32))


def test_invalid_trees_accept_the_longest_chain():
    for n in (1, 2, 3, 7, 8, 9, 200):
        assert not len(invalid_trees(np.arange(n, dtype=np.int32)[None]))


def test_batches_hold_few_sentences_and_few_cells():
    sizes = [1] * 600 + [BATCH_CELLS // 2] * 3 + [2 * BATCH_CELLS, 5, BATCH_CELLS]
    batches = list(in_batches(iter(sizes), lambda size: size))
    assert [size for batch in batches for size in batch] == sizes
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 89, 2, 1, 1, 1]
    assert list(in_batches([], len)) == []
