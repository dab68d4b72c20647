"""The kernel in the decoder and its learning, against sums over its support parts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import srsly
from reference_sampling import labelled_trees
from sampling_parsers import (
    NOTHING_PRUNED,
    QUICK,
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
from tk_spacy.model_files import ModelError, from_npz, to_npz
from tk_spacy.part_types import PART_TYPES
from tk_spacy.parts import extract_parts, slot_rows
from tk_spacy.properties import FIRST_ID, Schema
from tk_spacy.sampling.kernel_learning import Difference, KernelLearner
from tk_spacy.sampling.kernel_tuning import tune_gamma
from tk_spacy.sampling.parser import SamplingParser
from tk_spacy.sampling.search_kernel import ARC, SearchKernel, arc_slots, bare
from tk_spacy.sampling.search_space import lattice_arcs
from tk_spacy.sampling.settings import SamplingSettings
from tk_spacy.sampling.training import train_sampling_parser
from tk_spacy.sampling.updates import Learner
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


# Storage


def test_parsers_with_a_kernel_are_stored(with_kernel, tmp_path):
    parser, test = with_kernel
    parser.to_disk(tmp_path / "model")
    for again in (
        SamplingParser.from_disk(tmp_path / "model"),
        SamplingParser.from_bytes(parser.to_bytes()),
        replace(SamplingParser.from_files(parser.to_files()), settings=parser.settings),
    ):
        assert again.to_files() == parser.to_files()
        assert again.about == parser.about
        pairs = zip(again.parse(test), parser.parse(test), strict=True)
        assert all(same(a, b) for a, b in pairs)


def test_parsers_without_a_kernel_are_stored_as_before(with_kernel):
    parser, _ = with_kernel
    files = replace(parser, kernel=None).to_files()
    assert sorted(files) == ["meta.json", "schema.msgpack", "weights.npz"]
    meta = json.loads(files["meta.json"])
    assert meta["format_version"] == 1
    assert "kernel" not in meta
    assert not {"kernel_scale", "kernel_epochs"} & set(meta["settings"])
    assert json.loads(parser.to_files()["meta.json"])["format_version"] == 2


def test_damaged_kernels_are_refused(with_kernel):
    files = with_kernel[0].to_files()
    meta = json.loads(files["meta.json"])
    arrays = from_npz(files["kernel.npz"])
    arrays["arc.columns"] = arrays["arc.columns"] + np.int32(10**6)
    broken = [
        {n: content for n, content in files.items() if n != "kernel.npz"},
        {n: content for n, content in files.items() if n != "kernel.msgpack"},
        {**files, "kernel.npz": to_npz(arrays)},
        {**files, "kernel.msgpack": srsly.msgpack_dumps({})},
        *(
            {**files, "meta.json": json.dumps({**meta, "kernel": {"gamma": gamma}}).encode()}
            for gamma in (0, -1, "x", float("nan"), float("inf"))
        ),
    ]
    for damaged in broken:
        with pytest.raises(ModelError, match="damaged"):
            SamplingParser.from_files(damaged)


# Learning


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


def plain_margins(schema, sentences, taken, scale):
    """For each step the kernel's margin before it, by all earlier steps, and the squared norm."""
    known = []
    for i, gold, gold_labels, tree, labels, _, tau, _ in taken:
        both = [
            arcs_of(schema, sentences[i], heads[1:-1], ids[1:-1])
            for heads, ids in ((gold, gold_labels), (tree, labels))
        ]
        known.append((both[0][0], both[0][1], both[1][1], tau))

    def between(a, b):
        total = 0.0
        for sign_a, of_a in ((1, a[1]), (-1, a[2])):
            for sign_b, of_b in ((1, b[1]), (-1, b[2])):
                matrix = kernel_matrix(ARC_TYPE, a[0], of_a, b[0], of_b, n_threads=1)
                total += sign_a * sign_b * scale * float(matrix.sum())
        return total

    grams = np.array([[between(a, b) for b in known] for a in known])
    return grams, np.array([tau for *_, tau in known])


def test_steps_are_those_of_algorithm_1():
    rng = np.random.default_rng(8)
    sentences = [random_sentence(rng, n) for n in (3, 5, 6, 4)]
    scale = 0.3
    schema, _, learner, kernel, taken = learn_by_hand(sentences, 12, scale=scale)
    grams, taus = plain_margins(schema, sentences, taken, scale)
    assert (taus > 0).sum() > 6
    for t, (*_, apart) in enumerate(taken):
        assert apart.norm == pytest.approx(grams[t, t], rel=1e-6)
        assert apart.margin == pytest.approx(grams[t, :t] @ taus[:t], rel=1e-4, abs=1e-6)
    # The average: of the kernel as it stood after each step.
    after = np.array([grams[:, : t + 1] @ taus[: t + 1] for t in range(len(taken))]).mean(axis=0)
    averaged = kernel.averaged(learner.steps)
    names = ["_"] * FIRST_ID + list(schema.labels)
    for t, (i, gold, gold_labels, tree, labels, *_) in enumerate(taken):
        scores = [
            plain_kernel_score(averaged, sentences[i], heads[1:-1], [names[c] for c in ids[1:-1]])
            for heads, ids in ((gold, gold_labels), (tree, labels))
        ]
        assert scores[0] - scores[1] == pytest.approx(after[t], rel=1e-6, abs=1e-9)


def test_scores_that_are_remembered_are_those_of_the_whole_support():
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


# Tuning


def test_gamma_is_the_best_on_dev(with_kernel):
    parser, test = with_kernel
    plain = trained()
    dev = [
        replace(s, heads=heads, deprels=labels)
        for s, (heads, labels) in zip(test, parser.parse(test, n_threads=1), strict=True)
    ]
    # The kernel's own gamma makes all right, if the unit is chosen so that it is in the grid.
    unit = tune_gamma(plain, parser.kernel, dev, grid=(1.0,), n_threads=1)[1][0].gamma
    tuned, table = tune_gamma(
        plain, parser.kernel, dev, grid=(0.0, 0.5 / unit, 1.0 / unit, 4.0 / unit), n_threads=1
    )
    assert [row.las for row in table].index(max(row.las for row in table)) == 2
    assert table[2].las == pytest.approx(100.0, abs=0.5)
    assert tuned.kernel.gamma == pytest.approx(1.0)
    # Where nothing helps, there is no kernel.
    own = [
        replace(s, heads=heads, deprels=labels)
        for s, (heads, labels) in zip(test, plain.parse(test, n_threads=1), strict=True)
    ]
    tuned, table = tune_gamma(plain, parser.kernel, own, grid=(0.0, 1.0), n_threads=1)
    assert table[0].uas == table[0].las == 100.0
    assert tuned.kernel is None
