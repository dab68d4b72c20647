"""The biaffine parser: a trained network that parses, proposes k-best trees and scores any."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import (
    MAX_K,
    CandidateList,
    LabelInventory,
    check_aligned,
    in_batches,
)
from tk_spacy.kbest.long_sentences import list_cut, parse_cut, score_cut
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.base import StoredParser
from tk_spacy.parsers.biaffine.batches import Layout, make_batches
from tk_spacy.parsers.biaffine.blas import one_thread
from tk_spacy.parsers.biaffine.decoding import best_tree, k_best
from tk_spacy.parsers.biaffine.kind import FORMAT
from tk_spacy.parsers.biaffine.network import Batch, Pass, log_softmax, weight_shapes
from tk_spacy.parsers.biaffine.recurrent import Arrays
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.vocabulary import FIRST, Vocabulary
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META, from_npz, to_npz

T = TypeVar("T")

VOCABULARY, WEIGHTS = "vocabulary.msgpack", "weights.npz"
PARSED_ROWS = 2000
"""Rows that are parsed at a time: larger batches need more memory and are no faster."""
MOST_WEIGHT = 1e3
"""Weights of a stored parser are smaller; the search relies on scores that are finite numbers."""
LABEL_CELLS = 1 << 21
"""Scores of labels that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BiaffineParser(StoredParser):
    """A trained biaffine parser.

    vocabulary: what it reads of words, and its labels.  settings: as trained.
    weights: float32 arrays by name, of the shapes that `network.init_weights` gives.
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION = OLDEST = 1
    FILES = (META, VOCABULARY, WEIGHTS)

    vocabulary: Vocabulary
    settings: BiaffineSettings
    weights: Arrays
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The DEPREL values that it can give."""
        return self.vocabulary.labels

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """The best tree of each sentence: heads int32[n], and DEPREL values.

        Sentences too long to be searched whole are parsed in pieces, see `long_sentences`; `kbest`
        and `score` do likewise.
        n_threads: not used; it parses on one thread.
        """
        return parse_cut(sentences, self._parse, self.labels)

    def _parse(
        self, sentences: Iterable[Sentence]
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        names = self.labels
        for batch in in_batches(sentences, len):
            for heads, ids in self._map(batch, lambda _, scores: scores.best_tree()):
                yield heads, tuple([names[j] for j in ids.tolist()])

    def kbest(
        self, sentences: Sequence[Sentence], *, k: int, inventory: LabelInventory
    ) -> Iterator[CandidateList]:
        """The list of each sentence: at most k distinct trees, best first.

        inventory: where their labels get ids.
        """
        if not isinstance(k, int | np.integer):
            raise TypeError(f"k is {k!r}, expected a whole number")
        if not 1 <= k <= MAX_K:
            raise ValueError(f"k is {k}, expected from 1 to {MAX_K}")
        return list_cut(sentences, lambda pieces: self._kbest(pieces, int(k), inventory), int(k))

    def _kbest(
        self, sentences: Iterable[Sentence], k: int, inventory: LabelInventory
    ) -> Generator[CandidateList, None, None]:
        table = np.full(len(self.labels), -1, dtype=np.int32)
        share = self.settings.label_share

        def best(_: int, scores: SentenceScores) -> Any:
            return k_best(*scores.best_labels(), k, label_share=share)

        for batch in in_batches(sentences, lambda sentence: k * (len(sentence) + 1)):
            for heads, labels, totals in self._map(batch, best):
                for j in np.unique(labels[table[labels] < 0]).tolist():
                    table[j] = inventory.add(self.labels[j])
                yield CandidateList.from_arrays(
                    heads, table[labels], totals[:, None], inventory=inventory,
                    sources=("biaffine",),
                )  # fmt: skip

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """The log-probability of any tree, arcs and labels: float64[k] for each list.

        NaN for a tree with a label that the parser does not know.
        """
        check_aligned(sentences, lists)
        return score_cut(sentences, lists, self._score)

    def _score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        ids = {name: i for i, name in enumerate(self.labels)}
        tables: dict[int, NDArray[np.int64]] = {}
        for trees in lists:
            if id(trees.inventory) not in tables:
                known = [ids.get(name, -1) for name in trees.inventory.names]
                tables[id(trees.inventory)] = np.array(known, dtype=np.int64)

        def total(i: int, scores: SentenceScores) -> NDArray[np.float64]:
            trees = lists[done + i]
            return scores.of_trees(trees.heads, tables[id(trees.inventory)][trees.labels])

        out: list[NDArray[np.float64]] = []
        done = 0
        for batch in in_batches(sentences, len):
            out += self._map(batch, total)
            done += len(batch)
        return out

    def _map(
        self, sentences: Sequence[Sentence], use: Callable[[int, SentenceScores], T]
    ) -> list[T]:
        """What `use` makes of each sentence's place and scores."""
        found: dict[int, T] = {}
        with one_thread():
            for ids in make_batches([len(s) + 1 for s in sentences], PARSED_ROWS):
                raise_if_stopped()
                batch = make_batch(self.vocabulary, [sentences[i] for i in ids])
                network = Pass(self.weights, self.settings, batch)
                arcs = log_softmax(network.arc_scores()).astype(np.float64)
                start = 0
                for row, i in enumerate(ids):
                    raise_if_stopped()
                    n = len(sentences[i])
                    own = arcs[row, 1 : n + 1, : n + 1]
                    own[np.arange(n), np.arange(1, n + 1)] = -np.inf
                    found[i] = use(i, SentenceScores(network, own, start))
                    start += n + 1
        return [found[i] for i in range(len(sentences))]

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        return {
            META: self._meta(self.settings.to_dict(), self.about),
            VOCABULARY: srsly.msgpack_dumps(self.vocabulary.to_dict()),
            WEIGHTS: to_npz(self.weights),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        settings = BiaffineSettings.from_dict(meta["settings"])
        vocabulary = Vocabulary.from_dict(srsly.msgpack_loads(files[VOCABULARY]))
        weights = from_npz(files[WEIGHTS])
        expected = weight_shapes(settings, *sizes(vocabulary))
        if weights.keys() != expected.keys():
            raise ValueError(f"weights are {sorted(weights)}, expected {sorted(expected)}")
        for name, shape in expected.items():
            found = weights[name]
            if found.shape != shape or found.dtype != np.float32:
                raise ValueError(f"{name} is {found.dtype}{found.shape}, not float32{shape}")
            if not (np.abs(found) < MOST_WEIGHT).all():
                raise ValueError(f"{name} beyond {MOST_WEIGHT:g}, whose products may be infinite")
        return cls(
            vocabulary=vocabulary, settings=settings, weights=weights, about=cls._about(meta)
        )


class SentenceScores:
    """The scores of one sentence of a batch.

    arcs: float64[n, n + 1], log-probabilities of each word's heads.  start: its first row.
    """

    def __init__(self, network: Pass, arcs: NDArray[np.float64], start: int) -> None:
        self._network, self._arcs, self._start = network, arcs, start

    def best_tree(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Heads and labels int32[n] of the best tree."""
        arcs, labels, _ = self.best_labels(second=False)
        heads = best_tree(arcs)
        return heads, labels[np.arange(len(heads)), heads, 0]

    def best_labels(
        self, *, second: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]:
        """What `decoding.k_best` wants: arcs with their best labels, the labels, the margins.

        second: whether second best labels and margins are wanted; else they are -1 and 0.
        """
        n = len(self._arcs)
        totals = self._arcs.copy()
        labels = np.full((n, n + 1, 2), -1, dtype=np.int32)
        margins = np.zeros((n, n + 1))
        n_labels = self._network.n_labels
        size = max(1, LABEL_CELLS // (n_labels * (n + 1)))
        for first in range(0, n, size):
            words = slice(first, min(first + size, n))
            scores = log_softmax(
                self._network.all_label_scores(
                    self._start + 1 + words.start, words.stop - words.start, self._start, n + 1
                )
            )
            best = scores.argmax(axis=2)
            top = np.take_along_axis(scores, best[:, :, None], axis=2)
            totals[words] += top[:, :, 0]
            labels[words, :, 0] = best
            if second and n_labels > 1:
                np.put_along_axis(scores, best[:, :, None], -np.inf, axis=2)
                labels[words, :, 1] = scores.argmax(axis=2)
                margins[words] = top[:, :, 0].astype(np.float64) - scores.max(axis=2)
        return totals, labels, margins

    def of_trees(
        self, heads: NDArray[np.int32], labels: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Scores float64[k] of trees: heads and labels int[k, n], labels -1 where unknown."""
        n = len(self._arcs)
        words = np.arange(n)
        arcs, inverse = np.unique(words * (n + 1) + heads, return_inverse=True)
        modifiers, governors = np.divmod(arcs, n + 1)
        scores = log_softmax(
            self._network.label_scores(self._start + 1 + modifiers, self._start + governors)
        )
        known = labels >= 0
        found = scores[inverse.reshape(heads.shape), np.where(known, labels, 0)]
        total = (self._arcs[words, heads] + found).sum(axis=1)
        total[~known.all(axis=1)] = np.nan
        return total


def sizes(vocabulary: Vocabulary) -> tuple[int, int, int]:
    """Rows of both tables, and labels."""
    return (
        len(vocabulary.words) + FIRST,
        len(vocabulary.tags) + FIRST,
        len(vocabulary.labels),
    )


def make_batch(
    vocabulary: Vocabulary, sentences: Sequence[Sentence], *, with_trees: bool = False
) -> Batch:
    """Sentences as the network reads them.  Trees, where wanted, have known labels."""
    encoded = [vocabulary.encode(sentence) for sentence in sentences]
    layout = Layout.of([len(words) for words, _ in encoded])
    words = np.concatenate([words for words, _ in encoded])
    tags = np.zeros((len(words), max(own.shape[1] for _, own in encoded)), dtype=np.int32)
    start = 0
    for _, own in encoded:
        tags[start : start + len(own), : own.shape[1]] = own
        start += len(own)
    if not with_trees:
        return Batch(words, tags, layout)
    ids = {name: i for i, name in enumerate(vocabulary.labels)}
    return Batch(
        words,
        tags,
        layout,
        np.concatenate([sentence.heads for sentence in sentences]),
        np.array([ids[label] for sentence in sentences for label in sentence.deprels]),
    )
