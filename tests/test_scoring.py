"""Compiled scoring against the slow twin: the kernel of every pair of parts, times the weights."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring_problems import TOLERANCE, random_problem

from tk_spacy.features.part_types import PART_TYPES, part_type
from tk_spacy.kernels import scorer as scorer_module
from tk_spacy.kernels.compiled.blocks import MAX_NAMES, SIZE, Block, block_bounds
from tk_spacy.kernels.compiled.node_groups import NodeGroups, first_equal
from tk_spacy.kernels.compiled.scoring import CompiledParts
from tk_spacy.kernels.scorer import SupportScorer
from tk_spacy.kernels.template_kernel import node_columns, slot_layout

GROUPINGS = [None, [], [[0, 4, 5], [1, 6], [2, 7, 8]], [[8], [0]]]


@pytest.mark.parametrize("name", PART_TYPES)
@pytest.mark.parametrize("skip", [(), ("h",), ("node",)])
@pytest.mark.parametrize("groups", GROUPINGS)
def test_scores_equal_slow_twin(name, skip, groups):
    random_problem(1, name=name, skip=skip, groups=groups).check()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(list(PART_TYPES)),
    st.integers(1, 60),
    st.sampled_from([1, 2, 40]),
    st.sampled_from([1, 255, 256, 257, 700]),
)
def test_scores_equal_slow_twin_on_random_shapes(seed, name, n_properties, n_values, n_support):
    random_problem(
        seed, name=name, n_properties=n_properties, n_values=n_values, n_support=n_support
    ).check()


@pytest.mark.parametrize("name", ["arc", "sibling", "grandparent"])
@pytest.mark.parametrize("n_properties", [63, 126, 127, 128, 254, 255, 300])
def test_counts_do_not_overflow(name, n_properties):
    """All properties equal: products leave 16 bits from 128 properties on, counts bytes at 255."""
    problem = random_problem(2, name=name, skip=("node",), n_properties=n_properties)
    problem.nodes[:] = 7
    problem.support_nodes[:] = 7
    problem.weights[:] = 1.0 / 3.0
    scores, _ = problem.expected()
    least = (
        len(problem.weights)
        / 3
        * (n_properties + 1) ** len(node_columns(slot_layout(problem.kind)))
    )
    assert scores.min() >= least * (1 - 1e-9)
    problem.check()


def test_rounding_errors_that_all_point_one_way():
    problem = random_problem(3, n_support=60_000, n_parts=3)
    problem.weights[:] = np.float32(1.0) / 3.0
    problem.nodes[:] = problem.support_nodes[:] = 1
    problem.check()


def test_nothing_equal_scores_zero():
    problem = random_problem(4)
    problem.nodes[:] = 1
    problem.support_nodes[:] = 2
    assert (problem.scores() == 0).all()


def test_missing_values_equal_nothing():
    problem = random_problem(5)
    problem.nodes[:] = 0
    problem.support_nodes[:] = 0
    assert (problem.scores() == 0).all()
    problem = random_problem(6, skip=("node",))
    problem.nodes[:] = problem.support_nodes[:] = 0
    for table in (problem.parts, problem.support_parts):
        table[:, 1:3] = 0  # no label and no distance either: each pair counts once
    assert problem.scores() == pytest.approx([problem.weights.sum()] * len(problem.parts))


def test_one_word_sentence_and_empty_support():
    problem = random_problem(7, n_nodes=3, n_parts=1)
    problem.check()
    empty = random_problem(8, n_support=0)
    assert (empty.scores() == 0).all()
    no_parts = random_problem(8, n_parts=0)
    assert no_parts.scores().shape == (0,)


def test_many_blocks_labels_and_distances():
    """Blocks end where a byte no longer tells labels and distances apart."""
    problem = random_problem(9, n_support=2 * SIZE + 77, n_labels=700, longest=900, n_parts=60)
    problem.support_parts[:300, 1] = problem.parts[0, 1]
    kinds = slot_layout(problem.kind)
    bounds = block_bounds(problem.support().types["arc"].columns, kinds)
    assert len(bounds) > 4
    assert all(0 < b - a <= SIZE for a, b in pairwise(bounds))
    problem.check()


def test_block_bounds_name_at_most_what_a_byte_can():
    kinds = slot_layout(part_type("arc"))
    columns = np.zeros((5, 3000), dtype=np.int32)
    columns[1] = np.arange(3000) % 1000  # labels
    assert block_bounds(columns, kinds)[1] == MAX_NAMES
    columns[1] = 1
    columns[2] = np.repeat(np.arange(1000), 3)  # distances
    assert block_bounds(columns, kinds)[1] == 3 * MAX_NAMES


def test_a_block_weighed_again_takes_no_more_memory():
    kinds = np.array([0, 1, 0], dtype=np.int32)
    groups = NodeGroups([[0]], 1)
    ids, singles = groups.encode(np.ones((1, 1), dtype=np.int32))
    columns = np.zeros((5, 300), dtype=np.int32)
    block = Block(columns, np.ones(300), kinds, ids, singles, groups, 8)
    before = block.nbytes
    for _ in range(10):
        block.weigh(np.ones(300))
    assert block.nbytes == before


def test_rows_make_room(monkeypatch):
    """With room for few rows the scores are the same: parts are scored in several goes."""
    monkeypatch.setattr(scorer_module, "LEAST_ROWS", 24)
    problem = random_problem(
        10, name="sibling", n_values=4, n_nodes=60, n_parts=300, groups=[[0, 1, 2], [3, 4]]
    )
    problem.check(memory=0)
    scorer = SupportScorer(problem.support(), problem.groups, memory=0)
    assert scorer.compiled()[0].keeper.limit == 24
    # Again and again, in other orders: what was kept must not be taken for something else.
    rng = np.random.default_rng(0)
    scores, scale = problem.expected()
    for _ in range(20):
        some = rng.permutation(len(problem.parts))[:50]
        out = np.zeros(50)
        scorer.add_scores([problem.nodes], [[problem.parts[some]]], [[out]], n_threads=2)
        assert (np.abs(out - scores[some]) <= TOLERANCE * scale[some]).all()


def test_combinations_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(scorer_module, "MOST_COMBINATIONS", 100)
    problem = random_problem(11, n_values=6, groups=[[0, 1, 2], [3, 4]])
    scorer = SupportScorer(problem.support(), problem.groups)
    rng = np.random.default_rng(1)
    for _ in range(5):
        problem.nodes = rng.integers(0, 6, problem.nodes.shape).astype(np.int32)
        out = np.zeros(len(problem.parts))
        scorer.add_scores([problem.nodes], [[problem.parts]], [[out]], n_threads=1)
        scores, scale = problem.expected()
        assert (np.abs(out - scores) <= TOLERANCE * scale).all()


def test_several_sentences_score_as_each_alone():
    problems = [random_problem(12, n_nodes=n) for n in (2, 5, 30, 9)]
    support = problems[0].support()
    scorer = SupportScorer(support, [[0, 1], [2, 3]])
    together = [[np.zeros(len(p.parts))] for p in problems]
    for p in problems:
        p.parts[:, node_columns(slot_layout(p.kind))] %= len(p.nodes)
    scorer.add_scores(
        [p.nodes for p in problems], [[p.parts] for p in problems], together, n_threads=2
    )
    for problem, (found,) in zip(problems, together, strict=True):
        alone = np.zeros(len(problem.parts))
        scorer.add_scores([problem.nodes], [[problem.parts]], [[alone]], n_threads=1)
        assert found.tolist() == alone.tolist()


def test_sentences_that_share_words_score_as_each_alone():
    """Equal words have one row, and an arc between them in another sentence another distance."""
    problem = random_problem(18, n_nodes=12, n_parts=300, n_support=SIZE + 300, n_values=4)
    rng = np.random.default_rng(18)
    sentences = [problem.nodes[rng.integers(0, 12, n)] for n in (1, 12, 30, 9, 30)]
    slots = []
    for nodes in sentences:
        parts = problem.parts.copy()
        parts[:, node_columns(slot_layout(problem.kind))] %= len(nodes)
        slots.append(parts)
    before = [parts.copy() for parts in slots]
    scorer = SupportScorer(problem.support(), [[0, 1], [2, 3]])
    together = [[np.zeros(len(parts))] for parts in slots]
    scorer.add_scores(sentences, [[parts] for parts in slots], together, n_threads=2)
    for nodes, parts, (found,) in zip(sentences, slots, together, strict=True):
        alone = np.zeros(len(parts))
        scorer.add_scores([nodes], [[parts]], [[alone]], n_threads=1)
        assert found.tolist() == alone.tolist()
        problem.nodes, problem.parts = nodes, parts
        scores, scale = problem.expected()
        assert (np.abs(found - scores) <= TOLERANCE * scale).all()
    assert all((a == b).all() for a, b in zip(before, slots, strict=True))


@pytest.mark.parametrize("n_labels", [1, 2, 8, 9, 20])
@pytest.mark.parametrize(("longest", "sparse"), [(0, False), (1, True), (12, False), (12, True)])
def test_arcs_that_differ_in_the_label_score_as_each_alone(n_labels, longest, sparse):
    """Runs of support parts have a label and a distance in all, some or none of their parts."""
    problem = random_problem(
        19, n_support=2 * SIZE + 300, n_parts=25, n_labels=40 if sparse else 4, longest=longest,
        n_nodes=8,
    )  # fmt: skip
    if sparse:
        problem.support_parts[:, 1] = problem.support_parts[:, 1] // 10 * 9
    # Each pair with labels that the support has or has not, one of them twice, none (0) as well.
    labels = np.arange(-1, n_labels - 1)
    labels[0] = labels[-1]
    problem.parts = np.repeat(problem.parts, n_labels, axis=0)
    problem.parts[:, 1] = np.tile(labels, 25)
    problem.parts = np.random.default_rng(19).permutation(problem.parts)
    problem.check()
    scorer = SupportScorer(problem.support(), problem.groups)
    out = np.zeros(len(problem.parts))
    scorer.add_scores([problem.nodes], [[problem.parts]], [[out]], n_threads=2)
    for i in range(len(out)):
        alone = np.zeros(1)
        scorer.add_scores([problem.nodes], [[problem.parts[i : i + 1]]], [[alone]], n_threads=1)
        assert alone[0] == out[i]


def test_arcs_of_a_pair_with_several_distances():
    """What no sentence has, but a caller may ask."""
    problem = random_problem(20, n_nodes=2, n_parts=400, n_support=700)
    problem.check()


@pytest.mark.parametrize("name", ["arc", "sibling"])
def test_values_of_single_properties_are_found(name):
    """Any number, and as many as there are parts: in a hash table all meet others."""
    problem = random_problem(21, name=name, n_support=SIZE, n_nodes=4 * SIZE, groups=[[0]])
    rng = np.random.default_rng(21)
    values = rng.integers(1, 2**31 - 1, 3 * SIZE).astype(np.int32)
    problem.support_nodes[:] = rng.choice(values, problem.support_nodes.shape)
    problem.nodes[:] = problem.support_nodes[: len(problem.nodes)]
    problem.nodes[::2] = rng.choice(values, problem.nodes[::2].shape)
    problem.check()


def test_one_scorer_serves_several_python_threads(monkeypatch):
    """With few kept rows, so that one thread's would make room for another's."""
    monkeypatch.setattr(scorer_module, "LEAST_ROWS", 48)
    problem = random_problem(
        13, n_support=SIZE, n_nodes=200, n_parts=4000, n_values=5, groups=[[0, 1, 2], [3, 4]]
    )
    scores, scale = problem.expected()
    scorer = SupportScorer(problem.support(), problem.groups, memory=0)

    def score(start):
        some = slice(start, start + 500)
        out = np.zeros(500)
        scorer.add_scores([problem.nodes], [[problem.parts[some]]], [[out]], n_threads=2)
        return (np.abs(out - scores[some]) <= TOLERANCE * scale[some]).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(score, list(range(0, 4000, 500)) * 5))


def test_many_single_properties_with_frequent_values():
    """Each has a kept row, and a word's row is the sum of all of them."""
    problem = random_problem(16, n_properties=120, n_values=2, n_support=300, groups=[])
    scores, scale = problem.expected()
    assert (np.abs(problem.scores() - scores) <= TOLERANCE * scale).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_forked_while_a_thread_scores_scores_too():
    problem = random_problem(17, n_support=SIZE)
    scores = problem.scores(n_threads=1)
    scorer = SupportScorer(problem.support(), problem.groups)
    out = np.zeros(len(problem.parts))
    scorer.add_scores([problem.nodes], [[problem.parts]], [[out]], n_threads=1)
    with scorer._lock:  # as another thread would
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            out[:] = 0.0
            scorer.add_scores([problem.nodes], [[problem.parts]], [[out]], n_threads=1)
            os._exit(0 if out.tobytes() == scores.tobytes() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_threads_give_equal_bits():
    problem = random_problem(13, n_support=3 * SIZE, n_parts=200)
    found = [problem.scores(n_threads=n).tobytes() for n in (1, 2, 3, 8)]
    assert len(set(found)) == 1


def test_groups_are_a_partition():
    with pytest.raises(ValueError, match="no partition"):
        NodeGroups([[0, 1], [1]], 3)
    with pytest.raises(ValueError, match="no partition"):
        NodeGroups([[3]], 3)
    groups = NodeGroups([[1], []], 3)
    assert groups.singles.tolist() == [0, 2]
    ids, singles = groups.encode(np.array([[5, 7, 6], [5, 8, 6], [9, 7, 9]], dtype=np.int32))
    assert ids.tolist() == [[0], [1], [0]]
    assert singles.tolist() == [[5, 6], [5, 6], [9, 9]]
    with pytest.raises(ValueError, match="nodes must be"):
        groups.encode(np.zeros((1, 2), dtype=np.int32))


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_first_equal_words(n):
    rng = np.random.default_rng(n)
    nodes = rng.integers(0, 3, (n, 6)).astype(np.int32)
    groups = NodeGroups([[4, 0], [2]], 6)
    rows = [tuple(row) for row in nodes.tolist()]
    assert first_equal(*groups.encode(nodes)).tolist() == [rows.index(row) for row in rows]


def test_first_equal_words_need_as_many_of_both():
    with pytest.raises(ValueError, match="2 ids for 3 singles"):
        first_equal(np.zeros((2, 1), np.int32), np.zeros((3, 1), np.int32))


@pytest.mark.parametrize("kinds", [(0, 0, 1), (1, 0, 0)])
def test_slots_of_an_arc_may_stand_in_any_order(kinds: tuple[int, ...]) -> None:
    """What is summed by pairs of words looks for the arc between them; others are not summed so."""
    problem = random_problem(23, n_support=300, n_parts=40)
    columns = problem.support().types["arc"].columns
    n_properties = problem.nodes.shape[1]
    found = []
    for layout in ((0, 1, 0), kinds):
        words = iter([[0], [4]])  # the head's row, then the modifier's; the arc's are between
        order = [place for kind in layout for place in ([1, 2, 3] if kind else next(words))]
        groups = NodeGroups([[0, 1]], n_properties)
        frequent = [np.zeros(0, np.int32)] * 2 * (n_properties - 2)
        compiled = CompiledParts(
            np.array(layout, dtype=np.int32), np.zeros(3, np.int32), groups, frequent, 50
        )
        compiled.append(columns[order], problem.weights, *groups.encode(problem.support_nodes))
        places = [min(place, 3) for place in order if place != 3]  # of parts, which have no bins
        scores = np.zeros(len(problem.parts))
        parts = np.ascontiguousarray(problem.parts[:, places])
        compiled.add_scores(*groups.encode(problem.nodes), parts, scores, n_threads=1)
        found.append(scores)
    assert found[0].any()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
