"""The kernel of siblings and grandparents in the search: what rounds ask for and what they find."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sampling_parsers import (
    list_of,
    own_scores,
    random_parser,
    random_sentence,
    trained,
    treebank,
)
from search_kernels import (
    EVERY,
    arcs_alone,
    decoded,
    plain_score,
    random_kernel,
    searched,
    with_kernel,
)

from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.parts import extract_parts
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kernels.support import Support, SupportParts
from tk_spacy.kernels.template_kernel import slot_layout
from tk_spacy.parsers.sampling.kernel.model import ARC, PAIRS, SearchKernel, bare, part_slots
from tk_spacy.parsers.sampling.kernel.rounds import Searches

SCALES = {"arc": 0.01, "sibling": 0.0006, "grandparent": 0.0006}


@pytest.fixture(scope="module")
def small():
    """A parser of random weights, a kernel for it, their sentences and what is told of the kernel.

    Its weights are such that the kernel changes most trees.
    """
    rng = np.random.default_rng(2)
    sentences = [random_sentence(rng, n) for n in (1, 2, 4, 6, 8, 8, 9)]
    parser = random_parser(rng, sentences, order=3, max_labels=2, restarts=10)
    kernel, told = random_kernel(rng, parser.schema, sentences, SCALES, gamma=0.7)
    return replace(parser, kernel=kernel), sentences, told


@pytest.mark.parametrize("k", [1, 4])
def test_trees_found_have_the_scores_of_all_their_parts(small, k):
    both, sentences, told = small
    plain = replace(both, kernel=None)
    changed = 0
    inventory = LabelInventory()
    before = plain.kbest(sentences, k=k, inventory=inventory, n_threads=1)
    after = both.kbest(sentences, k=k, inventory=inventory, n_threads=1)
    for sentence, found, others in zip(sentences, after, before, strict=True):
        own = plain.score([sentence], [found], n_threads=1)[0]
        kernel = [
            plain_score(both.kernel, told, sentence, heads, found.deprels(j))
            for j, heads in enumerate(found.heads)
        ]
        np.testing.assert_allclose(found.scores[:, 0], own + kernel, atol=2e-5)
        assert (np.diff(found.scores[:, 0]) <= 0).all()
        changed += bool((found.heads[0] != others.heads[0]).any())
    assert changed > 2


def test_a_kernel_of_one_type_of_pairs(small):
    both, sentences, told = small
    for name in PAIRS:
        support = bare(both.kernel.support, (ARC, name))
        one = replace(both, kernel=SearchKernel(schema=both.schema, support=support, gamma=1.0))
        found = list(one.kbest(sentences[-2:], k=2, inventory=LabelInventory(), n_threads=1))
        plain = replace(both, kernel=None)
        for sentence, trees in zip(sentences[-2:], found, strict=True):
            own = plain.score([sentence], [trees], n_threads=1)[0]
            kernel = [
                plain_score(one.kernel, told, sentence, heads, trees.deprels(j))
                for j, heads in enumerate(trees.heads)
            ]
            np.testing.assert_allclose(trees.scores[:, 0], own + kernel, atol=2e-5)


def test_groups_of_sentences_change_nothing(monkeypatch):
    parser, test = with_kernel(EVERY), treebank()[1]
    found, effort = decoded(parser, test, k=3)
    monkeypatch.setattr("tk_spacy.parsers.sampling.kernel.decoding.ROWS_AT_A_TIME", 30)
    again, other = decoded(parser, test, k=3)
    for a, b in zip(found, again, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(effort.rounds, other.rounds)
    np.testing.assert_array_equal(effort.pairs, other.pairs)


@pytest.mark.parametrize("k", [1, 5])
def test_rounds_are_limited_and_scores_right_all_the_same(k):
    parser, test = with_kernel(EVERY), treebank()[1]
    best = []
    for most in (1, 2, 3, 6):
        (heads, labels, scores, counts), effort = decoded(parser, test, k=k, most_rounds=most)
        assert effort.rounds.max() <= most
        start = 0
        for i, sentence in enumerate(test):
            words = slice(start + 1, start + 1 + len(sentence))
            trees = [(heads[words, j], labels[words, j]) for j in range(counts[i])]
            own = parser.score([sentence], [list_of(trees, parser)], n_threads=1)[0]
            np.testing.assert_array_equal(scores[i, : counts[i]], own)
            start += len(sentence) + 2
        best.append(scores[:, 0])
    # A further round never loses the best tree that is known.
    assert all((b >= a).all() for a, b in pairwise(best))
    assert (best[-1] > best[0]).any()
    assert effort.rounds.min() >= 2  # a first search scores no pair
    with pytest.raises(ValueError, match="0 rounds, expected at least one"):
        decoded(parser, test, most_rounds=0)


def searches_of(parser, sentences):
    """The searches of sentences, and of what `searched` returns the corpus, nodes and labels."""
    corpus, where, arcs, nodes, table = searched(parser, sentences)
    searches = Searches(
        *where, arcs, siblings=True, grandparents=True, k=1, exact=1, restarts=5, patience=3,
        temperature=0.5, label_share=0.1, seeds=corpus.seeds, n_threads=1,
    )  # fmt: skip
    return searches, corpus, nodes, table


def test_pairs_are_asked_for_once_and_are_those_of_trees():
    parser, test = with_kernel(EVERY), treebank()[1]
    searches, corpus, nodes, table = searches_of(parser, test)
    asked = [set() for _ in test]
    alone = {}
    while searches.search():
        owners, kinds, rows = searches.unscored()
        values = np.zeros(len(kinds))
        for kind, name in enumerate(PAIRS, start=1):
            mine = kinds == kind
            slots = part_slots(name, rows[mine], table, corpus.starts[owners[mine]])
            values[mine] = parser.kernel.scores(nodes, {name: slots}, n_threads=1)[name]
            # The same numbers, whatever else is scored with them.
            for at in np.flatnonzero(mine)[:3]:
                one = part_slots(name, rows[[at]], table, corpus.starts[owners[[at]]])
                alone = parser.kernel.scores(nodes, {name: one}, n_threads=1)[name]
                assert alone[0] == values[at]
        searches.learn(values)
        for owner, kind, row in zip(owners.tolist(), kinds.tolist(), rows.tolist(), strict=True):
            assert (kind, *row) not in asked[owner]
            asked[owner].add((kind, *row))
    np.testing.assert_array_equal(searches.scored, [len(pairs) for pairs in asked])
    # Those of the trees returned are among them.
    heads, labels, _, _ = searches.results()
    for i, of_sentence in enumerate(asked):
        words = slice(corpus.starts[i] + 1, corpus.starts[i] + corpus.lengths[i] - 1)
        for kind, name in enumerate(PAIRS, start=1):
            rows, _, _ = extract_parts(heads[words].T, labels[words].T, PART_TYPES[name])
            assert {(kind, *row) for row in rows.tolist()} <= of_sentence
    with pytest.raises(ValueError, match="1 scores, expected 0"):
        searches.learn(np.zeros(1))


@pytest.mark.parametrize("weight", [-3.0, 3.0])
def test_pairs_without_a_score_neither_attract_nor_repel(weight):
    # A kernel that scores every pair alike: all trees gain as much, none should be preferred.
    parser, test = trained(), treebank()[1]
    n_properties = len(parser.schema.properties)
    nothing = {"origins": np.zeros((0, 3), dtype=np.int32), "origin_weights": np.zeros(0)}
    types, skips = {}, {}
    for name in EVERY:
        kinds = slot_layout(PART_TYPES[name])
        # Edges of no label, of a distance of 0: these equal nothing.
        columns = np.zeros((int((2 * kinds + 1).sum()), 1), dtype=np.int32)
        types[name] = SupportParts(
            columns=columns, weights=np.array([0.0 if name == ARC else weight]), **nothing
        )
        skips[name] = np.ones(len(kinds), dtype=np.int32)
    support = Support(np.zeros((1, n_properties), dtype=np.int32), types, skips)
    both = replace(parser, kernel=SearchKernel(schema=parser.schema, support=support, gamma=1.0))
    (heads, labels, scores, _), effort = decoded(both, test)
    assert set(effort.rounds) == {2}
    start = 0
    for i, (own, (before, deprels)) in enumerate(
        zip(scores[:, 0], parser.parse(test, n_threads=1), strict=True)
    ):
        n = len(before)
        words = slice(start + 1, start + 1 + n)
        np.testing.assert_array_equal(heads[words, 0], before)
        trees = [(before, [parser.schema.label_id(name) for name in deprels])]
        assert labels[words, 0].tolist() == trees[0][1]
        expected = own_scores(parser, test[i], trees)[0] + weight * (2 * n - 1)
        assert own == pytest.approx(expected, abs=1e-3)
        start += n + 2


def test_kernels_of_arcs_alone_are_decoded_in_one_round():
    parser, test = with_kernel(EVERY), treebank()[1]
    lower = replace(parser, kernel=arcs_alone(parser.kernel))
    (heads, *_), effort = decoded(lower, test)
    assert set(effort.rounds) == {1}
    assert not effort.pairs.any()
    expected = np.concatenate([[0, *h, 0] for h, _ in lower.parse(test, n_threads=1)])
    np.testing.assert_array_equal(heads[:, 0], expected)


def test_parsers_of_order_1_take_no_pairs():
    parser, test = with_kernel(EVERY), treebank()[1]
    with pytest.raises(ValueError, match="of sibling and grandparent parts in a parser of order 1"):
        replace(trained(order=1), kernel=parser.kernel)
    lower = replace(trained(order=1), kernel=arcs_alone(parser.kernel))
    assert len(list(lower.parse(test[:2], n_threads=1))) == 2
    with pytest.raises(ValueError, match="a parser of order 1, expected 2 or 3"):
        searches_of(lower, test[:2])
