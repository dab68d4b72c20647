"""The projective parser: a trained model that parses, proposes k-best trees and scores any."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.features.schema import Schema, read_schema
from tk_spacy.kbest.candidates import CandidateList, LabelInventory, in_batches
from tk_spacy.parsers.listing_parser import InventoryIds, ListingParser, flat_trees, owners_of
from tk_spacy.parsers.projective.decoder import Scorer, decode, score_trees
from tk_spacy.parsers.projective.kind import FORMAT
from tk_spacy.parsers.projective.labels import Labeller, label_trees
from tk_spacy.parsers.projective.marks import Marks
from tk_spacy.parsers.projective.settings import ProjectiveSettings
from tk_spacy.parsers.sampling.search.words import encode
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64, Int32
from tk_spacy.utils.serialization import META, dense, read_npz, read_places, reading, sparse, to_npz

SCHEMA, WEIGHTS = "schema.msgpack", "weights.npz"
MOST_WEIGHT = 1e9
"""Weights of a stored parser are smaller, so that scores are finite numbers."""


Found = tuple[Int32, Int32, Float64, bool]
"""Heads and labels int32[m, n] and scores float64[m] of trees, and whether arcs were taken back."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProjectiveParser(ListingParser):
    """A trained projective parser.

    Lists are searched exactly before lifted arcs go back to where their labels tell; what they then
    score may change the order.  A tree's score is that of its parts, less what its labels, word by
    word, score less than the best ones there; one with crossing arcs is made projective first.

    schema: the values of words that it reads, and its labels, marked ones too (see `marks`).
    settings: as trained.
    weights: float32[2 ** bits], of parts.  pruner: float32[2 ** pruner_bits], of single arcs.
    label_weights: float32[2 ** label_bits + n_labels].
    places: uint8[n_labels], where each label may stand (see labels.Labeller).
    about: further facts for meta.json, JSON values.
    """

    FORMAT = FORMAT
    VERSION, OLDEST = 1, 1
    FILES = (META, SCHEMA, WEIGHTS)

    schema: Schema
    settings: ProjectiveSettings
    weights: NDArray[np.float32]
    pruner: NDArray[np.float32]
    label_weights: NDArray[np.float32]
    places: NDArray[np.uint8]
    about: Mapping[str, Any] = field(default_factory=dict)
    _scorer: Scorer = field(init=False, repr=False)
    _labeller: Labeller = field(init=False, repr=False)
    _marks: Marks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        scorer = make_scorer(self.settings, self.weights, self.pruner, self.schema)
        labeller = Labeller(self.label_weights, self.places, morph_end=self.schema.n_columns)
        object.__setattr__(self, "_scorer", scorer)
        object.__setattr__(self, "_labeller", labeller)
        object.__setattr__(self, "_marks", Marks(self.schema.labels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The DEPREL values that it can give."""
        return self._marks.plain

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of CoNLL-U beside FORM that it has learnt to read."""
        return self.schema.filled

    def facts(self) -> dict[str, Any]:
        """The column that it reads as tags."""
        return {"pos": self.schema.pos_column}

    def _parse(
        self, sentences: Iterable[Sentence], n_threads: int | None
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        names = self.labels
        for _, found in self._found(sentences, 1, n_threads):
            for heads, labels, _, _ in found:
                yield heads[0], tuple([names[i] for i in labels[0].tolist()])

    def _kbest(
        self,
        sentences: Iterable[Sentence],
        k: int,
        inventory: LabelInventory,
        n_threads: int | None,
    ) -> Generator[CandidateList, None, None]:
        ids = InventoryIds(self.labels, inventory)
        for batch, found in self._found(sentences, k, n_threads):
            lists = []
            for heads, labels, scores, _ in found:
                lists.append(
                    CandidateList.from_arrays(
                        heads,
                        ids(labels),
                        scores[:, None],
                        inventory=inventory,
                        sources=("projective",),
                    )
                )
            # Trees that were changed have the score that they would have anywhere else.
            changed = [i for i, item in enumerate(found) if item[3]]
            again = self._score([batch[i] for i in changed], [lists[i] for i in changed], n_threads)
            for i, scores in zip(changed, again, strict=True):
                lists[i] = lists[i].with_scores(scores[:, None])
            yield from lists

    def _found(
        self, sentences: Iterable[Sentence], k: int, n_threads: int | None
    ) -> Iterator[tuple[list[Sentence], list[Found]]]:
        """Some sentences and what is found for each."""
        for batch in in_batches(sentences, lambda sentence: k * (len(sentence) + 2)):
            corpus = encode(self.schema, batch)
            where = (corpus.fields, corpus.starts, corpus.lengths)
            cells, scores, counts = decode(self._scorer, *where, k=k, n_threads=n_threads)
            trees = [
                np.ascontiguousarray(cells[rows.start : rows.stop - 1, :count].T)
                for rows, count in zip(map(corpus.rows, range(len(corpus))), counts, strict=True)
            ]
            owners = owners_of(counts)
            flat = np.concatenate([heads.ravel() for heads in trees])
            labels, _ = label_trees(self._labeller, *where, owners, flat, n_threads=n_threads)
            found: list[Found] = []
            at = 0
            for heads, row in zip(trees, scores, strict=True):
                own = labels[at : at + heads.size].reshape(heads.shape)
                at += heads.size
                plain = self._marks.undone(heads[:, 1:], own[:, 1:])
                found.append((*plain, row[: len(heads)], self._marks.any_in(own[:, 1:])))
            yield batch, found

    def _score_batch(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        n_threads: int | None,
    ) -> list[NDArray[np.float64]]:
        corpus = encode(self.schema, sentences)
        where = (corpus.fields, corpus.starts, corpus.lengths)
        cells, labels = flat_trees(self._marks.made_projective(trees) for trees in lists)
        owners = owners_of(map(len, lists))
        scores = score_trees(self._scorer, *where, owners, cells, n_threads=n_threads)
        _, less = label_trees(self._labeller, *where, owners, cells, labels, n_threads=n_threads)
        return [(scores + less)[a:b] for a, b in pairwise(owners.tolist())]

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        return {
            META: self._meta(self.settings.to_dict(), self.about),
            SCHEMA: srsly.msgpack_dumps(self.schema.to_dict()),
            WEIGHTS: to_npz(
                {
                    **sparse("parts", self.weights),
                    **sparse("pruner", self.pruner),
                    **sparse("labels", self.label_weights),
                    "places": self.places,
                }
            ),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        settings = ProjectiveSettings.from_dict(meta["settings"])
        schema = read_schema(files, SCHEMA)
        arrays = read_npz(files, WEIGHTS)
        n_labels = len(schema.labels)
        of_labels = (1 << settings.label_bits) + n_labels
        with reading(WEIGHTS):
            weights = dense(arrays, "parts", 1 << settings.bits, most=MOST_WEIGHT)
            pruner = dense(arrays, "pruner", 1 << settings.pruner_bits, most=MOST_WEIGHT)
            label_weights = dense(arrays, "labels", of_labels, most=MOST_WEIGHT)
            places = read_places(arrays, n_labels)
        return cls(
            schema=schema,
            settings=settings,
            weights=weights,
            pruner=pruner,
            label_weights=label_weights,
            places=places,
            about=cls._about(meta),
        )


def make_scorer(
    settings: ProjectiveSettings,
    weights: NDArray[np.float32],
    pruner: NDArray[np.float32],
    schema: Schema,
) -> Scorer:
    """The weights with what the search needs beside them."""
    return Scorer(
        weights,
        pruner,
        max_heads=settings.max_heads,
        least=settings.least,
        morph_end=schema.n_columns,
    )
