"""The training of a transition parser: passes over sentences in a shuffled order, one thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.transition.learner import Learner
from tk_spacy.parsers.transition.parser import TransitionParser
from tk_spacy.parsers.transition.settings import BACKWARD, TransitionSettings
from tk_spacy.parsers.transition.words import Corpus, Reading
from tk_spacy.treebank.conllu import Sentence

UNDER_ROOT, ELSEWHERE = 1, 2
"""Where a label may stand, as in scores.pxd."""


def train_transition_parser(
    sentences: Sequence[Sentence],
    *,
    settings: TransitionSettings | None = None,
    report: StepReport = lambda done, of: None,
) -> TransitionParser:
    """A transition parser trained on sentences with trees; the same bytes for the same ones.

    Raises ValueError where there is no sentence, or one without a tree.
    """
    if not sentences:
        raise ValueError("no training sentence, expected at least one")
    settings = settings or TransitionSettings()
    reading = Reading.fit(
        sentences,
        xpos=settings.xpos,
        backward=settings.direction == BACKWARD,
        n_feats=settings.feats,
    )
    corpus = reading.encode(sentences, with_trees=True)
    assert corpus.heads is not None
    assert corpus.labels is not None
    places = label_places(corpus, len(reading.labels))
    learner = Learner(settings.bits, places)
    steps, done = settings.epochs * len(corpus), 0
    shares = []
    for epoch in range(settings.epochs):
        order = np.random.default_rng((settings.seed, epoch)).permutation(len(corpus))
        found = 0
        for i in order.tolist():
            raise_if_stopped()
            rows = corpus.rows(i)
            found += learner.learn(
                corpus.fields[rows], corpus.heads[rows], corpus.labels[rows], settings.training_beam
            )
            done += 1
            if done % 100 == 0 or done == steps:
                report(done, steps)
        shares.append(round(100 * found / len(corpus), 2))
    moves, labels = learner.averaged()
    return TransitionParser(
        reading=reading,
        settings=settings,
        move_weights=moves,
        label_weights=labels,
        places=places,
        about={"curve": {"of": "training sentences parsed right, %", "values": shares}},
    )


def label_places(corpus: Corpus, n_labels: int) -> NDArray[np.uint8]:
    """Where each label stands in a treebank: uint8[n_labels], UNDER_ROOT, ELSEWHERE or both."""
    assert corpus.heads is not None
    assert corpus.labels is not None
    places = np.zeros(n_labels, dtype=np.uint8)
    words = corpus.labels >= 0
    under_root = words & (corpus.heads == 0)
    places[np.unique(corpus.labels[under_root])] |= UNDER_ROOT
    places[np.unique(corpus.labels[words & ~under_root])] |= ELSEWHERE
    if not (places & ELSEWHERE).any():  # one-word sentences only
        places |= ELSEWHERE
    return places
