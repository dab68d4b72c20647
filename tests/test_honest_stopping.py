"""Early stopping: which state of a parser is kept, by which part, and that none learns there."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sampling_parsers
import tiny_spacy
import udpipe_parsers
from plain_scoring import plain_scores

from tk_spacy.features.schema import Schema
from tk_spacy.parsers.biaffine import training as biaffine_module
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.sampling import kernel_tuning, training
from tk_spacy.parsers.sampling.kernel_tuning import tune_gamma
from tk_spacy.parsers.sampling.search.words import encode
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.parsers.spacy_transition import training as spacy_training
from tk_spacy.parsers.spacy_transition.training import train_spacy_parser
from tk_spacy.parsers.udpipe import trainer
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.parsers.udpipe.training import train_udpipe_parser
from tk_spacy.tagging.spacy_tagger import training as spacy_tagger_module
from tk_spacy.tagging.udpipe import training as udpipe_tagger_module
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

TRAIN = [s for s in generate(80, seed=21) if len(s) < 12][:16]
DEV = [s for s in generate(80, seed=22) if len(s) < 12][:8]
FEW = {"epochs": 5, "pruner_epochs": 1, "bits": 12, "pruner_bits": 10, "restarts": 3, "seed": 2}


def turned(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The same words, all hung on their left neighbour."""
    return [s.with_tree(range(len(s)), ["root", *["obj"] * (len(s) - 1)]) for s in sentences]


# The sampling parser


def test_a_pruner_s_recall_is_the_share_of_gold_heads_that_it_keeps() -> None:
    gold = Sentence.from_columns(
        forms=list("abc"), upos=["NOUN"] * 3, heads=[2, 0, 2], deprels=["x", "root", "x"]
    )
    corpus = encode(Schema.fit([gold]), [gold], seed=0, with_trees=True)
    # Of the first word the root and its head, of the second two wrong ones, of the third all.
    pruned = training.Pruned(
        "dev", corpus, np.array([0, 2, 1, 3, 0, 1, 2], np.int32), np.array([0, 0, 2, 4, 7, 7])
    )
    assert pruned.about() == {"recall": 66.667, "heads_per_word": 2.333}


def trained(train: Sequence[Sentence], dev: Sequence[Sentence] = (), **changes: Any) -> Any:
    settings = SamplingSettings(**{**FEW, **changes})
    return train_sampling_parser(train, dev, settings=settings, n_threads=1)


def script(
    monkeypatch: pytest.MonkeyPatch,
    told: Sequence[tuple[float, float]],
    kernels: list[Any] | None = None,
) -> list[Any]:
    """Scores on dev, epoch after epoch; what was asked, the weights and the part.

    kernels: takes those that were asked of.
    """
    asked: list[Any] = []
    scores: Iterator[tuple[float, float]] = iter(told)

    def answer(scorer: Any, kernel: Any, part: Any, settings: Any, n_threads: Any) -> Any:
        asked.append((scorer, part, settings))
        if kernels is not None:
            kernels.append(kernel)
        return next(scores)

    monkeypatch.setattr(training, "_accuracy", answer)
    return asked


@pytest.mark.parametrize(
    ("told", "idle", "kept", "asked"),
    [
        ([(50, 40), (60, 50), (70, 41), (60, 50), (59, 51)], 30, 3, 5),  # the sum of UAS and LAS
        ([(50, 40), (60, 50), (55, 55), (60, 49), (61, 49)], 30, 2, 5),  # of equals the first
        ([(10, 10), (9, 9), (9, 9), (90, 90), (95, 95)], 2, 1, 3),
        ([(10, 10), (9, 9), (11, 9), (9, 9), (9, 8)], 2, 1, 3),
        ([(10, 10), (9, 9), (11, 11), (9, 9), (9, 8)], 2, 3, 5),
        ([(10, 10), (11, 11), (12, 12), (13, 13), (14, 14)], 1, 5, 5),
    ],
)
def test_sampling_parser_is_that_of_the_epoch_that_did_best_on_dev(
    monkeypatch: pytest.MonkeyPatch,
    told: list[tuple[float, float]], idle: int, kept: int, asked: int,
) -> None:  # fmt: skip
    of_dev = script(monkeypatch, told)
    found = trained(TRAIN, DEV, idle_epochs=idle)
    assert len(of_dev) == asked
    assert {len(part.corpus) for _, part, _ in of_dev} == {len(DEV)}
    assert {settings for *_, settings in of_dev} == {found.settings}
    # The same training that ends there, without dev: the averaged weights of that epoch.
    alone = trained(TRAIN, epochs=kept)
    np.testing.assert_array_equal(found.weights, alone.weights)
    np.testing.assert_array_equal(found.pruner, alone.pruner)


