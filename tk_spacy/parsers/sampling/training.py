"""Training of the sampling parser: the pruner, then the parser itself.

Online passive-aggressive learning with cost-augmented search and averaging.  The sentences of a
small batch are decoded in parallel with the same weights, then update them one after the other,
each by what is still wrong when its turn comes; so the result does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.parsers.sampling.kernel.learning import KernelLearner
from tk_spacy.parsers.sampling.kernel.model import SearchKernel
from tk_spacy.parsers.sampling.parser import SamplingParser, make_scorer
from tk_spacy.parsers.sampling.search.decoder import Scorer, decode
from tk_spacy.parsers.sampling.search.search_space import kept_heads, lattice_arcs
from tk_spacy.parsers.sampling.search.updates import Learner
from tk_spacy.parsers.sampling.search.words import Corpus, encode
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.treebank.conllu import Sentence

UNDER_ROOT, ELSEWHERE = 1, 2

EpochReport = Callable[["EpochProgress"], None]


@dataclass(frozen=True, slots=True)
class EpochProgress:
    """How far a training is.

    stage: "pruner" or "parser".  epoch, epochs: from 1.  done, total: sentences of the epoch.
    uas, las: on dev, percent, at the end of an epoch of the parser where there is a dev part.
    """

    stage: str
    epoch: int
    epochs: int
    done: int
    total: int
    uas: float | None = None
    las: float | None = None


def train_sampling_parser(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    settings: SamplingSettings | None = None,
    n_threads: int | None = None,
    progress: EpochReport | None = None,
) -> SamplingParser:
    """A sampling parser from sentences with trees.

    dev: the epoch that does best there is kept, and the training ends early where none has done
        better for long; without it the last one is kept.
    Raises ValueError where there is no sentence, or one without a tree.
    """
    if not train:
        raise ValueError("no training sentence, expected at least one")
    settings = settings or SamplingSettings()
    curve: list[float] = []

    def report(state: EpochProgress) -> None:
        if state.las is not None:
            curve.append(round(state.las, 3))
        if progress is not None:
            progress(state)

    schema = Schema.fit(train, dev, extras=settings.extra)
    options: dict[str, Any] = {
        "seed": settings.seed, "with_trees": True, "with_nodes": settings.kernel_scale > 0,
    }  # fmt: skip
    corpus = encode(schema, train, **options)
    dev_corpus = encode(schema, dev, **options) if dev else None
    places = label_places(corpus, schema)
    pruner = _train_pruner(corpus, schema, settings, report)
    nothing = np.zeros(2 + len(places), dtype=np.float32)
    pruning = make_scorer(schema, settings, nothing, pruner, places)
    parts = [
        Pruned(
            name,
            part,
            *kept_heads(pruning, part.fields, part.starts, part.lengths, n_threads=n_threads),
        )
        for name, part in (("train", corpus), ("dev", dev_corpus))
        if part is not None
    ]
    weights, kernel = _train_parser(schema, parts, settings, places, pruner, n_threads, report)
    about: dict[str, Any] = {"pruner": {part.name: part.about() for part in parts}}
    if curve:
        about["curve"] = {"of": "LAS on dev, %", "values": curve}
    return SamplingParser(
        schema=schema,
        settings=settings,
        weights=weights,
        pruner=pruner,
        places=places,
        kernel=kernel,
        about=about,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Pruned:
    """A part of the treebank, and the heads that the pruner keeps (see search_space.kept_heads)."""

    name: str
    corpus: Corpus
    heads: NDArray[np.int32]
    first: NDArray[np.int64]

    def about(self) -> dict[str, float]:
        """How many gold heads are kept, percent, and how many heads a word."""
        assert self.corpus.heads is not None
        owners = np.repeat(np.arange(len(self.corpus.fields)), np.diff(self.first))
        right = int((self.heads == self.corpus.heads[owners]).sum())
        return {
            "recall": round(100 * right / self.corpus.words, 3),
            "heads_per_word": round(len(self.heads) / self.corpus.words, 3),
        }


def label_places(corpus: Corpus, schema: Schema) -> NDArray[np.uint8]:
    """Where each label stands in a treebank: uint8[label ids], see decoder.Scorer."""
    assert corpus.heads is not None
    assert corpus.labels is not None
    places = np.zeros(FIRST_ID + len(schema.labels), dtype=np.uint8)
    words = corpus.labels > 0
    under_root = words & (corpus.heads == 0)
    places[np.unique(corpus.labels[under_root])] |= UNDER_ROOT
    places[np.unique(corpus.labels[words & ~under_root])] |= ELSEWHERE
    if not (places & ELSEWHERE).any():  # one-word sentences only
        places[FIRST_ID:] |= ELSEWHERE
    return places


def _shuffled(n: int, epoch: int, settings: SamplingSettings) -> list[list[int]]:
    """The sentences of an epoch in batches."""
    order = np.random.default_rng((settings.seed, epoch)).permutation(n).tolist()
    return [order[i : i + settings.batch] for i in range(0, n, settings.batch)]


def _train_pruner(
    corpus: Corpus, schema: Schema, settings: SamplingSettings, report: EpochReport
) -> NDArray[np.float32]:
    """The weights of the first-order pruner: float32[2 ** pruner_bits]."""
    size = 1 << settings.pruner_bits
    assert corpus.heads is not None
    learner = Learner(size=size, n_cells=1, order=1, C=settings.C, morph_end=schema.n_columns)
    for epoch in range(1, settings.pruner_epochs + 1):
        done = 0
        for batch in _shuffled(len(corpus), epoch, settings):
            for i in batch:
                rows = corpus.rows(i)
                learner.select_heads(corpus.fields[rows], corpus.heads[rows], settings.pruner_rate)
            done += len(batch)
            report(EpochProgress("pruner", epoch, settings.pruner_epochs, done, len(corpus)))
    averaged: NDArray[np.float32] = learner.averaged()[:size]
    return averaged


def _train_parser(
    schema: Schema,
    parts: Sequence[Pruned],
    settings: SamplingSettings,
    places: NDArray[np.uint8],
    pruner: NDArray[np.float32],
    n_threads: int | None,
    report: EpochReport,
) -> tuple[NDArray[np.float32], SearchKernel | None]:
    """The weights of the parser, float32[2 ** bits + n_cells], and its kernel, None without one.

    parts: train and perhaps dev.
    """
    train, *others = parts
    dev = others[0] if others else None
    corpus = train.corpus
    assert corpus.heads is not None
    assert corpus.labels is not None
    learner = Learner(
        size=1 << settings.bits,
        n_cells=len(places),
        order=settings.order,
        C=settings.C,
        morph_end=schema.n_columns,
        crossing=settings.crossing,
    )
    few = replace(settings, max_labels=settings.training_labels)
    scorer = make_scorer(schema, few, learner.weights, pruner, places)
    kernel: KernelLearner | None = None
    best: tuple[float, int, NDArray[np.float32], SearchKernel | None] | None = None
    for epoch in range(1, settings.epochs + 1):
        if settings.kernel_scale and epoch > settings.epochs - settings.kernel_epochs:
            kernel = kernel or KernelLearner(schema, corpus, scale=settings.kernel_scale)
            kernel.begin_epoch(n_threads=n_threads)
        done = 0
        for batch in _shuffled(len(corpus), epoch, settings):
            _learn_batch(
                learner, kernel, scorer, train, batch, settings, epoch, n_threads=n_threads
            )
            done += len(batch)
            if done < len(corpus):
                report(EpochProgress("parser", epoch, settings.epochs, done, len(corpus)))
        uas = las = None
        if dev is not None:
            averaged = learner.averaged()
            own = None if kernel is None else kernel.averaged(learner.steps)
            uas, las = _accuracy(
                make_scorer(schema, settings, averaged, pruner, places),
                own, dev, settings, n_threads,
            )  # fmt: skip
            if best is None or uas + las > best[0]:
                # A copy, so that the compiled form, which is large, goes.
                best = (uas + las, epoch, averaged, own and own.with_gamma(own.gamma))
        report(EpochProgress("parser", epoch, settings.epochs, done, len(corpus), uas, las))
        if best is not None and epoch - best[1] >= settings.idle_epochs:
            break
    if best is None:
        own = None if kernel is None else kernel.averaged(learner.steps)
        return learner.averaged(), own
    return best[2:]


def _learn_batch(
    learner: Learner,
    kernel: KernelLearner | None,
    scorer: Scorer,
    part: Pruned,
    batch: Sequence[int],
    settings: SamplingSettings,
    epoch: int,
    *,
    n_threads: int | None,
) -> None:
    """Decode sentences with the same weights, then learn from one after the other."""
    corpus = part.corpus
    assert corpus.heads is not None
    assert corpus.labels is not None
    costs: dict[str, Any] = {
        "kept": (part.heads, part.first),
        "gold": (corpus.heads, corpus.labels),
        "costs": (1.0, settings.label_cost),
        "n_threads": n_threads,
    }
    where = (scorer, corpus.fields, corpus.starts, corpus.lengths, batch)
    if kernel is not None:
        costs["arcs"] = kernel.begin(batch, lattice_arcs(*where, **costs), n_threads=n_threads)
    heads, labels, _, _ = decode(
        *where,
        restarts=settings.training_restarts,
        patience=settings.patience,
        temperature=settings.temperature,
        label_share=0.0,
        seeds=corpus.seeds + np.uint64(epoch),
        **costs,
    )
    at = 0
    for i in batch:
        rows = corpus.rows(i)
        gold, gold_labels = corpus.heads[rows], corpus.labels[rows]
        tree = np.ascontiguousarray(heads[at : at + len(gold), 0])
        of_tree = np.ascontiguousarray(labels[at : at + len(gold), 0])
        wrong = tree != gold
        loss = float(wrong.sum()) + settings.label_cost * float(
            (~wrong & (of_tree != gold_labels)).sum()
        )
        step = (corpus.fields[rows], gold, gold_labels, tree, of_tree, loss)
        if kernel is None:
            learner.update(*step)
        else:
            apart = kernel.difference(i, at, gold, gold_labels, tree, of_tree)
            tau = learner.update(*step, apart.margin, apart.norm)
            if tau > 0:
                kernel.learn(i, apart, tau, learner.steps)
        at += len(gold)


def _accuracy(
    scorer: Scorer,
    kernel: SearchKernel | None,
    part: Pruned,
    settings: SamplingSettings,
    n_threads: int | None,
) -> tuple[float, float]:
    """UAS and LAS over all words, percent."""
    dev = part.corpus
    where = (scorer, dev.fields, dev.starts, dev.lengths, np.arange(len(dev)))
    kept = (part.heads, part.first)
    arcs = None
    if kernel is not None:
        assert dev.nodes is not None
        labels_of = kernel.label_table(kernel.schema)
        arcs = lattice_arcs(*where, kept=kept, n_threads=n_threads)
        arcs = kernel.added(arcs, dev.lengths, dev.nodes, labels_of, n_threads=n_threads)
    heads, labels, _, _ = decode(
        *where,
        restarts=settings.training_restarts,
        patience=settings.patience,
        temperature=settings.temperature,
        label_share=0.0,
        seeds=dev.seeds,
        kept=kept,
        arcs=arcs,
        n_threads=n_threads,
    )
    assert dev.heads is not None
    assert dev.labels is not None
    words = np.ones(len(dev.fields), dtype=bool)
    words[dev.starts] = False
    words[dev.starts + dev.lengths - 1] = False
    right = (heads[:, 0] == dev.heads)[words]
    labelled = right & (labels[:, 0] == dev.labels)[words]
    return 100 * float(right.mean()), 100 * float(labelled.mean())
