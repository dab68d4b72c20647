"""The kernel's scores in the search, against sums over its support parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference_sampling import labelled_trees
from sampling_parsers import (
    NOTHING_PRUNED,
    own_scores,
    random_parser,
    random_sentence,
    random_tree,
    rows_of_words,
    same,
    trained,
    treebank,
)
from search_kernels import KINDS, arcs_alone, plain_score, random_kernel, with_kernel

from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.sampling.search.search_space import lattice_arcs
from tk_spacy.parsers.sampling.search.words import encode


def without(kernel):
    """What a kernel leaves of itself without its pairs, or if it has none, without its arcs."""
    return arcs_alone(kernel) if kernel.pairs else None


@pytest.mark.parametrize("own_schema", [True, False])
@pytest.mark.parametrize("types", **KINDS)
def test_scores_of_trees_are_the_parsers_and_the_kernels(types, own_schema):
    rng = np.random.default_rng(1)
    sentences = [random_sentence(rng, n) for n in (1, 2, 6, 13)]
    parser = random_parser(rng, sentences)
    schema, given = parser.schema, sentences
    if not own_schema:
        # Another one, which numbers values and labels in another way and lacks the label y.
        given = [replace(s, deprels=tuple(d.replace("y", "x") for d in s.deprels)) for s in given]
        schema = Schema.fit(given[1:], labels=("a",))
    scales = {name: 0.01 if name == "arc" else 0.0006 for name in types}
    kernel, told = random_kernel(rng, schema, given, scales, gamma=0.7)
    names = ["_"] * FIRST_ID + list(parser.labels)
    both = replace(parser, kernel=kernel)
    for sentence in sentences:
        n = len(sentence)
        trees = [(random_tree(rng, n), rng.integers(3, 6, size=n)) for _ in range(5)]
        added = [
            plain_score(kernel, told, sentence, heads, [names[i] for i in labels])
            for heads, labels in trees
        ]
        expected = own_scores(parser, sentence, trees) + added
        np.testing.assert_allclose(own_scores(both, sentence, trees), expected, atol=1e-5)
        assert np.ptp(added) > 0.1 or n == 1


# Five trees of each sentence, or all of them.
@pytest.mark.parametrize(
    ("order", "scales", "k"),
    [
        *((order, {"arc": 0.1}, 5) for order in (1, 3)),
        *((order, {"arc": 0.01, "sibling": 6e-4, "grandparent": 6e-4}, 64) for order in (2, 3)),
    ],
)
def test_search_finds_the_best_tree_of_both_scores(order, scales, k):
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in (1, 2, 3, 4, 4, 4)]
    options = {**NOTHING_PRUNED, "restarts": 200, "patience": 200, "temperature": 100.0}
    parser = random_parser(rng, sentences, order=order, **options)
    kernel, _ = random_kernel(rng, parser.schema, sentences, scales, gamma=0.5)
    both, less = replace(parser, kernel=kernel), replace(parser, kernel=without(kernel))
    ids = parser.schema.labels
    lists = list(both.kbest(sentences, k=k, inventory=LabelInventory(), n_threads=1))
    changed = 0
    for sentence, found in zip(sentences, lists, strict=True):
        trees = labelled_trees(
            len(sentence), (ids["root"],), (ids["x"], ids["y"]), single_root=True
        )
        trees = [(np.array(heads), np.array(labels)) for heads, labels in trees]
        scores = own_scores(both, sentence, trees)
        assert found.scores[0, 0] == scores.max()
        changed += int(scores.argmax()) != int(own_scores(less, sentence, trees).argmax())
    assert changed


@pytest.mark.parametrize("types", **KINDS)
def test_lists_and_their_scores_with_a_kernel(types):
    parser, test = with_kernel(types), treebank()[1]
    less = replace(parser, kernel=without(parser.kernel))
    lists = list(parser.kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    others = list(less.kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    assert any((a.heads[0] != b.heads[0]).any() for a, b in zip(lists, others, strict=True))
    for trees, own in zip(lists, parser.score(test, lists, n_threads=1), strict=True):
        np.testing.assert_array_equal(trees.scores[:, 0], own)
        assert (np.diff(own) <= 0).all()


@pytest.mark.parametrize("types", **KINDS)
def test_parses_with_a_kernel_depend_on_nothing_else(types):
    parser, test = with_kernel(types), treebank()[1]
    parses = list(parser.parse(test, n_threads=1))
    lists = list(parser.kbest(test, k=5, inventory=LabelInventory(), n_threads=1))
    for threads in (2, 3):
        again = parser.parse(test, n_threads=threads)
        assert all(same(a, b) for a, b in zip(parses, again, strict=True))
        again = parser.kbest(test, k=5, inventory=LabelInventory(), n_threads=threads)
        assert all(same(a, b) for a, b in zip(lists, again, strict=True))
    for i in (0, 17, 39):
        assert same(parses[i], next(parser.parse(test[i : i + 1], n_threads=1)))


def test_lattice_arcs_are_those_that_are_searched():
    parser, test = trained(), treebank()[1]
    corpus = encode(parser.schema, test, with_trees=True)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths)
    every = lattice_arcs(*where, range(len(test)), n_threads=2)
    trees = list(parser.parse(test, n_threads=1))
    for i in (5, 0, 31):
        first, heads, labels, scores = lattice_arcs(*where, [i], n_threads=1)
        start = corpus.starts[i]
        arcs = slice(every[0][start], every[0][start + corpus.lengths[i]])
        for mine, all_of_them in zip((heads, labels, scores), every[1:], strict=True):
            np.testing.assert_array_equal(mine, all_of_them[arcs])
        for m, (head, name) in enumerate(zip(*trees[i], strict=True), start=1):
            mine = range(first[m], first[m + 1])
            label = parser.schema.label_id(name)
            assert [(heads[a], labels[a]) for a in mine].count((head, label)) == 1
    # With gold trees their arcs are there too, and all others cost something.
    gold = (corpus.heads, corpus.labels)
    first, heads, labels, _ = lattice_arcs(*where, range(len(test)), gold=gold, costs=(1.0, 0.5))
    for row in rows_of_words(corpus):
        arcs = slice(first[row], first[row + 1])
        right = (heads[arcs] == corpus.heads[row]) & (labels[arcs] == corpus.labels[row])
        assert right.sum() == 1
