"""The kernel's learning in the training of a sampling parser, against sums over its steps."""

from __future__ import annotations

import numpy as np
import pytest
from sampling_parsers import (
    NOTHING_PRUNED,
    QUICK,
    random_parser,
    random_sentence,
    random_tree,
    treebank,
)
from search_kernels import slots_of

from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.schema import Schema
from tk_spacy.kernels.template_kernel import kernel_matrix
from tk_spacy.parsers.sampling.kernel import learning
from tk_spacy.parsers.sampling.kernel.learning import Difference, KernelLearner
from tk_spacy.parsers.sampling.kernel.model import ARC, arc_slots
from tk_spacy.parsers.sampling.search.search_space import lattice_arcs
from tk_spacy.parsers.sampling.search.updates import Learner
from tk_spacy.parsers.sampling.search.words import encode
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser


def learn_by_hand(sentences, steps, *, scale, C=np.inf):
    """A learner of features and one of the kernel after some steps, and what they promised."""
    rng = np.random.default_rng(5)
    schema = Schema.fit(sentences)
    corpus = encode(schema, sentences, with_trees=True, with_nodes=True)
    parser = random_parser(rng, sentences, bits=10, scale=0.0, **NOTHING_PRUNED)
    learner = Learner(
        size=1 << 10, n_cells=len(parser.places), order=2, C=C, morph_end=parser.scorer.morph_end
    )
    kernel = KernelLearner(schema, corpus, scale=scale)
    taken = []
    for step in range(steps):
        if step % 3 == 2:
            kernel.begin_epoch(n_threads=1)
        i = int(rng.integers(len(sentences)))
        n = len(sentences[i])
        rows = corpus.rows(i)
        gold, gold_labels = corpus.heads[rows], corpus.labels[rows]
        tree = np.array([0, *random_tree(rng, n), 0], dtype=np.int32)
        labels = rng.permutation(gold_labels[1:-1]).astype(np.int32)
        labels = np.array([0, *labels, 0], dtype=np.int32)
        # The lattice: the arcs of both trees.
        arcs = [{(gold[m], gold_labels[m]), (tree[m], labels[m])} for m in range(1, n + 1)]
        first = np.cumsum([0, 0, *map(len, arcs), 0]).astype(np.int64)
        flat = np.array([arc for of_word in arcs for arc in sorted(of_word)], dtype=np.int32)
        heads, ids = np.ascontiguousarray(flat.T)
        kernel.begin([i], (first, heads, ids, np.zeros(len(flat))), n_threads=1)
        apart = kernel.difference(i, 0, gold, gold_labels, tree, labels)
        loss = float((gold != tree).sum())
        tau = learner.update(
            corpus.fields[rows], gold, gold_labels, tree, labels, loss, apart.margin, apart.norm
        )
        if tau > 0:
            kernel.learn(i, apart, tau, learner.steps)
        taken.append((i, gold, gold_labels, tree, labels, loss, tau, apart))
    return schema, corpus, learner, kernel, taken


def steps_apart(schema, sentences, taken):
    """Of each step the arcs that its trees differ by: (nodes, slots, 1 if gold or -1)."""
    return [
        (
            schema.encode(sentences[i]).nodes,
            np.concatenate(
                [slots_of(gold[1:-1], of_gold[1:-1], ARC), slots_of(tree[1:-1], of_tree[1:-1], ARC)]
            ),
            np.repeat([1.0, -1.0], len(sentences[i])),
        )
        for i, gold, of_gold, tree, of_tree, *_ in taken
    ]


def between(a, b):
    """The sum over two sets of arcs, each (nodes, slots, weights), of weights times kernel."""
    matrix = kernel_matrix(PART_TYPES[ARC], *a[:2], *b[:2], n_threads=1)
    return float(a[2] @ matrix @ b[2])


