"""The arcs that score too little, labels and all, to be kept: against all trees of what is left."""

from __future__ import annotations

import numpy as np
import pytest
from reference_sampling import labelled_trees, score_parts
from sampling_parsers import (
    NOTHING_PRUNED,
    own_scores,
    random_parser,
    random_sentence,
    with_settings,
)

from tk_spacy.parsers.sampling.search.decoder import decode
from tk_spacy.parsers.sampling.search.words import encode

LENGTHS = [1, 2, 3, *[4] * 12, 5]
THOROUGH = {"restarts": 200, "patience": 200, "temperature": 100.0}
K = 10
ORDERS = pytest.mark.parametrize("order", [1, 2, 3])


def made(order, *, margin):
    """A parser with random weights that nothing but the margin keeps from any arc."""
    rng = np.random.default_rng(order)
    sentences = [random_sentence(rng, n) for n in LENGTHS]
    options = {**NOTHING_PRUNED, **THOROUGH, "label_share": 1.0, "arc_margin": margin}
    return random_parser(rng, sentences, order=order, **options), sentences


def every_tree(parser, n):
    ids = parser.schema.labels
    return labelled_trees(n, (ids["root"],), (ids["x"], ids["y"]), single_root=True)


def arcs_within(parser, sentence, losses=None):
    """For each word the arcs (head, label) that reach its best one less the margin.

    losses: added to the arcs' scores, {(word, head, label): loss}.
    """
    n = len(sentence)
    arcs = {
        (m, h, label): (-1, h, -1, -1, m, 0, 0, 0, label)
        for m in range(1, n + 1)
        for h in range(n + 1)
        for label in parser.schema.labels.values()
        if h != m and parser.places[label] & (1 if h == 0 else 2)
    }
    fields = encode(parser.schema, [sentence]).fields
    scores = score_parts(parser._scorer, fields, arcs.values(), 0)
    values = {arc: scores[row] + (losses or {}).get(arc, 0.0) for arc, row in arcs.items()}
    best = [max(values[arc] for arc in arcs if arc[0] == m) for m in range(1, n + 1)]
    margin = parser.settings.arc_margin
    return [
        {arc[1:] for arc in arcs if arc[0] == m and values[arc] >= best[m - 1] - margin}
        for m in range(1, n + 1)
    ]


def trees_of(trees, allowed):
    """Those trees all of whose arcs are among the allowed ones."""
    return [
        tree
        for tree in trees
        if all(arc in kept for arc, kept in zip(zip(*tree, strict=True), allowed, strict=True))
    ]


@ORDERS
def test_margin_leaves_arcs_out_unless_no_tree_is_left(order):
    parser, sentences = made(order, margin=0.4)
    whole = with_settings(parser, arc_margin=1e9)
    fewer = none = 0
    for sentence, found, without in zip(
        sentences, parser._lists(sentences, K, 1), whole._lists(sentences, K, 1), strict=True
    ):
        every = every_tree(parser, len(sentence))
        trees = trees_of(every, arcs_within(parser, sentence))
        heads, labels, scores = found
        if not trees:  # then all arcs are taken
            none += 1
            for a, b in zip(found, without, strict=True):
                np.testing.assert_array_equal(a, b)
            continue
        fewer += len(trees) < len(every)
        for tree in zip(heads.tolist(), labels.tolist(), strict=True):
            assert tuple(map(tuple, tree)) in trees
        assert scores[0] == own_scores(parser, sentence, trees).max()
    assert none > 0
    assert fewer > 3


@ORDERS
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_margin_never_leaves_out_gold_arcs(order, margin):
    # Losses make every gold arc worse than the others; yet no arc is ever needed beside the best
    # ones and the gold ones, which make up a tree.
    parser, sentences = made(order, margin=margin)
    corpus = encode(parser.schema, sentences, with_trees=True)
    costs = (0.6, 0.3)
    heads, labels, scores, _ = decode(
        parser._scorer,
        corpus.fields,
        corpus.starts,
        corpus.lengths,
        np.arange(len(sentences)),
        label_share=0.0,
        seeds=corpus.seeds,
        gold=(corpus.heads, corpus.labels),
        costs=costs,
        n_threads=1,
        **THOROUGH,
    )
    weak = 0
    for i, sentence in enumerate(sentences):
        words = slice(corpus.rows(i).start + 1, corpus.rows(i).stop - 1)
        gold = list(zip(corpus.heads[words].tolist(), corpus.labels[words].tolist(), strict=True))

        def loss(m, arc, gold=gold):
            head, label = gold[m - 1]
            return 0.0 if arc == (head, label) else costs[arc[0] == head]

        losses = {
            (m, h, label): loss(m, (h, label))
            for m in range(1, len(sentence) + 1)
            for h in range(len(sentence) + 1)
            for label in parser.schema.labels.values()
        }
        kept = arcs_within(parser, sentence, losses)
        allowed = [arcs | {arc} for arcs, arc in zip(kept, gold, strict=True)]
        trees = trees_of(every_tree(parser, len(sentence)), allowed)
        own = own_scores(parser, sentence, trees)
        totals = own + [
            sum(loss(m, arc) for m, arc in enumerate(zip(*tree, strict=True), start=1))
            for tree in trees
        ]
        assert scores[i, 0] == pytest.approx(totals.max(), abs=1e-5)
        arcs = zip(heads[words, 0].tolist(), labels[words, 0].tolist(), strict=True)
        weak += sum(arc == g not in own for arc, g, own in zip(arcs, gold, kept, strict=True))
    assert weak > 3  # arcs of the trees found that are there as gold arcs only
