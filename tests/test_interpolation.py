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
