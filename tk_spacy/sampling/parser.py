"""The sampling parser: a trained third-order model that parses and proposes k-best trees."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from numpy.typing import NDArray

import tk_spacy
from tk_spacy.candidates import CandidateList, LabelInventory
from tk_spacy.files import replace_directory
from tk_spacy.properties import FIRST_ID, FIRST_MORPH, Schema
from tk_spacy.sampling.decoder import Scorer, decode
from tk_spacy.sampling.settings import SamplingSettings
from tk_spacy.sampling.words import encode
from tk_spacy.treebank import Sentence

BATCH = 256


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SamplingParser:
    """A trained sampling parser.

    schema: fields and their values.  settings: as trained.
    weights: float32[2 ** bits + n_cells].  pruner: float32[2 ** pruner_bits].
    places: uint8[n_cells], where each label may stand (see decoder.Scorer).
    about: further facts for meta.json, JSON values.
    """

    schema: Schema
    settings: SamplingSettings
    weights: NDArray[np.float32]
    pruner: NDArray[np.float32]
    places: NDArray[np.uint8]
    about: Mapping[str, Any] = field(default_factory=dict)
    _scorer: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scorer = make_scorer(self.schema, self.settings, self.weights, self.pruner, self.places)
        object.__setattr__(self, "_scorer", scorer)

    @property
    def labels(self) -> tuple[str, ...]:
        """The DEPREL values that it can give."""
        return tuple(self.schema.labels)

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """The best tree of each sentence: heads int32[n], and DEPREL values."""
        names = self._names()
        for heads, labels, _ in self._lists(sentences, 1, n_threads):
            yield heads[0], tuple([names[i] for i in labels[0].tolist()])

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        n_threads: int | None = None,
    ) -> Iterator[CandidateList]:
        """The list of each sentence: at most k distinct trees, best first."""
        table = inventory.encode(self._names())
        for heads, labels, scores in self._lists(sentences, k, n_threads):
            yield CandidateList.from_arrays(
                heads, table[labels], scores[:, None], inventory=inventory, sources=("sampling",)
            )

    def _names(self) -> list[str]:
        """Label names by id; ids below FIRST_ID are no labels."""
        return ["_"] * FIRST_ID + list(self.schema.labels)

    def _lists(
        self, sentences: Sequence[Sentence], k: int, n_threads: int | None
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]]:
        """Heads int32[k, n], labels int32[k, n] and scores float64[k] of each sentence."""
        s = self.settings
        for first in range(0, len(sentences), BATCH):
            batch = sentences[first : first + BATCH]
            corpus = encode(self.schema, batch, seed=s.seed)
            heads, labels, scores, counts = decode(
                self._scorer,
                corpus.fields,
                corpus.starts,
                corpus.lengths,
                np.arange(len(corpus)),
                k=k,
                restarts=s.restarts,
                patience=s.patience,
                temperature=s.temperature,
                label_share=s.label_share,
                seeds=corpus.seeds,
                n_threads=n_threads,
            )
            for i, count in enumerate(counts.tolist()):
                rows = corpus.rows(i)
                words = slice(rows.start + 1, rows.stop - 1)
                yield (
                    np.ascontiguousarray(heads[words, :count].T),
                    np.ascontiguousarray(labels[words, :count].T),
                    scores[i, :count],
                )


def make_scorer(
    schema: Schema,
    settings: SamplingSettings,
    weights: NDArray[np.float32],
    pruner: NDArray[np.float32],
    places: NDArray[np.uint8],
) -> Scorer:
    """The decoder's view of a model, which reads the arrays as they stand, without a copy."""
    return Scorer(
        weights,
        pruner,
        places,
        order=settings.order,
        max_heads=settings.max_heads,
        prune_margin=settings.prune_margin,
        max_labels=settings.max_labels,
        label_margin=settings.label_margin,
        single_root=settings.single_root,
        morph_end=FIRST_MORPH + len(schema.morph),
    )
