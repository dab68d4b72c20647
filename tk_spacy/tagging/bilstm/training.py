"""Training a neural tagger from a treebank alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from thinc.api import Adam, warmup_linear

from tk_spacy.errors import UserError
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.batches import make_batches
from tk_spacy.parsers.biaffine.chance import seeded
from tk_spacy.parsers.biaffine.embedding import encoding_once
from tk_spacy.parsers.biaffine.loss import log_softmax
from tk_spacy.parsers.biaffine.recurrent import directions_apart
from tk_spacy.parsers.biaffine.training import BETAS, CLIP, SAMPLE, WARM_UP
from tk_spacy.tagging.bilstm.labels import Labels, Scores
from tk_spacy.tagging.bilstm.lemmas import SeenLemmas
from tk_spacy.tagging.bilstm.model import model_of
from tk_spacy.tagging.bilstm.settings import BilstmSettings
from tk_spacy.tagging.bilstm.tagger import BilstmTagger
from tk_spacy.tagging.bilstm.vocabulary import FormVocabulary
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS, FilledColumns
from tk_spacy.utils.array_types import Int32


def train_bilstm_tagger(
    train: Sequence[Sentence],
    *,
    settings: BilstmSettings | None = None,
    n_threads: int | None = 1,
    report: StepReport = lambda done, of: None,
) -> BilstmTagger:
    """A tagger of the sentences' LEMMA, UPOS, XPOS and FEATS.

    The rate falls to 0 at the end, so the last weights are the best ones, and no dev part is asked.
    Each product is made by one thread, since those of several are not the same to the last bit:
    the same sentences and settings give the same weights byte for byte on the same machine.
    n_threads: of two, each works on one direction of the LSTM; None for all cores.  The weights
        do not depend on it.
    report: called with the updates that are done, and their number.
    Raises UserError where no word has UPOS.
    """
    settings = settings or BilstmSettings()
    labels = Labels.fit(train)
    if not labels.tags:
        raise UserError("no word has UPOS, so no tagger can be trained")
    targets = [labels.targets(sentence) for sentence in train]
    with one_thread(), seeded(settings.seed):
        model = model_of(settings, FormVocabulary.fit(train), sum(labels.sizes))
        model.initialize(X=Batch(train[:SAMPLE]))
        epochs, batches = _batches(train, settings)
        losses, seen = [0.0] * epochs, 0
        rates: Any = warmup_linear(settings.rate, int(WARM_UP * len(batches)), len(batches))
        beta1, beta2 = BETAS
        optimizer = Adam(
            rates, beta1=beta1, beta2=beta2, L2=0.0, grad_clip=CLIP, use_averages=False
        )
        with encoding_once(model, train), directions_apart(n_threads):
            for done, ids in enumerate(batches, start=1):
                scores, backprop = model.begin_update(Batch([train[i] for i in ids]))
                right = np.concatenate([targets[i] for i in ids])
                loss, slopes = find_slopes(labels, scores, right)
                losses[seen // len(train)] += loss * epochs / len(batches)
                seen += len(ids)
                backprop(slopes)
                model.finish_update(optimizer)
                optimizer.step_schedules()
                report(done, len(batches))
    filled = FilledColumns(train)
    return BilstmTagger(
        model=model,
        labels=labels,
        seen=SeenLemmas.fit(train),
        settings=settings,
        columns=tuple(name for name in COLUMNS if name in filled),
        about={
            "sentences": len(train),
            "words": sum(map(len, train)),
            "updates": len(batches),
            "curve": {
                "of": "loss a word, all columns together",
                "values": [round(loss, 5) for loss in losses],
            },
        },
    )


def _batches(train: Sequence[Sentence], settings: BilstmSettings) -> tuple[int, list[list[int]]]:
    """How many epochs there are, and the sentences of each update."""
    rng = np.random.default_rng([settings.seed, 2])
    lengths = [len(sentence) + 1 for sentence in train]
    batches = make_batches(lengths, settings.batch, rng=rng)
    epochs = max(settings.epochs, math.ceil(settings.steps / len(batches)))
    for _ in range(epochs - 1):
        batches += make_batches(lengths, settings.batch, rng=rng)
    return epochs, batches


def find_slopes(labels: Labels, scores: Scores, targets: Int32) -> tuple[float, Scores]:
    """The loss of a batch, the sum of all tasks' mean cross entropies, and its slopes.

    scores: float32[words, values of all tasks].  targets: see `Labels.targets`.
    """
    loss = 0.0
    slopes = np.zeros_like(scores)
    parts = zip(labels.split(scores), labels.split(slopes), targets.T, strict=True)
    for found, slope, right in parts:
        known = np.flatnonzero(right >= 0)
        if not len(known):
            continue
        logs = log_softmax(found[known])
        each, right = np.arange(len(known)), right[known]
        # Of all words, so that a task with few known values does not weigh more for it.
        loss -= float(logs[each, right].sum()) / len(scores)
        own = np.exp(logs)
        own[each, right] -= 1
        slope[known] = own / len(scores)
    return loss, slopes
