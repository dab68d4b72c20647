"""Training of the biaffine parser from sentences alone; spaCy trains `tk_biaffine` by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from thinc.api import Adam, Model, warmup_linear

from tk_spacy.errors import UserError
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parsers.arc_shares import ArcShares
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.biaffine.batch import Batch, Input, make_batch
from tk_spacy.parsers.biaffine.batches import make_batches
from tk_spacy.parsers.biaffine.chance import seeded
from tk_spacy.parsers.biaffine.embedding import embedding_of, encoding_once, set_vocabulary
from tk_spacy.parsers.biaffine.loss import find_loss
from tk_spacy.parsers.biaffine.model import model_of, scorer_of
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.recurrent import directions_apart
from tk_spacy.parsers.biaffine.roots import root_labels_of
from tk_spacy.parsers.biaffine.settings import SEEDS, BiaffineSettings
from tk_spacy.parsers.biaffine.targets import Targets
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.treebank.conllu import Sentence

WARM_UP = 0.1
"""Share of the steps in which the rate rises."""
BETAS = (0.9, 0.95)
"""Of Adam, as Dozat and Manning (2017) have it."""
CLIP = 5.0
"""Bound of the norm of each parameter's gradient."""
SAMPLE = 10
"""Sentences from which a model finds the widths of its layers."""


def train_biaffine_parser(
    train: Sequence[Sentence],
    *,
    settings: BiaffineSettings | None = None,
    shares: Sequence[ArcShares] | None = None,
    n_threads: int | None = 1,
    report: StepReport | None = None,
) -> BiaffineParser:
    """A biaffine parser from sentences with trees.

    The rate falls to 0 at the end, so the last weights are the best ones, and no dev part is asked.
    Each product is made by one thread, since those of several are not the same to the last bit:
    the same sentences and settings give the same weights byte for byte on the same machine.
    shares: of each sentence's arcs, to learn from in the place of its tree.
    Several networks are trained one after the other, each as a parser of its seed would be.
    n_threads: of two, each works on one direction of the LSTM; None for all cores.  The weights
        do not depend on it.
    report: called with the sentences learnt from so far, and their number over all epochs.
    Raises UserError where there are no sentences or one has no tree.
    """
    settings = settings or BiaffineSettings()
    if not train:
        raise UserError("no sentence to train a parser on")
    for sentence in train:
        if not sentence.has_tree:
            where = f"{sentence.path}:{sentence.line}: " if sentence.path else ""
            raise UserError(f"{where}no tree to train a parser on: HEAD is '_'")
    if settings.networks > 1:
        return _train_committee(train, settings, shares, n_threads, report)
    model = model_of(settings)
    labels = labels_of(train)
    targets = None
    if shares is not None:
        labels = tuple(sorted({*labels, *(name for own in shares for name in own.relations)}))
        targets = _targets(train, shares, labels)
    rng = np.random.default_rng([settings.seed, 2])
    lengths = [len(sentence) + 1 for sentence in train]
    batches = make_batches(lengths, settings.batch, rng=rng)
    epochs = max(settings.epochs, math.ceil(settings.steps / len(batches)))
    for _ in range(epochs - 1):
        batches += make_batches(lengths, settings.batch, rng=rng)
    done, of = 0, epochs * len(train)
    losses = [0.0] * epochs
    with one_thread(), seeded(settings.seed):
        prepare(model, train, Batch(train[:SAMPLE]), labels, xpos=settings.xpos)
        rates: Any = warmup_linear(settings.rate, int(WARM_UP * len(batches)), len(batches))
        beta1, beta2 = BETAS
        optimizer = Adam(
            rates, beta1=beta1, beta2=beta2, L2=0.0, grad_clip=CLIP, use_averages=False
        )
        with encoding_once(model, train), directions_apart(n_threads):
            for ids in batches:
                batch = make_batch([train[i] for i in ids], labels=labels)
                if targets is not None:
                    batch = replace(batch, targets=Targets.joined([targets[i] for i in ids]))
                scores, backprop = model.begin_update(batch)
                of_heads, of_labels, slopes = find_loss(scores, batch)
                losses[done // len(train)] += (of_heads + of_labels) * epochs / len(batches)
                backprop(slopes)
                model.finish_update(optimizer)
                optimizer.step_schedules()
                done += len(ids)
                if report is not None:
                    report(done, of)
    about = {
        "sentences": len(train),
        "words": sum(map(len, train)),
        "curve": {"of": "loss a word", "values": [round(loss, 5) for loss in losses]},
    }
    return BiaffineParser(
        model=model,
        labels=labels,
        root_labels=root_labels_of(train, labels),
        settings=settings,
        about=about,
    )


def _train_committee(
    train: Sequence[Sentence],
    settings: BiaffineSettings,
    shares: Sequence[ArcShares] | None,
    n_threads: int | None,
    report: StepReport | None,
) -> BiaffineParser:
    """As many parsers as the settings ask networks for, joined."""
    parsers: list[BiaffineParser] = []
    for number in range(settings.networks):

        def on_step(done: int, of: int, before: int = number) -> None:
            if report is not None:
                report(before * of + done, settings.networks * of)

        own = replace(settings, networks=1, seed=(settings.seed + number) % SEEDS)
        parsers.append(
            train_biaffine_parser(
                train, settings=own, shares=shares, n_threads=n_threads, report=on_step
            )
        )
    joined = BiaffineParser.joined(parsers)
    assert joined is not None  # they differ in their seeds alone
    curves = np.array([parser.about["curve"]["values"] for parser in parsers])
    curve = {**parsers[0].about["curve"], "values": curves.mean(axis=0).round(5).tolist()}
    return replace(joined, about={**joined.about, "curve": curve})


def _targets(
    train: Sequence[Sentence], shares: Sequence[ArcShares], labels: Sequence[str]
) -> list[Targets]:
    """The shares of each sentence with ids of labels.  Raises ValueError for bad ones."""
    ids = {name: i for i, name in enumerate(labels)}
    found = []
    for sentence, own in zip(train, shares, strict=True):
        own.check(sentence)
        found.append(Targets.of(own, len(sentence), ids))
    return found


def labels_of(train: Sequence[Sentence]) -> tuple[str, ...]:
    """The DEPREL values of a treebank, in the order of their ids."""
    return tuple(sorted({label for sentence in train for label in sentence.deprels}))


def prepare(
    model: Model[Input, Any],
    train: Sequence[Sentence],
    sample: Batch,
    labels: Sequence[str],
    *,
    xpos: bool = True,
) -> None:
    """Initialize a model for a treebank.

    sample: some of its sentences, as the model is to read them.
    xpos: whether the XPOS column may be read, where the treebank fills it with tags.
    """
    embedding = embedding_of(model)
    if embedding is not None:
        set_vocabulary(embedding, Vocabulary.fit(train, xpos=xpos and not distrusts_xpos(train)))
    scorer_of(model).set_dim("nO", len(labels))
    model.initialize(X=sample)