@pytest.mark.parametrize(
    ("told", "kept"),
    [([(10, 10), (12, 12), (11, 11), (9, 9)], 2), ([(12, 12), (9, 9), (9, 9), (13, 13)], 4)],
)
def test_sampling_parser_s_kernel_is_that_of_the_epoch_that_did_best_on_dev(
    monkeypatch: pytest.MonkeyPatch, told: list[tuple[float, float]], kept: int
) -> None:
    kernels: list[Any] = []
    script(monkeypatch, told, kernels)
    found = trained(TRAIN, DEV, epochs=4, kernel_scale=0.1)
    # The same trainings without dev that end there: what the kernel weighs then.
    ends = [trained(TRAIN, epochs=epochs, kernel_scale=0.1) for epochs in (1, 2, 3, 4)]
    of_ends = [end.to_files()["kernel.npz"] for end in ends]
    assert len(set(of_ends)) == 4
    assert found.to_files()["kernel.npz"] == of_ends[kept - 1]
    np.testing.assert_array_equal(found.weights, ends[kept - 1].weights)
    # Dev judges each epoch with the kernel as it is then.
    judged = [replace(found, kernel=kernel).to_files()["kernel.npz"] for kernel in kernels]
    assert judged == of_ends


def test_sampling_parser_is_judged_without_a_kernel_before_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels: list[Any] = []
    script(monkeypatch, [(1, 1), (2, 2), (3, 3), (4, 4)], kernels)
    parser = trained(TRAIN, DEV, epochs=4, kernel_scale=0.1, kernel_epochs=2)
    assert [kernel is None for kernel in kernels] == [True, True, False, False]
    assert parser.kernel is not None


def test_sampling_parser_without_dev_is_that_of_the_last_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = script(monkeypatch, [])
    parsers = [trained(TRAIN, epochs=epochs) for epochs in (2, 3)]
    assert not asked
    assert (parsers[0].weights != parsers[1].weights).any()


