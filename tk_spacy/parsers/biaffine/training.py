"""Training of the biaffine parser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tk_spacy.errors import UserError
from tk_spacy.features.schema import distrusts_xpos
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.biaffine.batches import make_batches
from tk_spacy.parsers.biaffine.blas import one_thread
from tk_spacy.parsers.biaffine.network import Pass, init_weights
from tk_spacy.parsers.biaffine.optimizer import Adam
from tk_spacy.parsers.biaffine.parser import BiaffineParser, make_batch, sizes
from tk_spacy.parsers.biaffine.recurrent import Arrays
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.treebank.conllu import Sentence

WARM_UP = 0.1
"""Share of the steps in which the rate rises."""


def train_biaffine_parser(
    train: Sequence[Sentence],
    *,
    settings: BiaffineSettings | None = None,
    report: StepReport | None = None,
) -> BiaffineParser:
    """A biaffine parser from sentences with trees.

    The rate falls to 0 at the end, so the last weights are the best ones, and no dev part is asked.
    On one thread, since products of several are not the same to the last bit: the same sentences
    and settings give the same weights byte for byte on the same machine.
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
    vocabulary = Vocabulary.fit(train, xpos=settings.xpos and not distrusts_xpos(train))
    rng = np.random.default_rng([settings.seed, 2])
    lengths = [len(sentence) + 1 for sentence in train]
    of = settings.epochs * len(train)
    done = 0
    with one_thread():
        weights = init_weights(settings, *sizes(vocabulary))
        learner = Adam(weights)
        for _ in range(settings.epochs):
            for ids in make_batches(lengths, settings.batch, rng=rng):
                batch = make_batch(vocabulary, [train[i] for i in ids], with_trees=True)
                network = Pass(weights, settings, batch, rng)
                gradient: Arrays = {}
                network.loss(gradient)
                rate = settings.rate * _share(done / of)
                learner.step(gradient, network.table_gradients(), rate)
                done += len(ids)
                if report is not None:
                    report(done, of)
    about = {"sentences": len(train), "words": sum(map(len, train))}
    return BiaffineParser(vocabulary=vocabulary, settings=settings, weights=weights, about=about)


def _share(done: float) -> float:
    """Share of the highest rate after a share of the training."""
    return min((done + 1e-4) / WARM_UP, (1 - done) / (1 - WARM_UP))
