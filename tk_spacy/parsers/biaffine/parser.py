"""The biaffine parser: a trained model that parses, proposes k-best trees and scores any."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from spacy.util import registry
from thinc.api import Model

from tk_spacy.kbest.candidates import (
    CandidateList,
    LabelInventory,
    check_aligned,
    in_batches,
)
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.kbest.long_sentences import is_long, list_cut, parse_cut, score_cut
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parallel.side_by_side import answers
from tk_spacy.parallel.stopping import raise_if_stopped
from tk_spacy.parsers.base import StoredParser
from tk_spacy.parsers.biaffine.batch import Batch, Input
from tk_spacy.parsers.biaffine.batches import make_batches
from tk_spacy.parsers.biaffine.committee import (
    JointLabelScores,
    make_committee,
    members_of,
    share_vocabulary,
)
from tk_spacy.parsers.biaffine.decoding import best_tree, k_best
from tk_spacy.parsers.biaffine.embedding import embedding_of
from tk_spacy.parsers.biaffine.kind import FORMAT
from tk_spacy.parsers.biaffine.label_choice import (
    choose_labels,
    distinct_arcs,
    pick_labels,
    shift_arc_labels,
    shift_labels,
)
from tk_spacy.parsers.biaffine.loss import log_softmax
from tk_spacy.parsers.biaffine.model import model_of
from tk_spacy.parsers.biaffine.recent import Recent
from tk_spacy.parsers.biaffine.roots import RootLabels
from tk_spacy.parsers.biaffine.scorer import LabelScores
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.softmax import log_sums
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.parsers.biaffine.weights import check_weights, take_old_weights, take_weights
from tk_spacy.parsers.listing_parser import InventoryIds, checked_k
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.model_bounds import check_stored_config
from tk_spacy.utils.serialization import META, read_msgpack, read_npz, reading, stored_file
from tk_spacy.utils.stored_values import stored_entry, stored_table, stored_texts

T = TypeVar("T")

MODEL = "model"
VOCABULARY, WEIGHTS = "vocabulary.msgpack", "weights.npz"
"""Files of format version 1, before the parser was a thinc model."""
PARSED_ROWS = 2000
"""Rows that are parsed at a time: larger batches need more memory and are no faster."""
LABEL_CELLS = 1 << 21
"""Scores of labels that are held at a time."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BiaffineParser(StoredParser):
    """A trained biaffine parser.

    model: as `model.build_biaffine_parser` makes it, initialized.
    labels: the DEPREL values that it can give, by their ids.  settings: as trained.
    root_labels: those of the root's arc, which alone may have them and no others; see `roots`.
        Empty where any arc may have any, as in parsers made before that was noted.
    architecture: the model in a spaCy config, where the settings do not say what it is.
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION, OLDEST = 2, 1
    FILES = (META, MODEL, VOCABULARY, WEIGHTS)
    single_root: ClassVar[bool] = True

    model: Model[Input, Any]
    labels: tuple[str, ...]
    settings: BiaffineSettings
    root_labels: tuple[str, ...] = ()
    architecture: Mapping[str, Any] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What it reads of words; None where its encoder has no vocabulary of a treebank."""
        embedding = embedding_of(self.model)
        return None if embedding is None else embedding.attrs["vocabulary"]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of CoNLL-U beside FORM that it has learnt to read."""
        return () if self.vocabulary is None else self.vocabulary.columns

    def parse(
        self,
        sentences: Sequence[Sentence],
        *,
        n_threads: int | None = 1,
        vectors: Any = None,
        recent: RecentScores | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """The best tree of each sentence: heads int32[n], and DEPREL values.

        Sentences too long to be searched whole are parsed in pieces, see `long_sentences`; `kbest`
        and `score` do likewise.
        n_threads: that batches of sentences are shared among, None for all cores; the results do
            not depend on it.
        vectors: [words, width], what the model's tok2vec gives for the words of all sentences one
            after the other, where it has read them in their Docs; None to let it read them alone.
        recent: remembers what `kbest` may ask for next.
        """
        return parse_cut(
            sentences, lambda pieces: self._parse(pieces, vectors, recent, n_threads), self.labels
        )

    def _parse(
        self,
        sentences: Iterable[Sentence],
        vectors: Any,
        recent: RecentScores | None,
        n_threads: int | None,
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        names = self.labels
        done = 0

        def best(_: int, scores: SentenceScores) -> Any:
            return scores.best_tree(second=recent is not None)

        for batch in in_batches(sentences, len):
            own = None
            if vectors is not None:
                ends = done + np.cumsum([len(sentence) for sentence in batch])
                own = [vectors[a:b] for a, b in zip([done, *ends[:-1]], ends, strict=True)]
                done = int(ends[-1])
            for heads, ids in self._map(batch, best, own, recent, n_threads):
                yield heads, tuple([names[j] for j in ids.tolist()])

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        recent: RecentScores | None = None,
        n_threads: int | None = 1,
    ) -> Iterator[CandidateList]:
        """The list of each sentence: at most k distinct trees, best first.

        inventory: where their labels get ids.  recent: remembers what `score` asks for next.
        n_threads: as in `parse`.
        """
        k = checked_k(k)
        return list_cut(
            sentences, lambda pieces: self._kbest(pieces, k, inventory, recent, n_threads), k
        )

    def _kbest(
        self,
        sentences: Iterable[Sentence],
        k: int,
        inventory: LabelInventory,
        recent: RecentScores | None,
        n_threads: int | None,
    ) -> Generator[CandidateList, None, None]:
        ids = InventoryIds(self.labels, inventory)
        share = self.settings.label_share

        def best(_: int, scores: SentenceScores) -> Any:
            return k_best(*scores.best_labels(), k, label_share=share)

        for batch in in_batches(sentences, lambda sentence: k * (len(sentence) + 1)):
            found = self._map(batch, best, recent=recent, n_threads=n_threads)
            for heads, labels, totals in found:
                yield CandidateList.from_arrays(
                    heads, ids(labels), totals[:, None], inventory=inventory,
                    sources=("biaffine",),
                )  # fmt: skip

    def score(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        *,
        recent: RecentScores | None = None,
    ) -> list[NDArray[np.float64]]:
        """The log-probability of any tree, arcs and labels: float64[k] for each list.

        NaN for a tree with a label that the parser does not know, or does not give to such an arc.
        recent: as `kbest` has left it.
        """
        check_aligned(sentences, lists)
        return score_cut(sentences, lists, lambda pieces, trees: self._score(pieces, trees, recent))

    def _score(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        recent: RecentScores | None,
    ) -> list[NDArray[np.float64]]:
        ids = {name: i for i, name in enumerate(self.labels)}
        tables = LabelTables(lambda name: ids.get(name, -1))

        def total(i: int, scores: SentenceScores) -> NDArray[np.float64]:
            trees = lists[done + i]
            return scores.of_trees(trees.heads, tables.labels(trees))

        out: list[NDArray[np.float64]] = []
        done = 0
        for batch in in_batches(sentences, len):
            out += self._map(batch, total, recent=recent)
            done += len(batch)
        return out

    def arc_scores(
        self, sentences: Sequence[Sentence], *, recent: RecentScores | None = None
    ) -> list[NDArray[np.float64]]:
        """How likely each arc of the sentences' own trees is: float64[n, 2] each.

        The log-probabilities of the head, and of the label given the head, -infinity for one that
        the parser does not give to such an arc.  NaN for a label that it does not know, and in a
        sentence too long to be searched whole.
        recent: as `kbest` has left it.
        """
        out = [np.full((len(sentence), 2), np.nan) for sentence in sentences]
        whole = [i for i, sentence in enumerate(sentences) if not is_long(sentence)]
        for batch in in_batches(whole, lambda i: len(sentences[i])):
            found = self._arc_scores([sentences[i] for i in batch], recent)
            for i, arcs in zip(batch, found, strict=True):
                out[i] = arcs
        return out

    def _arc_scores(
        self, sentences: Sequence[Sentence], recent: RecentScores | None
    ) -> list[NDArray[np.float64]]:
        ids = {name: i for i, name in enumerate(self.labels)}

        def own(i: int, scores: SentenceScores) -> NDArray[np.float64]:
            labels = np.array([[ids.get(name, -1) for name in sentences[i].deprels]])
            heads, given = scores.of_arcs(sentences[i].heads[None], labels)
            return np.stack([heads[0], given[0]], axis=1)

        return self._map(sentences, own, recent=recent)

    def _map(
        self,
        sentences: Sequence[Sentence],
        use: Callable[[int, SentenceScores], T],
        vectors: Sequence[Any] | None = None,
        recent: RecentScores | None = None,
        n_threads: int | None = 1,
    ) -> list[T]:
        """What `use` makes of each sentence's place and scores.

        vectors: of each sentence's words, as in `parse`.
        recent: scores of sentences that need not be read again.  n_threads: as in `parse`.
        """
        roots = RootLabels.of(self.labels, self.root_labels)
        found: dict[int, T] = {}
        unread: list[int] = []

        def read(places: list[int]) -> None:
            ids = [unread[place] for place in places]
            raise_if_stopped()
            own_vectors = None if vectors is None else [vectors[i] for i in ids]
            batch = Batch([sentences[i] for i in ids], vectors=own_vectors)
            found_scores = self.model.predict(batch)
            arcs = found_scores.ops.to_numpy(log_softmax(found_scores.arcs)).astype(np.float64)
            start = 0
            for row, i in enumerate(ids):
                raise_if_stopped()
                n = len(sentences[i])
                own = arcs[row, 1 : n + 1, : n + 1]
                own[np.arange(n), np.arange(1, n + 1)] = -np.inf
                scores = SentenceScores(found_scores, own, start, roots)
                if recent is not None:
                    recent.keep(sentences[i], scores)
                found[i] = use(i, scores)
                start += n + 1

        # Of what is known, too, labels are scored by products, of which each is small.
        with one_thread():
            for i, sentence in enumerate(sentences):
                known = None if recent is None else recent.find(sentence)
                if known is None:
                    unread.append(i)
                else:
                    raise_if_stopped()
                    found[i] = use(i, known)
            batches = make_batches([len(sentences[i]) + 1 for i in unread], PARSED_ROWS)
            answers([partial(read, places) for places in batches], n_threads=n_threads)
        return [found[i] for i in range(len(sentences))]

    @classmethod
    def joined(cls, parsers: Sequence[Self]) -> Self | None:
        """Parsers as one, whose scores are the means of theirs; see `base.Joins`."""
        first = parsers[0]
        alike = [
            (p.labels, p.root_labels, p.architecture, replace(p.settings, seed=0, networks=1))
            for p in parsers
        ]
        if first.architecture is not None or any(other != alike[0] for other in alike):
            return None
        members = [member for parser in parsers for member in members_of(parser.model)]
        model = make_committee(members)
        share_vocabulary(model)
        return replace(
            first,
            model=model,
            settings=replace(first.settings, networks=len(members)),
            about={**first.about, "seeds": [parser.settings.seed for parser in parsers]},
        )

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        facts: dict[str, Any] = {"labels": self.labels}
        if self.root_labels:
            facts["root_labels"] = self.root_labels
        if self.architecture is not None:
            facts["architecture"] = self.architecture
        return {
            META: self._meta(self.settings.to_dict(), {**facts, **self.about}),
            MODEL: self.model.to_bytes(),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        # Models of before there was a choice of steps had none.
        settings = BiaffineSettings.from_dict({"steps": 0, **meta["settings"]})
        architecture = meta.get("architecture")
        if architecture is None:
            model = model_of(settings)
        else:
            check_stored_config(stored_table(architecture, "architecture"), "architecture")
            model = registry.resolve({"model": architecture})["model"]
        if meta["format_version"] == 1:
            stored = read_msgpack(files, VOCABULARY)
            with reading(VOCABULARY):
                vocabulary = Vocabulary.from_dict(stored)
                labels = stored_texts(stored_entry(stored, "labels", "it"), "labels")
            arrays = read_npz(files, WEIGHTS)
            with reading(WEIGHTS):
                take_old_weights(model, vocabulary, arrays)
                check_weights(model, n_labels=len(labels))
        else:
            labels = stored_texts(stored_entry(meta, "labels", META), "labels")
            content = stored_file(files, MODEL)
            with reading(MODEL):
                take_weights(model, content)
                share_vocabulary(model)
                check_weights(model, n_labels=len(labels))
        root_labels = stored_texts(meta.get("root_labels", []), "root_labels")
        if root_labels and not set(root_labels) < set(labels):
            raise ValueError(f"root_labels are {root_labels}, expected some of the labels")
        return cls(
            model=model,
            labels=tuple(labels),
            settings=settings,
            root_labels=tuple(root_labels),
            architecture=architecture,
            about=cls._about(meta, "labels", "root_labels", "architecture"),
        )


BestLabels: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64]]


class SentenceScores:
    """The scores of one sentence of a batch.

    arcs: float64[n, n + 1], log-probabilities of each word's heads.  start: its first row.
    roots: the labels that may not be; those of an arc that may be share its probability.
    """

    def __init__(
        self,
        scores: LabelScores | JointLabelScores,
        arcs: NDArray[np.float64],
        start: int,
        roots: RootLabels,
    ) -> None:
        self._scores, self._arcs, self._start, self._roots = scores, arcs, start, roots
        self._labels: BestLabels | None = None

    def alone(self) -> SentenceScores:
        """The same without the batch's others, as plain data; its sums are made of equal parts."""
        n = len(self._arcs)
        rows = self._scores.of_rows(slice(self._start, self._start + n + 1))
        own = SentenceScores(rows, self._arcs, 0, self._roots)
        own._labels = self._labels
        return own

    def best_tree(self, *, second: bool = False) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Heads and labels int32[n] of the best tree.

        second: whether `best_labels` will be asked for next.
        """
        arcs, labels, _ = self.best_labels(second=second)
        heads = best_tree(arcs)
        return heads, labels[np.arange(len(heads)), heads, 0]

    def best_labels(self, *, second: bool = True) -> BestLabels:
        """What `decoding.k_best` wants: arcs with their best labels, the labels, the margins.

        second: whether second best labels and margins are wanted; else they are -1 and 0.
        """
        if not second:
            return self._find_labels(second=False)
        if self._labels is None:
            self._labels = self._find_labels(second=True)
        return self._labels

    def _find_labels(self, *, second: bool) -> BestLabels:
        n = len(self._arcs)
        totals = self._arcs.copy()
        labels = np.full((n, n + 1, 2), -1, dtype=np.int32)
        margins = np.zeros((n, n + 1))
        n_labels, ops = self._scores.n_labels, self._scores.ops
        size = max(1, LABEL_CELLS // (n_labels * (n + 1)))
        for first in range(0, n, size):
            words = slice(first, min(first + size, n))
            scores = self._scores.all_label_scores(
                self._start + 1 + words.start, words.stop - words.start, self._start, n + 1
            )
            shifted = shift_labels(ops.to_numpy(scores), self._roots.forbidden)
            choose_labels(
                shifted, log_sums(shifted), totals[words], labels[words], margins[words],
                second=second,
            )  # fmt: skip
        return totals, labels, margins

    def of_trees(
        self, heads: NDArray[np.int32], labels: NDArray[np.integer[Any]]
    ) -> NDArray[np.float64]:
        """Scores float64[k] of trees: heads and labels int[k, n], labels -1 where unknown.

        NaN where a label is unknown or may not be: it is no tree of this parser.
        """
        of_heads, of_labels = self.of_arcs(heads, labels)
        of_labels = np.where(np.isneginf(of_labels), np.nan, of_labels)
        return (of_heads + of_labels).sum(axis=1)

    def of_arcs(
        self, heads: NDArray[np.int32], labels: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """The same of each head, float64[k, n], and of each label given the head, float32[k, n].

        NaN for an unknown label, -infinity for one that may not be.
        """
        modifiers, governors, arcs = distinct_arcs(heads)
        ops: Any = self._scores.ops
        places: tuple[Any, Any] = (
            ops.asarray(self._start + 1 + modifiers),
            ops.asarray(self._start + governors),
        )
        scores = ops.to_numpy(self._scores.label_scores(*places))
        shifted = shift_arc_labels(scores, governors, self._roots.forbidden)
        found = pick_labels(shifted, log_sums(shifted), arcs, labels)
        return self._arcs[np.arange(len(self._arcs)), heads], found


RecentScores = Recent[SentenceScores]
"""Scores of the sentences that a biaffine parser has read last."""
