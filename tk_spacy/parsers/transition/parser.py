"""The transition parser: a trained model that parses, proposes k-best trees and scores any."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList, LabelInventory, in_batches
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.parsers.flat_trees import listed_trees, padded_trees
from tk_spacy.parsers.listing_parser import InventoryIds, ListingParser, owners_of
from tk_spacy.parsers.transition.decoder import Scorer, decode, score_trees
from tk_spacy.parsers.transition.kind import FORMAT
from tk_spacy.parsers.transition.settings import BACKWARD, TransitionSettings
from tk_spacy.parsers.transition.words import Reading
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.serialization import (
    META,
    dense,
    read_msgpack,
    read_npz,
    read_places,
    reading,
    sparse,
    to_npz,
)

READING, WEIGHTS = "reading.msgpack", "weights.npz"
MOST_WEIGHT = 1e9
"""Weights of a stored parser are smaller, so that scores are finite numbers."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TransitionParser(ListingParser):
    """A trained transition parser.  A tree's score is that of the moves which build it.

    reading: what it reads of words, and its labels.  settings: as trained.
    move_weights: float32[2 ** bits].  label_weights: float32[2 ** bits + n_labels].
    places: uint8[n_labels], where each label may stand (see decoder.Scorer).
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION, OLDEST = 1, 1
    FILES = (META, READING, WEIGHTS)

    reading: Reading
    settings: TransitionSettings
    move_weights: NDArray[np.float32]
    label_weights: NDArray[np.float32]
    places: NDArray[np.uint8]
    about: Mapping[str, Any] = field(default_factory=dict)
    _scorer: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scorer = Scorer(self.move_weights, self.label_weights, self.places)
        object.__setattr__(self, "_scorer", scorer)

    @property
    def labels(self) -> tuple[str, ...]:
        """The DEPREL values that it can give."""
        return self.reading.labels

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of CoNLL-U beside FORM that it has learnt to read."""
        return self.reading.columns

    def facts(self) -> dict[str, Any]:
        """The FEATS attributes that have features of their own, and whether it reads XPOS."""
        return {"feats": list(self.reading.feats), "xpos": self.reading.xpos}

    def _parse(
        self, sentences: Iterable[Sentence], n_threads: int | None
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        names = self.labels
        for heads, labels, _, _, lengths in self._lists(sentences, 1, n_threads):
            start = 0
            for n in lengths:
                words = slice(start, start + n)
                yield heads[words], tuple([names[i] for i in labels[words].tolist()])
                start += n

    def _kbest(
        self,
        sentences: Iterable[Sentence],
        k: int,
        inventory: LabelInventory,
        n_threads: int | None,
    ) -> Generator[CandidateList, None, None]:
        ids = InventoryIds(self.labels, inventory)
        for heads, labels, scores, counts, lengths in self._lists(sentences, k, n_threads):
            yield from CandidateList.from_flat(
                heads, ids(labels, np.cumsum(np.multiply(counts, lengths))[:-1]), scores[:, None],
                counts=counts, lengths=lengths, inventory=inventory, sources=("transition",),
            )  # fmt: skip

    def _lists(
        self, sentences: Iterable[Sentence], k: int, n_threads: int | None
    ) -> Iterator[tuple[Int32, Int32, Float64, list[int], list[int]]]:
        """The lists of some sentences, flat: heads, labels and scores; their trees and words.

        Heads and labels int32[cells], the words of one tree after the other; float64[trees].
        """
        for batch in in_batches(sentences, lambda sentence: k * (len(sentence) + 2)):
            corpus = self.reading.encode(batch)
            heads, labels, scores, counts = decode(
                self._scorer,
                corpus.fields,
                corpus.starts,
                corpus.lengths,
                width=self.settings.beam,
                k=k,
                label_share=self.settings.label_share,
                n_threads=n_threads,
            )
            flat = listed_trees(
                heads, labels, corpus.starts, corpus.lengths, counts,
                backward=self.reading.backward,
            )  # fmt: skip
            found = scores[np.arange(k) < counts[:, None]]
            yield *flat, found, counts.tolist(), (corpus.lengths - 2).tolist()

    def _score_batch(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        n_threads: int | None,
    ) -> list[NDArray[np.float64]]:
        corpus = self.reading.encode(sentences)
        counts = np.array([len(trees.heads) for trees in lists], dtype=np.intp)
        heads, labels = padded_trees(
            np.concatenate([trees.heads.ravel() for trees in lists]),
            LabelTables(self.reading.label_id).flat_labels(lists),
            counts,
            corpus.lengths.astype(np.intp) - 2,
            backward=self.reading.backward,
        )
        owners = owners_of(counts)
        scores = score_trees(
            self._scorer,
            corpus.fields,
            corpus.starts,
            corpus.lengths,
            owners,
            heads,
            labels,
            n_threads=n_threads,
        )
        return [scores[a:b] for a, b in pairwise(owners.tolist())]

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        return {
            META: self._meta(self.settings.to_dict(), self.about),
            READING: srsly.msgpack_dumps(self.reading.to_dict()),
            WEIGHTS: to_npz(
                {
                    **sparse("moves", self.move_weights),
                    **sparse("labels", self.label_weights),
                    "places": self.places,
                }
            ),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        settings = TransitionSettings.from_dict(meta["settings"])
        stored = read_msgpack(files, READING)
        with reading(READING):
            words = Reading.from_dict(stored)
            if words.backward != (settings.direction == BACKWARD):
                raise ValueError(
                    f"direction is {settings.direction}, and the words' is another one"
                )
        arrays = read_npz(files, WEIGHTS)
        n_labels, size = len(words.labels), 1 << settings.bits
        with reading(WEIGHTS):
            moves = dense(arrays, "moves", size, most=MOST_WEIGHT)
            labels = dense(arrays, "labels", size + n_labels, most=MOST_WEIGHT)
            places = read_places(arrays, n_labels)
        return cls(
            reading=words,
            settings=settings,
            move_weights=moves,
            label_weights=labels,
            places=places,
            about=cls._about(meta),
        )
