"""The kernel of siblings and grandparents in the search, against sums over its support parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import reference
from reference_sampling import labelled_trees
from sampling_parsers import (
    NOTHING_PRUNED,
    list_of,
    own_scores,
    random_parser,
    random_sentence,
    random_tree,
    same,
    trained,
    treebank,
)

from tk_spacy.candidates import LabelInventory
from tk_spacy.kernel import slot_layout
from tk_spacy.part_types import PART_TYPES
from tk_spacy.parts import extract_parts, slot_rows
from tk_spacy.sampling.kernel_decoding import decode_with_kernel
from tk_spacy.sampling.kernel_rounds import Searches
from tk_spacy.sampling.search_kernel import ARC, PAIRS, SearchKernel, bare, part_slots
from tk_spacy.sampling.search_space import lattice_arcs
from tk_spacy.sampling.words import encode
from tk_spacy.support import Support, SupportParts
from tk_spacy.support_log import SupportLog

EVERY = (ARC, *PAIRS)


def support_of(rng, schema, sentences, *, scales, types=EVERY):
    """A support of the parts of gold trees, with random weights: the log, and the weights."""
    log = SupportLog(types, len(schema.properties), groups=schema.property_groups())
    told = []
    for i, sentence in enumerate(sentences):
        labels = np.array([[schema.label_id(name) for name in sentence.deprels]], dtype=np.int32)
        for at, name in enumerate(types):
            rows, _, members = extract_parts(sentence.heads[None], labels, PART_TYPES[name])
            slots = [np.zeros((0, _width(other)), dtype=np.int32) for other in types]
            slots[at] = slot_rows(rows[members], PART_TYPES[name])
            signs = [rng.choice(np.array([-1, 1], dtype=np.int32), size=len(s)) for s in slots]
            weight = scales[name] * float(rng.random())
            nodes = schema.encode(sentence).nodes
            log.append(
                nodes, tuple(slots), tuple(signs), weight=weight, averaged=weight, origin=(i, i)
            )
            told.append((sentence, name, weight * signs[at]))
    return log.freeze(), told


def _width(name):
    kinds = slot_layout(PART_TYPES[name])
    return int(len(kinds) + kinds.sum())


SCALES = {"arc": 0.01, "sibling": 0.0006, "grandparent": 0.0006}


def random_kernel(rng, schema, sentences, *, gamma=1.0, types=EVERY):
    """A kernel of random weights, and the same for `plain_score`."""
    support, told = support_of(rng, schema, sentences, scales=SCALES, types=types)
    return SearchKernel(schema=schema, support=bare(support, types), gamma=gamma), told


def plain_score(told, schema, sentence, heads, deprels, types=EVERY):
    """The sum over a tree's parts and all support parts of weight times kernel, by strings."""
    choices = {
        "pos_column": schema.pos_column,
        "use_cpos": schema.use_cpos,
        "morph": schema.morph,
        "use_lemma": schema.use_lemma,
    }

    def sets(given, heads, deprels, name):
        parts = reference.tree_parts([int(h) for h in heads], list(deprels), name)
        return [reference.slot_sets(given, part, name, **choices) for part in parts]

    total = 0.0
    own = {name: sets(sentence, heads, deprels, name) for name in types}
    for given, name, weights in told:
        if name in own:
            theirs = sets(given, given.heads, given.deprels, name)
            for a, weight in zip(theirs, weights, strict=True):
                total += weight * sum(reference.kernel_by_slots(a, b) for b in own[name])
    return total


def deprels_of(parser, labels):
    names = ["_", "_", "_", *parser.labels]
    return [names[i] for i in labels]


@pytest.fixture(scope="module")
def small():
    """A parser of random weights, a kernel for it, their sentences and what is told of the kernel.

    Its weights are such that the kernel changes most trees.
    """
    rng = np.random.default_rng(2)
    sentences = [random_sentence(rng, n) for n in (1, 2, 4, 6, 8, 8, 9)]
    parser = random_parser(rng, sentences, order=3, max_labels=2, restarts=10)
    kernel, told = random_kernel(rng, parser.schema, sentences, gamma=0.7)
    return replace(parser, kernel=kernel), sentences, told


