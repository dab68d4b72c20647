"""Training of the projective parser: the pruner, then heads and labels.

Training trees are made projective first, with labels that tell the way back.  The sentences of a
small batch are searched in parallel with the same weights, then learnt from one after the other,
each by what is still wrong when its turn comes; so the result does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.features.schema import FIRST_ID, Schema
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.base import StepReport
from tk_spacy.parsers.projective.decoder import Scorer, decode, kept_heads
from tk_spacy.parsers.projective.learner import LabelLearner, Learner
from tk_spacy.parsers.projective.marks import SCHEME
from tk_spacy.parsers.projective.parser import ProjectiveParser, make_scorer
from tk_spacy.parsers.projective.settings import ProjectiveSettings
from tk_spacy.parsers.sampling.search.updates import Learner as PrunerLearner
from tk_spacy.parsers.sampling.search.words import Corpus, encode
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.pseudo_projective import check_unmarked, projectivize
from tk_spacy.utils.array_types import Int32

UNDER_ROOT, ELSEWHERE = 1, 2
"""Where a label may stand, as in labels.pxd."""


def train_projective_parser(
    sentences: Sequence[Sentence],
    *,
    settings: ProjectiveSettings | None = None,
    n_threads: int | None = None,
    report: StepReport = lambda done, of: None,
) -> ProjectiveParser:
    """A projective parser trained on sentences with trees; the same bytes for the same ones.

    Raises ValueError where there is no sentence, or one without a tree.
    """
    if not sentences:
        raise ValueError("no training sentence, expected at least one")
    settings = settings or ProjectiveSettings()
    training = _Training(sentences, settings, n_threads, report)
    training.learn_pruner()
    training.keep_heads()
    for epoch in range(1, settings.epochs + 1):
        training.learn_epoch(epoch)
    return training.parser()


def check_labels(sentences: Sequence[Sentence]) -> None:
    """Raises UserError, naming the place, where a label has marks already."""
    for i, sentence in enumerate(sentences, 1):
        try:
            check_unmarked(sentence.deprels)
        except UserError as error:
            where = "" if sentence.path else f"sentence {i}: "
            raise TreebankError(sentence.path, sentence.line, f"{where}{error}") from error


def made_projective(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Sentences with projective trees; labels tell the way back.

    Raises ValueError where there is no tree, UserError where a label has marks already.
    """
    check_labels(sentences)
    made = []
    for i, sentence in enumerate(sentences, 1):
        if not sentence.has_tree:
            raise ValueError(f"sentence {i} has no tree, expected HEAD of every word")
        heads, labels = projectivize(sentence.heads, sentence.deprels, SCHEME)
        made.append(sentence.with_tree(np.array(heads, dtype=np.int32), labels))
    return made


