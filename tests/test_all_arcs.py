"""The scores of all arcs of a sentence at once."""

from __future__ import annotations

import numpy as np
import pytest
from scoring_problems import TOLERANCE, random_problem

from tk_spacy.features.part_types import part_type
from tk_spacy.kernels.compiled.all_arcs import score_all_arcs
from tk_spacy.kernels.compiled.blocks import SIZE
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.scoring import CompiledParts
from tk_spacy.kernels.scorer import compile_parts
from tk_spacy.kernels.template_kernel import slot_layout


def compiled_arcs(problem):
    """The support parts of a problem, compiled, and the groups of their properties."""
    groups = NodeGroups([[0, 1, 2], [3, 4]], 9)
    support = problem.support()
    ids, singles = groups.encode(support.nodes)
    compiled = compile_parts(
        slot_layout(problem.kind), problem.skips, groups, columns=support.types["arc"].columns,
        weights=problem.weights, ids=ids, singles=singles,
    )  # fmt: skip
    return compiled, groups


@pytest.mark.parametrize("skip", [(), ("h", "m")])
@pytest.mark.parametrize("n_words", [1, 6, 40])
def test_all_arcs_equal_single_arcs(skip, n_words):
    problem = random_problem(15, skip=skip, n_nodes=n_words + 1, n_support=SIZE + 500, n_labels=6)
    compiled, groups = compiled_arcs(problem)
    ids, singles = groups.encode(problem.nodes)
    plain, by_label, labels = score_all_arcs(compiled, ids, singles, n_threads=1)
    again = score_all_arcs(compiled, ids, singles, n_threads=3)
    assert plain.tobytes() == again[0].tobytes()
    assert by_label.tobytes() == again[1].tobytes()
    assert labels.tolist() == [1, 2, 3, 4, 5]
    heads, modifiers = np.indices(plain.shape)
    wanted = (heads != modifiers) & (modifiers > 0)
    for label in (0, 3, 5, 99):
        problem.parts = np.column_stack(
            [heads[wanted], np.full(wanted.sum(), label), (modifiers - heads)[wanted],
             modifiers[wanted]]
        ).astype(np.int32)  # fmt: skip
        scores, scale = problem.expected()
        found = plain.copy()
        if label in labels:
            found += by_label[labels.tolist().index(label)]
        assert (np.abs(found[wanted] - scores) <= TOLERANCE * scale).all()
    assert not plain[:, 0].any()


def test_all_arcs_of_a_sentence_so_long_that_blocks_are_taken_in_turn():
    problem = random_problem(17, n_nodes=150, n_values=5, n_support=5 * SIZE + 99, n_labels=9)
    compiled, groups = compiled_arcs(problem)
    assert len(compiled.blocks) == 6
    ids, singles = groups.encode(problem.nodes)
    found = [score_all_arcs(compiled, ids, singles, n_threads=n) for n in (1, 2, 7)]
    for other in found[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(found[0], other, strict=True))
    plain, by_label, labels = found[0]
    rng = np.random.default_rng(17)
    heads, modifiers = rng.integers(0, 150, 80), rng.integers(1, 150, 80)
    heads[heads == modifiers] = 0
    chosen = rng.integers(0, len(labels), 80)
    problem.parts = np.column_stack(
        [heads, labels[chosen], modifiers - heads, modifiers]
    ).astype(np.int32)  # fmt: skip
    scores, scale = problem.expected()
    own = plain[heads, modifiers] + by_label[chosen, heads, modifiers]
    assert (np.abs(own - scores) <= TOLERANCE * scale).all()


@pytest.mark.parametrize("n_rows", [0, 1])
def test_all_arcs_of_nothing(n_rows):
    """No words, and no support parts."""
    problem = random_problem(18)
    groups = NodeGroups([[0]], 9)
    compiled = CompiledParts(
        slot_layout(problem.kind), problem.skips, groups, [np.zeros(0, np.int32)] * 16, 50
    )
    rows = np.ascontiguousarray(problem.nodes[:n_rows])
    plain, by_label, labels = score_all_arcs(compiled, *groups.encode(rows), n_threads=2)
    assert plain.tolist() == [[0.0] * n_rows] * n_rows
    assert by_label.shape == (0, n_rows, n_rows)
    assert not len(labels)


def test_all_arcs_of_a_long_sentence_with_few_kept_rows():
    problem = random_problem(16, n_nodes=90, n_values=5, n_support=200)
    groups = NodeGroups([[0, 1, 2, 3], [4, 5]], 9)
    support = problem.support()
    kinds = slot_layout(problem.kind)
    ids, singles = groups.encode(support.nodes)
    results = []
    for limit in (7, 1000):
        compiled = CompiledParts(kinds, problem.skips, groups, [np.zeros(0, np.int32)] * 6, limit)
        columns = support.types["arc"].columns
        compiled.append(columns, problem.weights, ids, singles)
        results.append(score_all_arcs(compiled, *groups.encode(problem.nodes), n_threads=2))
    assert all((a == b).all() for a, b in zip(*results, strict=True))


def test_scores_of_other_parts_than_arcs_are_refused():
    kinds = slot_layout(part_type("sibling"))
    compiled = CompiledParts(
        kinds, np.array(part_type("sibling").skips()), NodeGroups([[0]], 1), [], 10
    )
    with pytest.raises(ValueError, match=r"expected those of arcs"):
        score_all_arcs(compiled, np.zeros((2, 1), np.int32), np.zeros((2, 0), np.int32))