def test_scores_of_trees_are_the_parsers_and_the_kernels(small):
    both, sentences, told = small
    plain = replace(both, kernel=None)
    rng = np.random.default_rng(7)
    for sentence in sentences:
        n = len(sentence)
        trees = [(random_tree(rng, n), rng.integers(3, 6, size=n)) for _ in range(4)]
        kernel = [
            plain_score(told, both.kernel.schema, sentence, heads, deprels_of(both, labels))
            for heads, labels in trees
        ]
        expected = own_scores(plain, sentence, trees) + 0.7 * np.array(kernel)
        np.testing.assert_allclose(own_scores(both, sentence, trees), expected, atol=2e-5)
        assert np.ptp(kernel) > 0.1 or n == 1


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
            plain_score(told, both.kernel.schema, sentence, heads, found.deprels(j))
            for j, heads in enumerate(found.heads)
        ]
        np.testing.assert_allclose(found.scores[:, 0], own + 0.7 * np.array(kernel), atol=2e-5)
        assert (np.diff(found.scores[:, 0]) <= 0).all()
        changed += bool((found.heads[0] != others.heads[0]).any())
    assert changed > 2


def test_a_kernel_of_one_type_of_pairs(small):
    both, sentences, told = small
    for name in PAIRS:
        types = (ARC, name)
        support = bare(both.kernel.support, types)
        one = replace(both, kernel=SearchKernel(schema=both.schema, support=support, gamma=1.0))
        found = list(one.kbest(sentences[-2:], k=2, inventory=LabelInventory(), n_threads=1))
        plain = replace(both, kernel=None)
        for sentence, trees in zip(sentences[-2:], found, strict=True):
            own = plain.score([sentence], [trees], n_threads=1)[0]
            kernel = [
                plain_score(told, both.schema, sentence, heads, trees.deprels(j), types)
                for j, heads in enumerate(trees.heads)
            ]
            np.testing.assert_allclose(trees.scores[:, 0], own + kernel, atol=2e-5)


@pytest.mark.parametrize("order", [2, 3])
def test_search_finds_the_best_tree_of_both_scores(order):
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in (1, 2, 3, 4, 4, 4)]
    options = {**NOTHING_PRUNED, "restarts": 200, "patience": 200, "temperature": 100.0}
    parser = random_parser(rng, sentences, order=order, **options)
    kernel, _ = random_kernel(rng, parser.schema, sentences, gamma=0.5)
    both = replace(parser, kernel=kernel)
    ids = parser.schema.labels
    # Its pool holds all trees.
    lists = list(both.kbest(sentences, k=64, inventory=LabelInventory(), n_threads=1))
    changed = 0
    for sentence, found in zip(sentences, lists, strict=True):
        trees = labelled_trees(
            len(sentence), (ids["root"],), (ids["x"], ids["y"]), single_root=True
        )
        trees = [(np.array(heads), np.array(labels)) for heads, labels in trees]
        scores = own_scores(both, sentence, trees)
        assert found.scores[0, 0] == scores.max()
        arcs_alone = replace(both, kernel=arcs_of(kernel))
        changed += int(scores.argmax()) != int(own_scores(arcs_alone, sentence, trees).argmax())
    assert changed


def arcs_of(kernel):
    return SearchKernel(schema=kernel.schema, support=bare(kernel.support), gamma=kernel.gamma)


@pytest.fixture(scope="module")
def with_kernel():
    """A trained parser with a kernel that changes its trees, and sentences it did not see."""
    rng = np.random.default_rng(3)
    parser, (train, test) = trained(), treebank()
    scales = {"arc": 0.003, "sibling": 2e-5, "grandparent": 2e-5}
    support, _ = support_of(rng, parser.schema, train[:40], scales=scales)
    kernel = SearchKernel(schema=parser.schema, support=bare(support, EVERY), gamma=1.0)
    return replace(parser, kernel=kernel), test