class _Training:
    """One training: the sentences as arrays, and all that is learnt."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        settings: ProjectiveSettings,
        n_threads: int | None,
        report: StepReport,
    ) -> None:
        projective = made_projective(sentences)
        self.settings, self.n_threads = settings, n_threads
        self.schema = Schema.fit(projective)
        self.corpus: Corpus = encode(self.schema, projective, with_trees=True)
        assert self.corpus.heads is not None
        assert self.corpus.labels is not None
        self.heads: Int32 = self.corpus.heads
        self.labels: Int32 = (self.corpus.labels - FIRST_ID).astype(np.int32)
        self.places = label_places(self.heads, self.labels, len(self.schema.labels))
        morph_end = self.schema.n_columns
        self.pruner: NDArray[np.float32] = np.zeros(1 << settings.pruner_bits, dtype=np.float32)
        self.parts = Learner(size=1 << settings.bits, C=settings.C, morph_end=morph_end)
        self.of_labels = LabelLearner(
            size=1 << settings.label_bits, places=self.places, C=settings.C, morph_end=morph_end
        )
        self.kept: tuple[Int32, Int32] | None = None
        self.curve: list[float] = []
        self._report, self._done = report, 0

    def _batches(self, stage: int, epoch: int) -> list[list[int]]:
        """The sentences of an epoch in a shuffled order."""
        n, size = len(self.corpus), self.settings.batch
        rng = np.random.default_rng((self.settings.seed, stage, epoch))
        order = rng.permutation(n).tolist()
        return [order[i : i + size] for i in range(0, n, size)]

    def _count(self, sentences: int) -> None:
        raise_if_stopped()
        s = self.settings
        self._done += sentences
        self._report(self._done, (s.pruner_epochs + s.epochs) * len(self.corpus))

    def learn_pruner(self) -> None:
        """The weights of single arcs, each word's head among all words."""
        size = 1 << self.settings.pruner_bits
        learner = PrunerLearner(
            size=size, n_cells=1, order=1, C=1.0, morph_end=self.schema.n_columns
        )
        for epoch in range(self.settings.pruner_epochs):
            for batch in self._batches(0, epoch):
                for i in batch:
                    rows = self.corpus.rows(i)
                    learner.select_heads(
                        self.corpus.fields[rows], self.heads[rows], self.settings.pruner_rate
                    )
                self._count(len(batch))
        self.pruner = learner.averaged()[:size]

    def _scorer(self) -> Scorer:
        return make_scorer(self.settings, self.parts.weights, self.pruner, self.schema)

    def keep_heads(self) -> None:
        """Prune once for all epochs; gold heads stay."""
        self.kept = kept_heads(
            self._scorer(),
            self.corpus.fields,
            self.corpus.starts,
            self.corpus.lengths,
            gold_heads=self.heads,
            n_threads=self.n_threads,
        )

    def learn_epoch(self, epoch: int) -> None:
        """One pass over the sentences."""
        corpus, settings = self.corpus, self.settings
        scorer = self._scorer()
        found = 0
        for batch in self._batches(1, epoch):
            trees, _, counts = decode(
                scorer,
                corpus.fields,
                corpus.starts,
                corpus.lengths,
                batch,
                k=settings.training_k,
                kept=self.kept,
                gold_heads=self.heads,
                cost=settings.cost,
                n_threads=self.n_threads,
            )
            ends = np.concatenate([[0], np.cumsum(corpus.lengths[batch])])
            for i, count, (start, end) in zip(
                batch, counts.tolist(), pairwise(ends.tolist()), strict=True
            ):
                rows = corpus.rows(i)
                fields, heads = corpus.fields[rows], self.heads[rows]
                words = self.labels[rows] >= 0  # beside those there is a row that is none
                found += int((trees[start:end, 0] == heads)[words].sum())
                self.parts.learn(fields, heads, np.ascontiguousarray(trees[start:end, :count]))
                self.of_labels.learn(fields, heads, self.labels[rows])
            self._count(len(batch))
        self.curve.append(round(100 * found / corpus.words, 3))

    def parser(self) -> ProjectiveParser:
        """What was learnt, averaged."""
        return ProjectiveParser(
            schema=self.schema,
            settings=self.settings,
            weights=self.parts.averaged(),
            pruner=self.pruner,
            label_weights=self.of_labels.averaged(),
            places=self.places,
            about={
                "pruner": self._kept_about(),
                "curve": {"of": "training words given their head, %", "values": self.curve},
            },
        )

    def _kept_about(self) -> dict[str, float]:
        """How many heads a word has that were searched among in training, gold ones included."""
        assert self.kept is not None
        return {"heads_per_word": round(len(self.kept[0]) / self.corpus.words, 3)}


def label_places(heads: Int32, labels: Int32, n_labels: int) -> NDArray[np.uint8]:
    """Where each label stands in a treebank: uint8[n_labels], UNDER_ROOT, ELSEWHERE or both.

    heads, labels: int32[rows], labels under 0 beside the words.
    """
    places = np.zeros(n_labels, dtype=np.uint8)
    words = labels >= 0
    under_root = words & (heads == 0)
    places[np.unique(labels[under_root])] |= UNDER_ROOT
    places[np.unique(labels[words & ~under_root])] |= ELSEWHERE
    if not (places & ELSEWHERE).any():  # one-word sentences only
        places |= ELSEWHERE
    return places
