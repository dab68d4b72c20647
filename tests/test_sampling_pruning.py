"""The heads that the pruner keeps, against scores found out from single updates."""

from __future__ import annotations

import numpy as np
import pytest
from reference_spanning import best_tree
from sampling_parsers import (
    own_scores,
    random_parser,
    random_sentence,
    trained,
    treebank,
    with_settings,
)

from tk_spacy.features.schema import FIRST_MORPH
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.search.decoder import decode
from tk_spacy.parsers.sampling.search.search_space import kept_heads
from tk_spacy.parsers.sampling.search.updates import Learner
from tk_spacy.parsers.sampling.search.words import encode


def arc_scores(parser, fields):
    """The pruner's score of each arc, less that of the arc from the first other node: [h, m].

    A learner's first step is along the difference of two trees' features.
    """
    n = len(fields) - 2
    scores = np.full((n + 1, n + 1), -np.inf)
    for m in range(1, n + 1):
        scores[0, m] = 0.0
        for h in range(1, n + 1):
            if h == m:
                continue
            learner = Learner(
                size=1 << parser.settings.pruner_bits,
                n_cells=1,
                order=1,
                C=np.inf,
                morph_end=FIRST_MORPH + len(parser.schema.morph),
            )
            base = np.zeros(n + 2, dtype=np.int32)
            other = base.copy()
            other[m] = h
            step = learner.update(fields, other, base, base, base, 1.0)
            difference = np.rint(learner.weights[: len(parser.pruner)].astype(float) / step)
            scores[h, m] = difference @ parser.pruner
    return scores


def kept_of(parser, sentences):
    """For each sentence, the heads kept for each of its words."""
    corpus = encode(parser.schema, sentences)
    kept, first = kept_heads(
        parser._scorer, corpus.fields, corpus.starts, corpus.lengths, n_threads=1
    )
    assert first.dtype == np.int64
    assert len(first) == len(corpus.fields) + 1
    assert first[-1] == len(kept)
    out = []
    for i in range(len(corpus)):
        rows = range(*corpus.rows(i).indices(len(corpus.fields)))
        assert first[rows[0]] == first[rows[1]]  # none for the root
        assert first[rows[-1]] == first[rows[-1] + 1]  # none for the boundary
        out.append([kept[first[r] : first[r + 1]].tolist() for r in rows[1:-1]])
    return out


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize(("max_heads", "margin"), [(1, 1e9), (3, 1e9), (50, 0.7), (2, 0.2), (1, 0)])
def test_pruner_keeps_the_best_heads_and_a_tree(max_heads, margin, single_root):
    rng = np.random.default_rng(max_heads)
    sentences = [random_sentence(rng, n) for n in (1, 2, 5, 7)]
    parser = random_parser(
        rng, sentences, max_heads=max_heads, prune_margin=margin, single_root=single_root
    )
    for sentence, kept in zip(sentences, kept_of(parser, sentences), strict=True):
        scores = arc_scores(parser, encode(parser.schema, [sentence]).fields)
        tree = best_tree(scores, single_root=single_root)
        for m, heads in enumerate(kept, start=1):
            order = np.argsort(-scores[:, m])[:max_heads].tolist()
            best = scores[order[0], m]
            expected = [h for h in order if h != m and scores[h, m] >= best - margin]
            if tree[m - 1] not in expected:
                expected.append(tree[m - 1])
            assert heads == expected


def test_pruner_keeps_most_gold_heads():
    parser, (train, test) = trained(), treebank()
    recalls = []
    for part in (train, test):
        kept = kept_of(parser, part)
        right = [
            head in heads
            for sentence, words in zip(part, kept, strict=True)
            for head, heads in zip(sentence.heads.tolist(), words, strict=True)
        ]
        recalls.append(100 * np.mean(right))
        assert max(len(heads) for words in kept for heads in words) <= parser.settings.max_heads + 1
    assert recalls[0] > 95
    assert recalls[1] > 90
    said = parser.about["pruner"]["train"]
    assert said["recall"] == pytest.approx(recalls[0], abs=0.001)
    sizes = [len(heads) for words in kept_of(parser, train) for heads in words]
    assert said["heads_per_word"] == pytest.approx(np.mean(sizes), abs=0.001)


def decoded(parser, corpus, **options):
    s = parser.settings
    found = decode(
        parser._scorer,
        corpus.fields,
        corpus.starts,
        corpus.lengths,
        np.arange(len(corpus)),
        temperature=s.temperature,
        label_share=0.0,
        seeds=corpus.seeds,
        n_threads=1,
        **{"restarts": 3, "patience": 3, **options},
    )
    return found[0][:, 0], found[1][:, 0], found[2][:, 0]