def decoded(parser, sentences, *, k=1, n_threads=1, **options):
    """What decode_with_kernel returns, with the parser's own settings."""
    s, kernel = parser.settings, parser.kernel
    corpus = encode(parser.schema, sentences, seed=s.seed)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths, np.arange(len(corpus)))
    nodes, table = kernel.nodes(sentences), kernel.label_table(parser.schema)
    arcs = kernel.added(lattice_arcs(*where, n_threads=1), corpus.lengths, nodes, table)
    return decode_with_kernel(
        kernel, parser.scorer, corpus, arcs, nodes, table,
        k=k, exact=s.exact_starts, restarts=s.restarts, patience=s.patience,
        temperature=s.temperature, label_share=s.label_share, n_threads=n_threads, **options,
    )  # fmt: skip


def test_lists_and_their_scores(with_kernel):
    parser, test = with_kernel
    lists = list(parser.kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    arcs_alone = replace(parser, kernel=arcs_of(parser.kernel))
    plain = list(arcs_alone.kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    assert any((a.heads[0] != b.heads[0]).any() for a, b in zip(lists, plain, strict=True))
    for trees, own in zip(lists, parser.score(test, lists, n_threads=1), strict=True):
        np.testing.assert_array_equal(trees.scores[:, 0], own)
        assert (np.diff(own) <= 0).all()


def test_parses_depend_on_nothing_else(with_kernel):
    parser, test = with_kernel
    parses = list(parser.parse(test, n_threads=1))
    lists = list(parser.kbest(test, k=5, inventory=LabelInventory(), n_threads=1))
    for threads in (2, 3):
        again = parser.parse(test, n_threads=threads)
        assert all(same(a, b) for a, b in zip(parses, again, strict=True))
        again = parser.kbest(test, k=5, inventory=LabelInventory(), n_threads=threads)
        assert all(same(a, b) for a, b in zip(lists, again, strict=True))
    for i in (0, 17, 39):
        assert same(parses[i], next(parser.parse(test[i : i + 1], n_threads=1)))


def test_groups_of_sentences_change_nothing(with_kernel, monkeypatch):
    parser, test = with_kernel
    found, effort = decoded(parser, test, k=3)
    monkeypatch.setattr("tk_spacy.sampling.kernel_decoding.ROWS_AT_A_TIME", 30)
    again, other = decoded(parser, test, k=3)
    for a, b in zip(found, again, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(effort.rounds, other.rounds)
    np.testing.assert_array_equal(effort.pairs, other.pairs)


@pytest.mark.parametrize("k", [1, 5])
def test_rounds_are_limited_and_scores_right_all_the_same(with_kernel, k):
    parser, test = with_kernel
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


def searches_of(parser, sentences, **options):
    s, kernel = parser.settings, parser.kernel
    corpus = encode(parser.schema, sentences, seed=s.seed)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths, np.arange(len(corpus)))
    nodes, table = kernel.nodes(sentences), kernel.label_table(parser.schema)
    arcs = kernel.added(lattice_arcs(*where, n_threads=1), corpus.lengths, nodes, table)
    searches = Searches(
        *where, arcs, siblings=True, grandparents=True, k=1, exact=1, restarts=5, patience=3,
        temperature=0.5, label_share=0.1, seeds=corpus.seeds, n_threads=1, **options,
    )  # fmt: skip
    return searches, corpus, nodes, table


def test_pairs_are_asked_for_once_and_are_those_of_trees(with_kernel):
    parser, test = with_kernel
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


def test_kernels_of_arcs_alone_are_decoded_in_one_round(with_kernel):
    parser, test = with_kernel
    arcs_alone = replace(parser, kernel=arcs_of(parser.kernel))
    (heads, *_), effort = decoded(arcs_alone, test)
    assert set(effort.rounds) == {1}
    assert not effort.pairs.any()
    expected = np.concatenate([[0, *h, 0] for h, _ in arcs_alone.parse(test, n_threads=1)])
    np.testing.assert_array_equal(heads[:, 0], expected)


def test_parsers_of_order_1_take_no_pairs(with_kernel):
    parser, test = with_kernel
    with pytest.raises(ValueError, match="of sibling and grandparent parts in a parser of order 1"):
        replace(trained(order=1), kernel=parser.kernel)
    lower = replace(trained(order=1), kernel=arcs_of(parser.kernel))
    assert len(list(lower.parse(test[:2], n_threads=1))) == 2
    with pytest.raises(ValueError, match="a parser of order 1, expected 2 or 3"):
        searches_of(lower, test[:2])
