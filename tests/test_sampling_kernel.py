"""The kernel in the decoder, against sums over its support parts."""

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

from tk_spacy.candidates import LabelInventory
from tk_spacy.kernel import kernel_matrix
from tk_spacy.part_types import PART_TYPES
from tk_spacy.parts import extract_parts, slot_rows
from tk_spacy.properties import FIRST_ID, Schema
from tk_spacy.sampling.search_kernel import ARC, SearchKernel, bare
from tk_spacy.sampling.search_space import lattice_arcs
from tk_spacy.sampling.words import encode
from tk_spacy.support_log import SupportLog

ARC_TYPE = PART_TYPES[ARC]


def arcs_of(schema, sentence, heads, labels):
    """Node rows of a sentence, and the arcs of its tree in slot form."""
    rows, _, members = extract_parts([heads], [labels], ARC_TYPE)
    return schema.encode(sentence).nodes, slot_rows(rows[members], ARC_TYPE)


def random_kernel(rng, schema, sentences, *, gamma=1.0, scale=0.01):
    """A kernel whose support is the gold arcs of sentences with random weights."""
    log = SupportLog((ARC,), len(schema.properties), groups=schema.property_groups())
    for i, sentence in enumerate(sentences):
        labels = [schema.label_id(name) for name in sentence.deprels]
        nodes, slots = arcs_of(schema, sentence, sentence.heads, labels)
        signs = rng.choice(np.array([-1, 1], dtype=np.int32), size=len(slots))
        weight = scale * float(rng.random())
        log.append(nodes, (slots,), (signs,), weight=weight, averaged=weight, origin=(i, i))
    return SearchKernel(schema=schema, support=bare(log.freeze()), gamma=gamma)


def plain_kernel_score(kernel, sentence, heads, deprels):
    """Gamma times the sum over a tree's arcs and all support parts of weight times kernel."""
    labels = [kernel.schema.label_id(name) for name in deprels]
    nodes, slots = arcs_of(kernel.schema, sentence, heads, labels)
    parts = kernel.support.types[ARC]
    support = np.ascontiguousarray(parts.columns[[0, 1, 2, 4]].T)
    matrix = kernel_matrix(ARC_TYPE, nodes, slots, kernel.support.nodes, support, n_threads=1)
    return kernel.gamma * float((matrix @ parts.weights).sum())


def test_scores_of_trees_are_the_parsers_and_the_kernels():
    rng = np.random.default_rng(1)
    sentences = [random_sentence(rng, n) for n in (1, 2, 6, 13)]
    parser = random_parser(rng, sentences)
    # Another schema, which numbers values and labels in another way and lacks the label y.
    few = [replace(s, deprels=tuple(d.replace("y", "x") for d in s.deprels)) for s in sentences]
    schema = Schema.fit(few[1:], labels=("a",))
    kernel = random_kernel(rng, schema, few, gamma=0.7)
    names = ["_"] * FIRST_ID + list(parser.labels)
    both = replace(parser, kernel=kernel)
    for sentence in sentences:
        n = len(sentence)
        trees = [(random_tree(rng, n), rng.integers(3, 6, size=n)) for _ in range(5)]
        expected = own_scores(parser, sentence, trees) + [
            plain_kernel_score(kernel, sentence, heads, [names[i] for i in labels])
            for heads, labels in trees
        ]
        np.testing.assert_allclose(own_scores(both, sentence, trees), expected, atol=1e-5)
        assert np.ptp(expected - own_scores(parser, sentence, trees)) > 1e-3 or n == 1


@pytest.mark.parametrize("order", [1, 3])
def test_search_finds_the_best_tree_of_both_scores(order):
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in (1, 2, 3, 4, 4, 4)]
    options = {**NOTHING_PRUNED, "restarts": 200, "patience": 200, "temperature": 100.0}
    parser = random_parser(rng, sentences, order=order, **options)
    both = replace(parser, kernel=random_kernel(rng, parser.schema, sentences, scale=0.05))
    ids = parser.schema.labels
    lists = list(both.kbest(sentences, k=5, inventory=LabelInventory(), n_threads=1))
    changed = 0
    for sentence, found in zip(sentences, lists, strict=True):
        trees = labelled_trees(
            len(sentence), (ids["root"],), (ids["x"], ids["y"]), single_root=True
        )
        trees = [(np.array(heads), np.array(labels)) for heads, labels in trees]
        scores = own_scores(both, sentence, trees)
        assert found.scores[0, 0] == scores.max()
        changed += int(scores.argmax()) != int(own_scores(parser, sentence, trees).argmax())
    assert changed


@pytest.fixture(scope="module")
def with_kernel():
    """A trained parser with a kernel that changes its trees, and sentences it did not see."""
    rng = np.random.default_rng(3)
    parser, (train, test) = trained(), treebank()
    kernel = random_kernel(rng, parser.schema, train[:60], scale=0.003)
    return replace(parser, kernel=kernel), test


def test_lists_and_their_scores_with_a_kernel(with_kernel):
    parser, test = with_kernel
    lists = list(parser.kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    plain = list(trained().kbest(test, k=8, inventory=LabelInventory(), n_threads=1))
    assert any((a.heads[0] != b.heads[0]).any() for a, b in zip(lists, plain, strict=True))
    for trees, own in zip(lists, parser.score(test, lists, n_threads=1), strict=True):
        np.testing.assert_array_equal(trees.scores[:, 0], own)
        assert (np.diff(own) <= 0).all()


def test_parses_with_a_kernel_depend_on_nothing_else(with_kernel):
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