@pytest.mark.parametrize("with_kept", [True, False])
def test_training_never_prunes_gold_arcs(with_kept):
    # The narrowest lattice, and a loss that pays for gold arcs: they must all be there.
    rng = np.random.default_rng(2)
    sentences = [random_sentence(rng, n) for n in (1, 4, 11, 25)]
    margins = {"prune_margin": 0.0, "label_margin": 0.0, "arc_margin": 0.0}
    parser = random_parser(rng, sentences, max_heads=1, max_labels=1, **margins)
    corpus = encode(parser.schema, sentences, with_trees=True)
    kept = kept_heads(parser._scorer, corpus.fields, corpus.starts, corpus.lengths, n_threads=1)
    heads, labels, _ = decoded(
        parser,
        corpus,
        gold=(corpus.heads, corpus.labels),
        costs=(-1000.0, -1000.0),
        kept=kept if with_kept else None,
    )
    np.testing.assert_array_equal(heads, corpus.heads)
    np.testing.assert_array_equal(labels, corpus.labels)


def test_losses_are_added_to_wrong_arcs_alone():
    rng = np.random.default_rng(5)
    sentences = [random_sentence(rng, n) for n in (3, 8, 14)]
    parser = random_parser(rng, sentences, order=3)
    corpus = encode(parser.schema, sentences, with_trees=True)
    gold = (corpus.heads, corpus.labels)
    costs = (3.0, 1.25)
    heads, labels, scores = decoded(parser, corpus, gold=gold, costs=costs)
    trees = zip(sentences, range(len(sentences)), scores, strict=True)
    for sentence, i, score in trees:
        words = slice(corpus.rows(i).start + 1, corpus.rows(i).stop - 1)
        wrong_head = heads[words] != corpus.heads[words]
        wrong_label = ~wrong_head & (labels[words] != corpus.labels[words])
        loss = costs[0] * wrong_head.sum() + costs[1] * wrong_label.sum()
        tree = (tuple(heads[words].tolist()), tuple(labels[words].tolist()))
        assert loss > 0
        assert score == pytest.approx(own_scores(parser, sentence, [tree])[0] + loss, abs=1e-5)


def test_pruning_before_and_while_decoding_are_one():
    rng = np.random.default_rng(6)
    sentences = [random_sentence(rng, n) for n in (1, 6, 20, 33)]
    parser = random_parser(rng, sentences, max_heads=4)
    corpus = encode(parser.schema, sentences)
    kept = kept_heads(parser._scorer, corpus.fields, corpus.starts, corpus.lengths, n_threads=2)
    for a, b in zip(decoded(parser, corpus), decoded(parser, corpus, kept=kept), strict=True):
        np.testing.assert_array_equal(a, b)


def test_lattices_hold_arcs_of_kept_heads_only():
    rng = np.random.default_rng(7)
    sentences = [random_sentence(rng, n) for n in (5, 17, 40)]
    parser = random_parser(rng, sentences, max_heads=3, prune_margin=0.5)
    for found, kept in zip(
        parser._lists(sentences, 20, 1), kept_of(parser, sentences), strict=True
    ):
        for heads in found[0].tolist():
            assert all(head in those for head, those in zip(heads, kept, strict=True))
    wide = with_settings(parser, max_heads=50, prune_margin=1e9)
    for found, narrow in zip(
        wide._lists(sentences, 1, 1), parser._lists(sentences, 1, 1), strict=True
    ):
        assert found[2][0] > narrow[2][0]


def head_chances(parser, learner, fields):
    """The chance of every head of every word: [h, m]."""
    scores = arc_scores(replace_pruner(parser, learner), fields)
    chances = np.exp(scores[:, 1:] - scores[:, 1:].max(axis=0))
    return chances / chances.sum(axis=0)


def replace_pruner(parser, learner):
    size = 1 << parser.settings.pruner_bits
    return SamplingParser(
        schema=parser.schema,
        settings=parser.settings,
        weights=parser.weights,
        pruner=learner.weights[:size].copy(),
        places=parser.places,
    )


def test_pruner_learns_the_chances_of_heads():
    rng = np.random.default_rng(11)
    sentences = [random_sentence(rng, n) for n in (2, 6, 9)]
    parser = random_parser(rng, sentences, pruner_bits=12)
    corpus = encode(parser.schema, sentences, with_trees=True)
    learner = Learner(
        size=1 << 12,
        n_cells=1,
        order=1,
        C=np.inf,
        morph_end=FIRST_MORPH + len(parser.schema.morph),
    )
    stored, likely = [], []
    for epoch in range(5):
        for i, sentence in enumerate(sentences):
            fields, gold = corpus.fields[corpus.rows(i)], corpus.heads[corpus.rows(i)]
            words = np.arange(len(sentence))
            before = head_chances(parser, learner, fields)[sentence.heads, words]
            if epoch == 0 and i == 0:
                np.testing.assert_allclose(before, 1 / len(sentence))  # nothing is known yet
            learner.select_heads(fields, gold, 0.1)
            after = head_chances(parser, learner, fields)[sentence.heads, words]
            assert np.log(after).sum() > np.log(before).sum()
            stored.append(learner.weights.copy())
            likely.append(after.min())
    assert learner.steps == 15
    np.testing.assert_allclose(learner.averaged(), np.mean(stored, axis=0), rtol=0, atol=1e-5)
    assert min(likely[-3:]) > 0.5
    narrow = with_settings(replace_pruner(parser, learner), max_heads=1, prune_margin=0.0)
    for sentence, kept in zip(sentences, kept_of(narrow, sentences), strict=True):
        assert [heads[0] for heads in kept] == sentence.heads.tolist()
