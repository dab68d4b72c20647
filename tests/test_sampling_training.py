"""Training: what it learns from small treebanks, and that nothing but the input decides."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from sampling_parsers import (
    NOTHING_PRUNED,
    QUICK,
    is_projective,
    random_parser,
    random_sentence,
    same,
    trained,
    treebank,
)

from tk_spacy.ensemble.merging import MergedSource
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.sampling import training
from tk_spacy.parsers.sampling.parser import COMPANY_MARGIN, SamplingParser
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.source import SamplingSource
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.treebank.conllu import Sentence


def train(sentences, dev=(), *, n_threads=1, progress=None, **settings):
    return train_sampling_parser(
        sentences,
        dev,
        settings=SamplingSettings(**{**QUICK, **settings}),
        n_threads=n_threads,
        progress=progress,
    )


def lists(parser, sentences, *, k=5, n_threads=1):
    return list(parser.kbest(sentences, k=k, inventory=LabelInventory(), n_threads=n_threads))


def all_right(parser, sentences):
    return [
        heads.tolist() == sentence.heads.tolist() and deprels == sentence.deprels
        for sentence, (heads, deprels) in zip(
            sentences, parser.parse(sentences, n_threads=1), strict=True
        )
    ]


def made(words, heads, deprels, **columns):
    """A sentence from "form/UPOS ..."."""
    forms, upos = zip(*(word.split("/") for word in words.split()), strict=True)
    return Sentence.from_columns(
        forms=forms, lemmas=forms, upos=upos, heads=heads, deprels=deprels.split(), **columns
    )


# Nothing but the input decides


def test_training_gives_the_same_weights_for_any_number_of_threads():
    sentences = treebank()[0][:50]
    parsers = [train(sentences, n_threads=threads) for threads in (1, 2, 3, 1)]
    for parser in parsers[1:]:
        assert parser.to_files() == parsers[0].to_files()
    assert np.count_nonzero(parsers[0].weights) > 1000
    assert np.count_nonzero(parsers[0].pruner) > 100


def test_training_with_another_seed_gives_other_weights():
    sentences = treebank()[0][:30]
    one, other = (train(sentences, seed=seed) for seed in (0, 1))
    assert (one.weights != other.weights).any()
    assert (one.pruner != other.pruner).any()


def test_parses_do_not_depend_on_the_batch():
    parser, test = trained(), treebank()[1]
    parses, found = list(parser.parse(test, n_threads=1)), lists(parser, test)
    mixed = [*test[20:], *treebank()[0], *test[:20], *test[20:]]  # more than one batch's worth
    place = [mixed.index(sentence) for sentence in test]
    for threads in (1, 2, 3):
        again = list(parser.parse(mixed, n_threads=threads))
        again_lists = lists(parser, mixed, n_threads=threads)
        for i, j in enumerate(place):
            assert same(parses[i], again[j])
            assert same(found[i], again_lists[j])
    for i in (0, 11, 39):
        assert same(parses[i], next(parser.parse(test[i : i + 1], n_threads=1)))
        assert same(found[i], lists(parser, test[i : i + 1])[0])


def test_source_gives_what_the_parser_gives():
    parser, test = trained(), treebank()[1][:10]
    source = SamplingSource(parser, n_threads=2)
    assert source.names == ("sampling",)
    found = list(source.candidates(test, k=5))
    assert all(same(a, b) for a, b in zip(found, lists(parser, test), strict=True))
    assert all(trees.inventory is source.inventory for trees in found)
    for trees, scores in zip(found, source.score(test, found), strict=True):
        np.testing.assert_array_equal(trees.scores, scores)


def test_source_searches_among_fewer_heads_in_company_for_short_lists_alone():
    parser, test = trained(), treebank()[1][:10]
    tight = replace(parser, settings=replace(parser.settings, prune_margin=COMPANY_MARGIN))
    for k, beside, expected in ((8, True, tight), (9, True, parser), (8, False, parser)):
        source = SamplingSource(parser)
        others = [SamplingSource(parser, name="other", inventory=source.inventory)] * beside
        MergedSource([source, *others])
        found = list(source.candidates(test, k=k))
        assert all(same(a, b) for a, b in zip(found, lists(expected, test, k=k), strict=True))
    pairs = zip(lists(tight, test, k=8), lists(parser, test, k=8), strict=True)
    assert not all(same(a, b) for a, b in pairs)  # else the test would tell nothing


# What is learned


def test_training_learns_a_treebank_by_heart():
    sentences = treebank()[0][:15]
    right = all_right(train(sentences, epochs=8, restarts=20), sentences)
    assert np.mean(right) > 0.9


def test_training_learns_trees_that_are_never_projective():
    # The words of two phrases alternate; which one is the root, their tags tell.
    rng = np.random.default_rng(1)
    sentences = []
    for _ in range(40):
        a, b, c, d = (str(rng.choice(list(letters))) for letters in ("abc", "def", "ghi", "jkl"))
        if rng.random() < 0.5:
            s = made(f"{a}/ADJ {b}/ADV {c}/NOUN {d}/VERB", [3, 4, 4, 0], "amod advmod nsubj root")
        else:
            s = made(f"{b}/ADV {a}/ADJ {d}/VERB {c}/NOUN", [3, 4, 0, 3], "advmod amod root obj")
        assert not is_projective(s.heads.tolist())
        sentences.append(s)
    parser = train(sentences[:25], epochs=5)
    assert all(all_right(parser, sentences[25:]))


def test_dev_chooses_an_epoch():
    sentences, dev = treebank()[0][:40], treebank()[1][:10]
    reports = []
    parser = train(sentences, dev, progress=reports.append, epochs=3)
    ends = [r for r in reports if r.stage == "parser" and r.done == r.total]
    assert [r.epoch for r in ends] == [1, 2, 3]
    assert all(0 < r.las <= r.uas <= 100 for r in ends)
    assert parser.about["curve"]["values"] == [round(r.las, 3) for r in ends]
    assert {r.stage for r in reports} == {"pruner", "parser"}
    assert [r.done for r in reports if r.stage == "pruner"] == [8, 16, 24, 32, 40]
    best = max(r.uas + r.las for r in ends)
    right = np.concatenate(
        [s.heads == heads for s, (heads, _) in zip(dev, parser.parse(dev), strict=True)]
    )
    reached = next(r.uas for r in ends if r.uas + r.las == best)
    assert 100 * right.mean() == pytest.approx(reached, abs=3)  # that search has fewer starts
    assert all(r.uas is None for r in reports if r.done < r.total)


@pytest.mark.parametrize("idle", [1, 2, 30])
def test_training_ends_where_dev_has_not_done_better_for_long(idle):
    sentences, dev = treebank()[0][:20], treebank()[1][:10]
    states = []
    train(sentences, dev, epochs=12, idle_epochs=idle, progress=states.append)
    totals = [state.uas + state.las for state in states if state.uas is not None]
    expected, best = 0, 0
    while expected < 12 and expected - best < idle:
        expected += 1
        if expected == 1 or totals[expected - 1] > totals[best - 1]:
            best = expected
    assert len(totals) == expected
    assert (len(totals) < 12) == (idle < 12)


def test_labels_stand_where_training_saw_them():
    rng = np.random.default_rng(2)
    sentences = []
    for _ in range(30):
        top = str(rng.choice(["pred", "exclam", "both"]))
        below = [str(rng.choice(["both", "arg", "mod"])) for _ in range(4)]
        heads = [0, 1, 1, 2, 3] if rng.random() < 0.5 else [2, 0, 2, 3, 3]
        names = below.copy()
        names.insert(heads.index(0), top)
        words = " ".join(f"{rng.choice(list('abcd'))}/{rng.choice(['N', 'V'])}" for _ in heads)
        sentences.append(made(words, heads, " ".join(names)))
    parser = train(sentences)
    seen = set()
    for trees in lists(parser, sentences, k=30):
        for j, heads in enumerate(trees.heads.tolist()):
            seen |= {(head == 0, name) for head, name in zip(heads, trees.deprels(j), strict=True)}
    assert {name for top, name in seen if top} == {"pred", "exclam", "both"}
    assert {name for top, name in seen if not top} == {"both", "arg", "mod"}
    assert set(parser.labels) == {"pred", "exclam", "both", "arg", "mod"}


def test_pruner_learns_each_word_s_head_once_an_epoch(monkeypatch):
    sentences = treebank()[0][:20]
    real, asked, reports = training.Learner, [], []

    class Spy:
        def __init__(self, **options):
            self._learner = real(**options)

        def __getattr__(self, name):
            return getattr(self._learner, name)

        def select_heads(self, fields, gold_heads, rate):
            asked.append((tuple(gold_heads[1:-1].tolist()), rate))
            self._learner.select_heads(fields, gold_heads, rate)

    monkeypatch.setattr(training, "Learner", Spy)
    train(sentences, pruner_epochs=3, pruner_rate=0.125, epochs=2, progress=reports.append)
    golds = [tuple(s.heads.tolist()) for s in sentences]
    epochs = [asked[start : start + 20] for start in range(0, len(asked), 20)]
    assert len(epochs) == 3
    for epoch in epochs:
        assert sorted(heads for heads, _ in epoch) == sorted(golds)
        assert {rate for _, rate in epoch} == {0.125}
    assert len({tuple(epoch) for epoch in epochs}) == 3  # in another order each time
    assert [(r.stage, r.epoch, r.epochs, r.done, r.total) for r in reports] == [
        (stage, epoch, of, done, 20)
        for stage, of in (("pruner", 3), ("parser", 2))
        for epoch in range(1, of + 1)
        for done in (8, 16, 20)
    ]
    assert {(r.uas, r.las) for r in reports} == {(None, None)}  # there is no dev


def test_training_searches_among_the_labels_that_are_for_training():
    sentences = treebank()[0][:20]
    few = train(sentences, training_labels=1, max_labels=5)
    same_few = train(sentences, training_labels=1, max_labels=1)
    many = train(sentences, training_labels=4, max_labels=5)
    np.testing.assert_array_equal(few.weights, same_few.weights)
    assert (few.weights != many.weights).any()


# Where each step learns from


def watched_steps(monkeypatch, sentences, **settings):
    """Train with batches of one sentence; of each step the sentence, the parser as it was and the
    tree that was found."""
    settings = {"batch": 1, "order": 1, "epochs": 3, "label_cost": 0.25, **settings}
    real_scorer, real_decode, real_kernel = (
        training.make_scorer, training.decode, training.KernelLearner,
    )  # fmt: skip
    models, kernels, steps = [], [], []

    def make_scorer(*model):
        models.append(model)
        return real_scorer(*model)

    def kernel_learner(*args, **options):
        kernels.append(real_kernel(*args, **options))
        return kernels[-1]

    def decode(*args, **options):
        schema, chosen, weights, pruner, places = models[-1]
        (i,) = args[-1]
        parser = SamplingParser(
            schema=schema, settings=chosen, weights=weights.copy(), pruner=pruner, places=places,
            # Among so many steps those before an update do not count: the kernel itself.
            kernel=kernels[0].averaged(10**12) if kernels else None,
        )  # fmt: skip
        found = real_decode(*args, **options)
        heads, labels = (values[1:-1, 0].tolist() for values in found[:2])
        names = {label: name for name, label in schema.labels.items()}
        steps.append((sentences[i], parser, heads, [names[label] for label in labels]))
        return found

    monkeypatch.setattr(training, "make_scorer", make_scorer)
    monkeypatch.setattr(training, "decode", decode)
    monkeypatch.setattr(training, "KernelLearner", kernel_learner)
    train(sentences, **settings)
    assert len(steps) == settings["epochs"] * len(sentences)
    return steps


def with_loss(sentence, parser, trees):
    """What trees score, the loss that training lays on them added."""
    inventory = LabelInventory()
    built = CandidateList.build(
        [(*tree, 0.0) for tree in trees], inventory=inventory, sources=("any",)
    )
    (scores,) = parser.score([sentence], [built], n_threads=1)
    gold = list(zip(sentence.heads.tolist(), sentence.deprels, strict=True))
    totals = []
    for row, score in enumerate(scores):
        total = float(score)
        for own, right in zip(
            zip(built.heads[row].tolist(), built.deprels(row), strict=True), gold, strict=True
        ):
            total += 1.0 if own[0] != right[0] else 0.25 * (own[1] != right[1])
        totals.append(total)
    return totals


@pytest.mark.parametrize("kernel_scale", [0.0, 0.05])
def test_steps_learn_from_the_tree_that_is_best_with_its_loss_added(monkeypatch, kernel_scale):
    sentences = [s for s in treebank()[0] if 3 <= len(s) <= 6][:12]
    steps = watched_steps(
        monkeypatch, sentences, kernel_scale=kernel_scale,
        **{**NOTHING_PRUNED, "max_labels": 8, "training_labels": 8},
        training_restarts=30, patience=30,
    )  # fmt: skip
    by_loss = 0
    for sentence, parser, heads, deprels in steps:
        (best,) = lists(parser, [sentence], k=40)
        others = [(h.tolist(), best.deprels(j)) for j, h in enumerate(best.heads)]
        (found,) = with_loss(sentence, parser, [(heads, deprels)])
        assert found >= max(with_loss(sentence, parser, others)) - 1e-3
        by_loss += (heads, tuple(deprels)) != others[0]
    assert by_loss > len(steps) / 4


@pytest.mark.parametrize("kernel_scale", [0.0, 0.05])
def test_steps_always_know_the_gold_tree_however_much_is_pruned(monkeypatch, kernel_scale):
    sentences = [s for s in treebank()[0] if 3 <= len(s) <= 6][:12]
    tight = {"max_heads": 1, "max_labels": 1, "training_labels": 1, "arc_margin": 0.0}
    steps = watched_steps(monkeypatch, sentences, kernel_scale=kernel_scale, **tight)
    pruned = 0
    for sentence, parser, heads, deprels in steps:
        gold = sentence.heads.tolist(), sentence.deprels
        found, of_gold = with_loss(sentence, parser, [(heads, deprels), gold])
        assert found >= of_gold - 1e-3
        (plain,) = lists(parser, [sentence], k=1000)
        pruned += gold not in [(h.tolist(), plain.deprels(j)) for j, h in enumerate(plain.heads)]
    assert pruned > len(steps) / 10


@pytest.mark.parametrize("kernel_scale", [0.0, 0.05])
def test_steps_make_up_for_the_loss_and_no_more(monkeypatch, kernel_scale):
    sentences = [s for s in treebank()[0] if 3 <= len(s) <= 6][:12]
    steps = watched_steps(monkeypatch, sentences, kernel_scale=kernel_scale)
    taken = 0
    for (sentence, before, heads, deprels), (_, after, *_) in itertools.pairwise(steps):
        trees = [(heads, deprels), (sentence.heads.tolist(), sentence.deprels)]
        found, of_gold = with_loss(sentence, before, trees)
        if found > of_gold + 1e-3:
            found, of_gold = with_loss(sentence, after, trees)
            assert found == pytest.approx(of_gold, abs=2e-3)
            taken += 1
        elif trees[0] == trees[1]:
            np.testing.assert_array_equal(before.weights, after.weights)
    assert taken > 10


# Edges


def test_training_on_one_sentence():
    sentence = made("a/N b/V c/N", [2, 0, 2], "nsubj root obj")
    parser = train([sentence])
    assert all_right(parser, [sentence]) == [True]


def test_training_on_sentences_of_one_word():
    sentences = [made(f"{form}/X", [0], "root") for form in "abc"]
    parser = train(sentences)
    assert all(all_right(parser, sentences))
    longer = made("a/X b/X", [0, 1], "root dep")
    (heads, deprels), *_ = parser.parse([longer])
    assert sorted(heads.tolist())[0] == 0
    assert deprels == ("root", "root")


def test_training_with_labels_that_occur_once():
    sentences = [made(f"{c}/N v/V", [2, 0], f"only-{c} root") for c in "abcdefgh"]
    parser = train(sentences, epochs=12)
    assert len(parser.labels) == 9
    assert all(all_right(parser, sentences))
    assert len(lists(parser, sentences[:1], k=50)[0]) >= 2


def test_parses_of_short_and_unknown_sentences():
    parser = trained()
    unknown = [
        Sentence.from_columns(forms=[f"?{i}" for i in range(n)], upos=["?"] * n, feats=["?=?"] * n)
        for n in (1, 2, 3, 17)
    ]
    for sentence, trees in zip(unknown, lists(parser, unknown, k=8), strict=True):
        n = len(sentence)
        assert trees.n_words == n
        assert len(trees) == 8 if n > 2 else len(trees) >= 1
        assert np.isfinite(trees.scores).all()
    for heads, deprels in parser.parse(unknown, n_threads=1):
        assert heads.dtype == np.int32
        assert len(heads) == len(deprels)
        assert (heads == 0).sum() == 1
        assert set(deprels) <= set(parser.labels)


def test_training_without_feats():
    sentences = [
        Sentence.from_columns(
            forms=s.forms, lemmas=s.lemmas, upos=s.upos, heads=s.heads, deprels=s.deprels
        )
        for s in treebank()[0][:10]
    ]
    parser = train(sentences, epochs=5)
    assert parser.schema.morph == ()
    assert np.mean(all_right(parser, sentences)) > 0.7


@pytest.mark.parametrize("order", [1, 3])
def test_long_sentences_return(order):
    rng = np.random.default_rng(1)
    sentence = random_sentence(rng, 500)
    parser = random_parser(rng, [sentence], order=order)
    start = time.process_time()
    trees = lists(parser, [sentence], k=10)[0]
    assert time.process_time() - start < 20  # seconds of CPU time
    assert len(trees) == 10
    np.testing.assert_array_equal(
        parser.score([sentence], [trees], n_threads=1)[0], trees.scores[:, 0]
    )


def test_tags_that_dev_has_not_are_not_learned():
    def tagged(xpos):
        words = "a/NOUN b/VERB c/NOUN"
        return made(words, [2, 0, 2], "nsubj root obj", xpos=xpos)

    with_xpos, without = [tagged(["N", "V", "N"])] * 4, [tagged(["_"] * 3)] * 2
    assert train(with_xpos, with_xpos[:2]).schema.pos_column == "XPOS"
    assert train(with_xpos, without).schema.pos_column == "UPOS"


def test_training_refuses_what_it_cannot_learn_from():
    with pytest.raises(ValueError, match="no training sentence"):
        train([])
    bare = Sentence.from_columns(forms=["a", "b"], upos=["N", "V"])
    assert not bare.has_tree
    with pytest.raises(ValueError, match="sentence 2 has no tree"):
        train([made("a/N", [0], "root"), bare])
    with pytest.raises(ValueError, match="sentence 1 has no tree"):
        train([made("a/N", [0], "root")], [bare])