def test_steps_are_those_of_algorithm_1():
    rng = np.random.default_rng(8)
    sentences = [random_sentence(rng, n) for n in (3, 5, 6, 4)]
    scale = 0.3
    schema, _, learner, kernel, taken = learn_by_hand(sentences, 12, scale=scale)
    trees = steps_apart(schema, sentences, taken)
    grams = scale * np.array([[between(a, b) for b in trees] for a in trees])
    taus = np.array([tau for *_, tau, _ in taken])
    assert (taus > 0).sum() > 6
    for t, (*_, apart) in enumerate(taken):
        assert apart.norm == pytest.approx(grams[t, t], rel=1e-6)
        assert apart.margin == pytest.approx(grams[t, :t] @ taus[:t], rel=1e-4, abs=1e-6)
    # The average: of the kernel as it stood after each step.
    after = np.array([grams[:, : t + 1] @ taus[: t + 1] for t in range(len(taken))]).mean(axis=0)
    averaged = kernel.averaged(learner.steps)
    parts = averaged.support.types[ARC]
    slots = np.ascontiguousarray(parts.columns[[0, 1, 2, 4]].T)
    support = (averaged.support.nodes, slots, parts.weights)
    for own, expected in zip(steps_apart(averaged.schema, sentences, taken), after, strict=True):
        margin = averaged.gamma * between(own, support)
        assert margin == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_tree_differs_in_nothing_from_itself():
    rng = np.random.default_rng(8)
    sentences = [random_sentence(rng, n) for n in (3, 5)]
    _, _, _, kernel, taken = learn_by_hand(sentences, 4, scale=0.3)
    i, gold, gold_labels, *_ = taken[-1]
    apart = kernel.difference(i, 0, gold, gold_labels, gold, gold_labels)
    assert apart.slots.shape == (0, 4)
    assert apart.signs.shape == (0,)
    assert (apart.margin, apart.norm) == (0.0, 0.0)


def test_steps_that_cancel_out_leave_no_kernel():
    sentences = treebank()[0][:3]
    corpus = encode(Schema.fit(sentences), sentences, with_trees=True, with_nodes=True)
    kernel = KernelLearner(Schema.fit(sentences), corpus, scale=0.3)
    assert kernel.averaged(1) is None
    slots, signs = np.array([[0, 3, 1, 1]], dtype=np.int32), np.array([1], dtype=np.int32)
    kernel.learn(0, Difference(slots, signs, 0.0, 1.0), 0.1, 1)
    assert len(kernel.averaged(1).support) == 1
    kernel.learn(0, Difference(slots, -signs, 0.0, 1.0), 0.1, 1)
    assert kernel.averaged(1) is None


@pytest.mark.parametrize("levelled", [5, learning.LEVELLED])
def test_scores_that_are_remembered_are_those_of_the_whole_support(monkeypatch, levelled):
    monkeypatch.setattr(learning, "LEVELLED", levelled)
    rng = np.random.default_rng(11)
    sentences = treebank()[0][:12]
    schema = Schema.fit(sentences)
    corpus = encode(schema, sentences, with_trees=True, with_nodes=True)
    parser = random_parser(rng, sentences, bits=10, max_heads=4, max_labels=2)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths)
    kernel = KernelLearner(schema, corpus, scale=0.1)
    for epoch in range(3):
        kernel.begin_epoch(n_threads=1)
        for batch in ([3, 0, 5], [1, 2, 4, 6], [11, 7, 8], [9, 10]):
            arcs = lattice_arcs(*where, batch, n_threads=1)
            # Some arcs of each lattice are new, others gone.
            keep = rng.random(len(arcs[1])) < 0.8
            rows = np.repeat(np.arange(len(arcs[0]) - 1), np.diff(arcs[0]))
            counts = np.bincount(rows[keep], minlength=len(arcs[0]) - 1)
            first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            arcs = (first, *(values[keep] for values in arcs[1:]))
            scores = kernel.begin(batch, arcs, n_threads=1)[3] - arcs[3]
            averaged = kernel.averaged(1)  # after one step that is the kernel itself
            if averaged is None:
                assert not scores.any()
            else:
                lengths = corpus.lengths[batch]
                nodes = np.concatenate([corpus.nodes[corpus.rows(i)] for i in batch])
                slots = arc_slots(*arcs[:3], lengths)
                expected = averaged.scores(nodes, {ARC: slots}, n_threads=1)[ARC]
                np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-3)
                assert np.ptp(expected) > 1
            for i in batch:
                rows = corpus.rows(i)
                n = len(sentences[i])
                slots = np.array([[0, 3, m, m] for m in range(1, n + 1, 1 + epoch)], dtype=np.int32)
                signs = rng.choice(np.array([-1, 1], dtype=np.int32), size=len(slots))
                kernel.learn(i, Difference(slots, signs, 0.0, 1.0), 0.1, 1)