def test_sampling_parser_learns_nothing_from_the_trees_of_dev(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = []
    for dev in (DEV, turned(DEV)):
        script(monkeypatch, [(1, 1), (2, 2), (3, 3)])
        weights.append(trained(TRAIN, dev, epochs=3).weights)
    np.testing.assert_array_equal(weights[0], weights[1])
    script(monkeypatch, [(1, 1), (2, 2), (3, 3)])
    other = trained([*turned(TRAIN[:1]), *TRAIN[1:]], DEV, epochs=3).weights
    assert (other != weights[0]).any()


@pytest.mark.parametrize("kernel_scale", [0.0, 0.01])
def test_sampling_parser_s_scores_on_dev_are_those_of_plain_counting(kernel_scale: float) -> None:
    told = []
    parser = train_sampling_parser(
        TRAIN, DEV, n_threads=1, progress=told.append,
        # One epoch; a search that has one answer.
        settings=SamplingSettings(
            **{**FEW, "epochs": 1, "order": 1, "restarts": 30, "training_restarts": 30},
            kernel_scale=kernel_scale,
        ),
    )  # fmt: skip
    last = told[-1]
    trees = [(heads.tolist(), deprels) for heads, deprels in parser.parse(DEV, n_threads=1)]
    expected = plain_scores(DEV, trees)
    assert last.uas == pytest.approx(expected["uas"])
    assert last.las == pytest.approx(expected["las"])
    assert 0 < expected["las"] < expected["uas"] < 100
    of_train = plain_scores(TRAIN, [(h.tolist(), d) for h, d in parser.parse(TRAIN, n_threads=1)])
    assert of_train["uas"] != expected["uas"]
    assert parser.about["pruner"].keys() == {"train", "dev"}


def test_sampling_parser_s_steps_make_up_for_wrong_heads_and_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, steps = training.Learner, []

    class Spy:
        def __init__(self, **options: Any) -> None:
            self._learner = real(**options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._learner, name)

        def update(
            self, fields: Any, gold: Any, labels: Any, tree: Any, own: Any, loss: Any
        ) -> Any:
            steps.append((gold.tolist(), labels.tolist(), tree.tolist(), own.tolist(), loss))
            return self._learner.update(fields, gold, labels, tree, own, loss)

    monkeypatch.setattr(training, "Learner", Spy)
    parser = trained(TRAIN, epochs=4, label_cost=0.25)
    assert len(steps) == 4 * len(TRAIN)
    golds = {tuple(s.heads.tolist()) for s in TRAIN}
    names = {tuple(parser.schema.label_id(d) for d in s.deprels) for s in TRAIN}
    by_labels = 0
    for gold, labels, tree, own, loss in steps:
        words = range(1, len(gold) - 1)  # the root's row is the first, the boundary's the last
        assert tuple(gold[w] for w in words) in golds
        assert tuple(labels[w] for w in words) in names
        wrong = sum(tree[w] != gold[w] for w in words)
        mislabelled = sum(tree[w] == gold[w] and own[w] != labels[w] for w in words)
        assert loss == pytest.approx(wrong + 0.25 * mislabelled)
        by_labels += mislabelled
    assert by_labels > 5


# A kernel's gamma


class Nothing:
    """A kernel that leaves every score as it is, whatever its gamma."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def with_gamma(self, gamma: float) -> Nothing:
        return Nothing(gamma)

    def nodes(self, sentences: Any) -> Any:
        return None

    def label_table(self, schema: Any) -> Any:
        return None

    def added(self, arcs: Any, *_: Any, **__: Any) -> Any:
        first, heads, labels, scores = arcs
        return first, heads, labels, scores + np.arange(len(scores))


@pytest.mark.parametrize(
    ("right", "best"),
    # Words with the right head, and with the right label too, for each gamma of the grid.
    [
        ([(3, 1), (4, 2), (5, 1)], 1),  # LAS decides
        ([(3, 2), (4, 2), (5, 1)], 1),  # then UAS
        ([(4, 2), (4, 2), (4, 2)], 0),  # then the smaller gamma
        ([(1, 1), (4, 3), (4, 3)], 1),
        ([(6, 5), (5, 5), (2, 2)], 0),
    ],
)
def test_gamma_is_the_one_that_does_best_on_dev(
    monkeypatch: pytest.MonkeyPatch, right: list[tuple[int, int]], best: int
) -> None:
    gold = [
        Sentence.from_columns(
            forms=list("abcdef"), upos=["NOUN"] * 6, heads=[0, 1, 1, 1, 1, 1],
            deprels=["root", *["obj"] * 5],
        )
    ]  # fmt: skip
    parser = sampling_parsers.trained()
    answers = iter(right)

    def decoded(gold_heads: Any, gold_labels: Any) -> Any:
        heads, labelled = next(answers)
        tree, labels = gold_heads.copy(), gold_labels.copy()
        for word in range(1, 7):  # row 0 is the root's
            if word > heads:
                tree[word] = -1
            if word > labelled:
                labels[word] = -1
        return tree[:, None], labels[:, None], None, None

    corpora: list[Any] = []
    real = kernel_tuning.encode

    def spy(*args: Any, **kwargs: Any) -> Any:
        corpora.append(real(*args, **kwargs))
        return corpora[-1]

    def answer(*_: Any, **__: Any) -> Any:
        return decoded(corpora[0].heads, corpora[0].labels)

    lattices: list[Any] = []
    real_lattice = kernel_tuning.lattice_arcs

    def spy_lattice(*args: Any, **kwargs: Any) -> Any:
        lattices.append(real_lattice(*args, **kwargs))
        return lattices[-1]

    monkeypatch.setattr(kernel_tuning, "encode", spy)
    monkeypatch.setattr(kernel_tuning, "lattice_arcs", spy_lattice)
    monkeypatch.setattr(kernel_tuning, "decode", answer)
    monkeypatch.setattr(kernel_tuning, "decode_with_kernel", lambda *a, **k: (answer(), None))
    tuned, table = tune_gamma(parser, Nothing(), gold, grid=(0.0, 0.1, 1.0), n_threads=1)  # type: ignore[arg-type]
    assert [row.uas for row in table] == [pytest.approx(100 * h / 6) for h, _ in right]
    assert [row.las for row in table] == [pytest.approx(100 * b / 6) for _, b in right]
    assert [row.relative for row in table] == [0.0, 0.1, 1.0]
    # A gamma of 1 makes the kernel's scores vary as much as the parser's among a word's arcs.
    ((first, _, _, scores),) = lattices
    unit = plain_spread(scores, first) / plain_spread(np.arange(len(scores)), first)
    assert [row.gamma for row in table] == pytest.approx([0.0, 0.1 * unit, unit])
    assert unit > 0
    if best:
        assert tuned.kernel is not None
        assert tuned.kernel.gamma == table[best].gamma > 0
    else:
        assert tuned.kernel is None


def plain_spread(scores: Any, first: Any) -> float:
    """The root of the mean squared distance to the mean of the arcs into the same word."""
    squares: list[float] = []
    for start, stop in itertools.pairwise(first.tolist()):
        own = [float(score) for score in scores[start:stop]]
        squares += [(score - sum(own) / len(own)) ** 2 for score in own]
    return math.sqrt(sum(squares) / len(squares))


def test_a_kernel_s_size_is_its_spread_among_the_arcs_into_the_same_word() -> None:
    scores = np.random.default_rng(3).normal(size=8)
    first = np.array([0, 0, 1, 4, 4, 6, 8])  # no arc, one, three ...
    assert kernel_tuning._spread(scores, first) == pytest.approx(plain_spread(scores, first))
    assert kernel_tuning._spread(np.zeros(0), np.zeros(3, dtype=np.int64)) == 0.0


def test_a_kernel_of_old_is_no_part_of_what_is_tuned() -> None:
    parser = trained(TRAIN, epochs=1, kernel_scale=0.1)
    bare = replace(parser, kernel=None)
    results = [
        tune_gamma(p, parser.kernel, DEV, grid=(0.0, 0.3), n_threads=1) for p in (parser, bare)
    ]
    assert results[0][1] == results[1][1]
    tuned, (row,) = tune_gamma(parser, parser.kernel, DEV, grid=(0.0,), n_threads=1)
    assert tuned.kernel is None
    assert row.gamma == 0


def test_no_gamma_is_tuned_on_nothing() -> None:
    for grid, dev in (((), DEV), ((0.0,), [])):
        with pytest.raises(ValueError, match="no gamma or no sentence to tune with"):
            tune_gamma(sampling_parsers.trained(), Nothing(), dev, grid=grid)  # type: ignore[arg-type]


# The others


def test_biaffine_parser_has_no_dev_and_sees_each_sentence_once_an_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    real = biaffine_module.make_batch

    def spy(sentences: Sequence[Sentence], *, labels: Sequence[str]) -> Any:
        assert labels == biaffine_module.labels_of(TRAIN)
        seen.append([str(s.sent_id) for s in sentences])
        return real(sentences, labels=labels)

    monkeypatch.setattr(biaffine_module, "make_batch", spy)
    settings = BiaffineSettings(
        epochs=3,
        steps=0,
        batch=30,
        word_width=4,
        tag_width=4,
        width=4,
        layers=1,
        arc_width=4,
        label_width=4,
    )
    steps = []
    biaffine_module.train_biaffine_parser(
        TRAIN, settings=settings, report=lambda done, of: steps.append((done, of))
    )
    flat = [name for batch in seen for name in batch]
    names = sorted(str(s.sent_id) for s in TRAIN)
    for epoch in range(3):
        assert sorted(flat[epoch * len(TRAIN) : (epoch + 1) * len(TRAIN)]) == names
    assert len(flat) == 3 * len(TRAIN)
    assert flat[: len(TRAIN)] != flat[len(TRAIN) : 2 * len(TRAIN)]  # shuffled anew
    assert steps[-1] == (3 * len(TRAIN), 3 * len(TRAIN))


def test_biaffine_rate_rises_for_a_tenth_and_falls_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates: list[float] = []
    real = biaffine_module.Adam

    def spy(schedule: Iterator[float], **more: Any) -> Any:
        def noted() -> Iterator[float]:
            for rate in schedule:
                rates.append(rate)
                yield rate

        return real(noted(), **more)

    monkeypatch.setattr(biaffine_module, "Adam", spy)
    settings = BiaffineSettings(
        epochs=20, batch=30, rate=0.5, word_width=4, tag_width=4, width=4, layers=1, arc_width=4,
        label_width=4,
    )  # fmt: skip
    biaffine_module.train_biaffine_parser(TRAIN, settings=settings)
    steps = len(rates) - 1
    top = max(range(steps), key=rates.__getitem__)
    assert top == steps // 10
    assert rates[top] == pytest.approx(0.5)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[top // 2] == pytest.approx(0.5 * (top // 2) / top)
    assert rates[0] == rates[steps] == 0


SMALL = {
    "steps": 0,
    "word_width": 4,
    "tag_width": 4,
    "width": 4,
    "layers": 1,
    "arc_width": 4,
    "label_width": 4,
}


def test_biaffine_steps_are_of_the_rate_at_that_share_of_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates: list[float] = []
    sizes: list[int] = []
    real_adam, real_batch = biaffine_module.Adam, biaffine_module.make_batch

    def spy_adam(*args: Any, **options: Any) -> Any:
        optimizer = real_adam(*args, **options)
        real_step = optimizer.step_schedules

        class Spy:
            def __call__(self, *args: Any, **options: Any) -> Any:
                return optimizer(*args, **options)

            def __getattr__(self, name: str) -> Any:
                return getattr(optimizer, name)

            def step_schedules(self) -> None:
                rates.append(optimizer.learn_rate)  # of the step that has been made
                real_step()

        return Spy()

    def spy(sentences: Sequence[Sentence], *, labels: Sequence[str]) -> Any:
        sizes.append(len(sentences))
        return real_batch(sentences, labels=labels)

    monkeypatch.setattr(biaffine_module, "Adam", spy_adam)
    monkeypatch.setattr(biaffine_module, "make_batch", spy)
    settings = BiaffineSettings(epochs=4, batch=30, rate=0.02, **SMALL)  # type: ignore[arg-type]
    biaffine_module.train_biaffine_parser(TRAIN, settings=settings)
    assert sum(sizes) == 4 * len(TRAIN)
    steps = len(sizes)
    top = steps // 10
    assert top > 1
    expected = [
        0.02 * step / top if step < top else 0.02 * (steps - step) / (steps - top)
        for step in range(steps)
    ]
    assert rates == pytest.approx(expected)


def test_biaffine_batches_hold_the_rows_of_words_and_roots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    real = biaffine_module.make_batch

    def spy(sentences: Sequence[Sentence], *, labels: Sequence[str]) -> Any:
        sizes.append(len(sentences))
        return real(sentences, labels=labels)

    monkeypatch.setattr(biaffine_module, "make_batch", spy)
    five = [s for s in generate(200, seed=23) if len(s) == 5][:6]
    settings = BiaffineSettings(epochs=1, batch=12, **SMALL)  # type: ignore[arg-type]
    biaffine_module.train_biaffine_parser(five, settings=settings)
    assert sizes == [2, 2, 2]  # of six rows each


@pytest.mark.parametrize("name", ["dropout", "column_dropout"])
def test_biaffine_parser_leaves_activations_out_in_training(name: str) -> None:
    parsers = [
        biaffine_module.train_biaffine_parser(
            TRAIN[:4],
            settings=BiaffineSettings(
                **{"epochs": 1, "dropout": 0.0, "column_dropout": 0.0, **SMALL, name: share}  # type: ignore[arg-type]
            ),
        )
        for share in (0.0, 0.0, 0.5)
    ]
    none, again, half = (
        [p.copy() for n in parser.model.walk() for p in map(n.maybe_get_param, n.param_names)
         if p is not None]
        for parser in parsers
    )  # fmt: skip
    for first, same, other in zip(none, again, half, strict=True):
        np.testing.assert_array_equal(first, same)
        assert (first != other).any()


@udpipe_parsers.needs_udpipe
def test_udpipe_learns_from_train_and_stops_by_dev(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[Any] = []
    real = trainer._run

    def spy(data: Path, *args: Any) -> Any:
        tasks.append(json.loads(data.read_text(encoding="utf-8")))
        return real(data, *args)

    monkeypatch.setattr(trainer, "_run", spy)
    quick = {**udpipe_parsers.QUICK, "iterations": 4, "beam_search": 1}
    settings = UdpipeSettings(**{**quick, "seed": 0})
    parser = train_udpipe_parser(TRAIN, DEV, settings=settings)
    (task,) = tasks
    assert [columns[0] for columns in task["train"]] == [list(s.forms) for s in TRAIN]
    assert [columns[0] for columns in task["dev"]] == [list(s.forms) for s in DEV]
    for part, sentences in (("train", TRAIN), ("dev", DEV)):
        heads = [columns[-2] for columns in task[part]]
        assert heads == [s.heads.tolist() for s in sentences]
    epochs = parser.about["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    # That the best of them is kept: see test_udpipe.
    # Train's words in another order, and no dev.
    train_udpipe_parser(TRAIN, settings=UdpipeSettings(**{**quick, "seed": 5}))
    forms = [columns[0] for columns in tasks[1]["train"]]
    assert sorted(forms) == sorted(list(s.forms) for s in TRAIN)
    assert forms != [list(s.forms) for s in TRAIN]
    assert tasks[1]["dev"] == []
    train_udpipe_parser(TRAIN, settings=UdpipeSettings(**{**quick, "seed": 5}))
    assert tasks[2] == tasks[1]


@udpipe_parsers.needs_udpipe
def test_udpipe_s_tagger_learns_from_train_and_stops_by_dev(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []

    def run_trainer(train: Any, dev: Any, **_: Any) -> bytes:
        shown.append((train, dev))
        return b"model"

    monkeypatch.setattr(udpipe_tagger_module, "run_trainer", run_trainer)
    udpipe_tagger_module.train_udpipe_tagger(TRAIN, DEV)
    udpipe_tagger_module.train_udpipe_tagger(TRAIN)
    words = [
        [[s.forms, s.lemmas, s.upos, s.xpos, s.feats] for s in part] for part in (TRAIN, DEV, [])
    ]
    found = [
        [[tuple(v or "_" for v in column) for column in columns[:5]] for columns in part]
        for part in (*shown[0], *shown[1])
    ]
    assert found == [[list(map(tuple, s)) for s in words[i]] for i in (0, 1, 0, 2)]


def test_spacy_s_taggers_learn_from_train_and_stop_by_dev(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(
        spacy_tagger_module,
        "train_by_config",
        lambda train, dev, *_, **__: shown.append((list(train), list(dev))),
    )
    spacy_tagger_module.train_spacy_tagger(TRAIN, DEV)
    spacy_tagger_module.train_spacy_tagger(TRAIN)
    # That the best state on dev is kept: see the parser's, which has the same training.
    assert shown == [(TRAIN, DEV), (TRAIN, [])]


def test_spacy_s_parser_learns_from_train_and_keeps_the_best_state_on_dev(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, list[str]]] = []
    loaded: list[str] = []
    write, load = spacy_training._write, spacy_training.spacy.load

    def spy_write(path: Path, sentences: Sequence[Sentence]) -> str:
        written.append((path.name, [" ".join(s.forms) for s in sentences]))
        return write(path, sentences)

    def spy_load(path: Path) -> Any:
        loaded.append(Path(path).name)
        return load(path)

    monkeypatch.setattr(spacy_training, "_write", spy_write)
    monkeypatch.setattr(spacy_training.spacy, "load", spy_load)
    changes = {"training__max_steps": 6, "training__eval_frequency": 2}
    config = tiny_spacy.tiny_config(tmp_path / "tiny.cfg", **changes)
    steps: list[Any] = []
    train_spacy_parser(TRAIN, dev=DEV, config=config, progress=steps.append)
    of = [[" ".join(s.forms) for s in part] for part in (TRAIN, DEV)]
    assert written == [("train.conllu", of[0]), ("dev.conllu", of[1])]
    assert [step.step for step in steps if step.scores] == [0, 2, 4, 6]
    train_spacy_parser(TRAIN, config=config, progress=steps.append)
    assert written[2:] == [("train.conllu", of[0])]
    train_spacy_parser(TRAIN, dev=DEV, config=config, backward=True)
    # The twin reads from right to left, and learns and stops by the same parts.
    back = [[" ".join(reversed(text.split(" "))) for text in part] for part in of]
    assert written[3:] == [
        ("train.conllu", of[0]), ("dev.conllu", of[1]),
        ("train.conllu", back[0]), ("dev.conllu", back[1]),
    ]  # fmt: skip
    assert loaded == ["model-best", "model-last", "model-best", "model-best"]
