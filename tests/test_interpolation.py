"""The weights of the parsers' scores beside the reranker's."""

from __future__ import annotations

import numpy as np
import pytest

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.kbest.scores import filled
from tk_spacy.reranker.interpolation import PAPER_GRID, Combination, TuningList, tune


def tuning_list(sources, reranker, correct):
    correct = np.asarray(correct, dtype=float)
    return TuningList(
        sources=np.asarray(sources, dtype=float).reshape(len(correct), -1),
        reranker=np.asarray(reranker, dtype=float),
        correct=np.stack([correct, correct], axis=1),
    )


def test_combination_weighs_a_source_that_is_right_over_a_reranker_that_is_wrong():
    lists = [tuning_list([3, 1], [1, 2], [5, 0]), tuning_list([9, 2], [0, 3], [7, 1])]
    tuned = tune(lists, sources=["good"])
    chosen = [
        int((x.reranker / tuned.reranker_scale + x.sources[:, 0] * tuned.betas["good"]
             / tuned.scales["good"]).argmax())
        for x in lists
    ]  # fmt: skip
    assert chosen == [0, 0]
    assert tuned.scales["good"] == pytest.approx((1.0 + 3.5) / 2)
    assert tuned.reranker_scale == pytest.approx((0.5 + 1.5) / 2)


def test_combination_gives_a_wrong_source_no_weight_worth_speaking_of():
    lists = [tuning_list([[1, 5], [2, 1]], [1, 2], [0, 5])]
    tuned = tune(lists, sources=["good", "bad"])
    final = lists[0].reranker / tuned.reranker_scale + sum(
        lists[0].sources[:, j] * tuned.betas[s] / tuned.scales[s]
        for j, s in enumerate(("good", "bad"))
    )
    assert final.argmax() == 1


def test_combination_without_tuning_adds_half_the_combiners_score():
    inventory = LabelInventory()
    trees = [([0, 1], ["root", "x"], (2.0, -1.0)), ([2, 0], ["x", "root"], (1.0, -4.0))]
    candidates = CandidateList.build(trees, inventory=inventory, sources=("parser", "combiner"))
    own = np.array([3.0, 4.0])
    for sources, expected in (
        (("parser", "combiner"), own + 0.5 * np.array([-1.0, -4.0])),
        (("parser",), own),
    ):
        combination = Combination.untuned(sources, combiner="combiner")
        np.testing.assert_array_equal(combination.final(candidates, own), expected)


def test_combination_takes_the_middle_of_equally_good_weights():
    # Any weight from 0 to 3 is as good: the paper's grid has its middle at 1.5.
    tuned = tune([tuning_list([1, 1], [2, 1], [1, 0])], sources=["flat"], paper_grid=True)
    assert tuned.betas["flat"] == PAPER_GRID[len(PAPER_GRID) // 2] == 1.5


def test_combination_is_the_papers_formula_up_to_scale():
    inventory = LabelInventory()
    candidates = CandidateList.build(
        [([0, 1], ["root", "x"], 2.0), ([2, 0], ["x", "root"], 1.0)],
        inventory=inventory,
        sources=["s"],
    )
    combination = Combination({"s": 0.5}, {"s": 4.0}, reranker_scale=10.0)
    final = combination.final(candidates, np.array([1.0, 3.0]))
    np.testing.assert_allclose(final, [0.1 + 0.25, 0.3 + 0.125])
    assert Combination.from_dict(combination.to_dict()) == combination


def test_combination_scores_that_are_missing_count_as_the_lowest():
    assert filled(np.array([1.0, np.nan, -2.0])).tolist() == [1.0, -2.0, -2.0]
    assert filled(np.array([np.nan, np.nan])).tolist() == [0.0, 0.0]


# The paper's own tuning: its grid, raw scores, UAS


def raw_list(base, reranker, labelled, heads):
    return TuningList(
        sources=np.array(base, dtype=float)[:, None],
        reranker=np.array(reranker, dtype=float),
        correct=np.array([labelled, heads], dtype=float).T,
    )


# The base score has the first tree 10 ahead, the reranker the second one, by 4 in A and 22 in B:
# the first one is chosen where 10 beta is at least that.  A's first tree has the better heads, and
# B's second.
A = raw_list([10, 0], [0, 4], labelled=[1, 3], heads=[5, 3])
B = raw_list([10, 0], [0, 22], labelled=[3, 1], heads=[2, 6])


def test_papers_beta_weighs_raw_scores_and_is_tuned_by_uas():
    tuned = tune([A, B], sources=["s"], paper_grid=True, raw_scores=True, metric="uas")
    # 0.4, ..., 2.15 of the grid choose right in both.
    assert tuned.betas == {"s": 1.25}
    assert (tuned.scales, tuned.reranker_scale) == ({"s": 1.0}, 1.0)
    inventory = LabelInventory()
    candidates = CandidateList.build(
        [([0, 1], ["root", "x"], -3.0), ([2, 0], ["x", "root"], -7.0)],
        inventory=inventory,
        sources=["s"],
    )
    np.testing.assert_allclose(
        tuned.final(candidates, np.array([1.0, 5.5])), [1.0 - 3.75, 5.5 - 8.75]
    )


def test_beta_by_las_is_another_one():
    # Below 0.4 the trees have 3 + 1 labels and 3 + 6 heads right, from there on 1 + 1, and from 2.2
    # on 1 + 3, with 5 + 2 heads, which break the tie.
    tuned = tune([A, B], sources=["s"], paper_grid=True, raw_scores=True)
    assert tuned.betas == {"s": 0.15}  # 0, ..., 0.35
    assert tune([B], sources=["s"], paper_grid=True, raw_scores=True).betas == {"s": 2.6}


def test_raw_beta_depends_on_the_unit_of_the_scores_and_a_scaled_one_does_not():
    tens = [raw_list(x.sources[:, 0] / 10, x.reranker, *x.correct.T) for x in (A, B)]
    how = {"sources": ["s"], "paper_grid": True, "metric": "uas"}
    assert tune([A, B], **how, raw_scores=True).betas == {"s": 1.25}
    # A would want 4, which is beyond the grid; B is right with all of it.
    assert tune(tens, **how, raw_scores=True).betas == {"s": 1.5}
    assert tune(tens, **how).betas == tune([A, B], **how).betas


def test_tuning_by_another_metric_is_refused():
    with pytest.raises(ValueError, match="metric is 'clas', expected one of"):
        tune([A], sources=["s"], metric="clas")