def test_only_arcs_that_are_new_are_scored_by_all_of_the_support(monkeypatch):
    rng = np.random.default_rng(12)
    sentences = treebank()[0][:6]
    schema = Schema.fit(sentences)
    corpus = encode(schema, sentences, with_trees=True, with_nodes=True)
    parser = random_parser(rng, sentences, bits=10, max_heads=4, max_labels=2)
    kernel = KernelLearner(schema, corpus, scale=0.1)
    scored, real = [], kernel._log.add_scores

    def add_scores(nodes, slots, scores, *, since, n_threads):
        if since == learning.NOTHING_YET:
            scored.append(len(slots[0][0]))
        return real(nodes, slots, scores, since=since, n_threads=n_threads)

    monkeypatch.setattr(kernel._log, "add_scores", add_scores)
    where = (parser.scorer, corpus.fields, corpus.starts, corpus.lengths)
    for batches in ([[3, 0, 5], [1, 2, 4]], [[4, 3, 2], [0, 1, 5]]):
        scored.clear()
        for batch in batches:
            kernel.begin(batch, lattice_arcs(*where, batch, n_threads=1), n_threads=1)
            slots = np.array([[0, 3, 1, 1]], dtype=np.int32)
            kernel.learn(batch[0], Difference(slots, np.ones(1, np.int32), 0.0, 1.0), 0.1, 1)
            if batches[0][0] == 3:
                assert sum(scored) > 10
        kernel.begin_epoch(n_threads=1)
    assert sum(scored) == 0


def test_a_step_makes_up_for_the_loss():
    # Features and kernel together, with the smallest step that does.
    rng = np.random.default_rng(9)
    sentences = [random_sentence(rng, 6)]
    _, corpus, learner, _, taken = learn_by_hand(sentences, 1, scale=0.5)
    i, gold, gold_labels, tree, labels, loss, tau, apart = taken[0]
    assert tau > 0
    rows = corpus.rows(i)
    again = learner.update(corpus.fields[rows], gold, gold_labels, tree, labels, 0.0, -1e9, 0.0)
    # A step for a margin of -1e9 and norm of the features alone tells their norm.
    features = (1e9 - 0.0) / again
    assert tau == pytest.approx(loss / (features + apart.norm), rel=1e-5)


def train(sentences, dev=(), *, n_threads=1, **settings):
    chosen = SamplingSettings(**{**QUICK, "kernel_scale": 0.1, **settings})
    return train_sampling_parser(sentences, dev, settings=chosen, n_threads=n_threads)


def test_training_with_a_kernel_is_the_same_for_any_number_of_threads():
    sentences = treebank()[0][:40]
    parsers = [train(sentences, treebank()[1][:5], n_threads=threads) for threads in (1, 2)]
    assert parsers[0].to_files() == parsers[1].to_files()
    assert parsers[0].kernel is not None
    assert len(parsers[0].kernel.support) > 100
    plain = train(sentences, treebank()[1][:5], kernel_scale=0.0)
    assert plain.kernel is None
    assert (plain.weights != parsers[0].weights).any()


def test_a_kernel_of_late_epochs_comes_late():
    sentences = treebank()[0][:20]
    late = train(sentences, epochs=2, kernel_epochs=1)
    early = train(sentences, epochs=2)
    assert 0 < len(late.kernel.support) < len(early.kernel.support)
    assert (
        train(sentences, epochs=2, kernel_epochs=2).to_files()["kernel.npz"]
        == (early.to_files()["kernel.npz"])
    )


def test_a_kernel_alone_learns():
    # Of 2 ** 8 hashed features hardly one means anything.
    sentences = treebank()[0][:60]
    options = {"bits": 8, "epochs": 3, "order": 1}
    scores = []
    for scale in (0.0, 1.0):
        parser = train(sentences, kernel_scale=scale, **options)
        test = treebank()[1]
        pairs = zip(test, parser.parse(test, n_threads=1), strict=True)
        scores.append(np.mean(np.concatenate([s.heads == heads for s, (heads, _) in pairs])))
    assert scores[1] > scores[0] + 0.05
