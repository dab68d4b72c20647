"""The sampling parser: a trained third-order model that parses and proposes k-best trees."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.errors import UserError
from tk_spacy.features.candidate_scores import add_candidate_scores
from tk_spacy.features.part_types import ARC, PART_TYPES
from tk_spacy.features.parts import extract_parts
from tk_spacy.features.schema import FIRST_ID, Schema, read_schema
from tk_spacy.kbest.candidates import (
    SHORT_LIST,
    CandidateList,
    LabelInventory,
    in_batches,
)
from tk_spacy.kbest.label_tables import LabelTables
from tk_spacy.kbest.long_sentences import list_cut
from tk_spacy.kernels.support import Support
from tk_spacy.parsers.listing_parser import InventoryIds, ListingParser, checked_k
from tk_spacy.parsers.sampling.kernel.decoding import decode_with_kernel
from tk_spacy.parsers.sampling.kernel.model import PAIRS, SearchKernel, part_slots
from tk_spacy.parsers.sampling.search.decoder import Scorer, decode
from tk_spacy.parsers.sampling.search.search_space import lattice_arcs
from tk_spacy.parsers.sampling.search.tree_scores import crossing_scores, part_scores
from tk_spacy.parsers.sampling.search.words import Corpus, encode
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.model_dirs import SCHEMA, WEIGHTS, model_places
from tk_spacy.utils.serialization import (
    META,
    PARSER_FORMAT,
    dense,
    read_npz,
    read_places,
    reading,
    sparse,
    to_npz,
)
from tk_spacy.utils.stored_values import (
    stored_entry,
    stored_number,
    stored_table,
    stored_texts,
)

KERNEL_SCHEMA, KERNEL = "kernel.msgpack", "kernel.npz"
MOST_WEIGHT = 1e9
"""Weights of a stored parser are smaller; the search relies on scores that are finite numbers."""

PARTS_OF_ORDER: Mapping[int, tuple[str, ...]] = {
    1: ("arc",),
    2: ("arc", "sibling", "grandparent"),
    3: ("arc", "sibling", "grandparent", "grand-sibling", "tri-sibling"),
}
"""The part types with features, in the order of part_types.PART_TYPES."""

COMPANY_MARGIN = 3.5
"""`prune_margin` of short lists in company, at most.  Alone it costs the parser up to half a point
of LAS; beside other parsers nothing on three dev sets, and the search is three times as fast."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SamplingParser(ListingParser):
    """A trained sampling parser.  Arcs that its pruner would not keep are scored like any other.

    schema: fields and their values.  settings: as trained.
    weights: float32[2 ** bits + n_cells].  pruner: float32[2 ** pruner_bits].
    places: uint8[n_cells], where each label may stand (see decoder.Scorer).
    kernel: whose scores of parts are added to the parser's own, None for none.
    about: further facts for meta.json, JSON values.
    """

    FORMAT = PARSER_FORMAT
    VERSION = 3
    OLDEST = 1  # which had no kernel, 2 one of arcs; parsers that need no more are still written so
    FILES = (META, SCHEMA, WEIGHTS, KERNEL_SCHEMA, KERNEL)

    schema: Schema
    settings: SamplingSettings
    weights: NDArray[np.float32]
    pruner: NDArray[np.float32]
    places: NDArray[np.uint8]
    kernel: SearchKernel | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    _scorer: Scorer = field(init=False, repr=False)
    _narrow: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        margin = min(self.settings.prune_margin, COMPANY_MARGIN)
        narrow = replace(self.settings, prune_margin=margin)
        for name, settings in (("_scorer", self.settings), ("_narrow", narrow)):
            scorer = make_scorer(self.schema, settings, self.weights, self.pruner, self.places)
            object.__setattr__(self, name, scorer)
        if self.settings.order == 1 and self.kernel is not None and self.kernel.pairs:
            raise ValueError(
                f"a kernel of {' and '.join(self.kernel.pairs)} parts in a parser of order 1, "
                "expected one of arcs alone"
            )

    @property
    def scorer(self) -> Scorer:
        """The decoder's parser of the model, without the kernel."""
        return self._scorer

    @property
    def labels(self) -> tuple[str, ...]:
        """The DEPREL values that it can give."""
        return tuple(self.schema.labels)

    @property
    def single_root(self) -> bool:
        """Whether every tree that it gives has one root."""
        return self.settings.single_root

    def facts(self) -> dict[str, Any]:
        """What it reads, and the parts of its kernel, if it has one."""
        kernel = self.kernel
        return {
            "properties": [prop.name for prop in self.schema.properties],
            "pos": self.schema.pos_column,
            "kernel": None
            if kernel is None
            else {
                "gamma": kernel.gamma,
                "support_parts": {name: len(p) for name, p in kernel.support.types.items()},
            },
        }

    def _parse(
        self, sentences: Iterable[Sentence], n_threads: int | None
    ) -> Generator[tuple[NDArray[np.int32], tuple[str, ...]], None, None]:
        names = self._names()
        for heads, labels, _ in self._lists(sentences, 1, n_threads):
            yield heads[0], tuple([names[i] for i in labels[0].tolist()])

    def kbest(
        self,
        sentences: Sequence[Sentence],
        *,
        k: int,
        inventory: LabelInventory,
        in_company: bool = False,
        n_threads: int | None = None,
    ) -> Iterator[CandidateList]:
        """The list of each sentence: at most k distinct trees, best first.

        inventory: where their labels get ids.
        in_company: whether other parsers propose trees too, so that a short list may be searched
            among fewer heads.
        Raises UserError where the parser's trees may have several roots, which no list can hold.
        """
        k = checked_k(k)
        if not self.settings.single_root:
            raise UserError(
                "a k-best list holds trees with one root, and this parser was trained for several; "
                "train it with single_root, or ask for its best trees only"
            )
        scorer = self._narrow if in_company and k <= SHORT_LIST else self._scorer
        return list_cut(
            sentences, lambda pieces: self._kbest(pieces, k, inventory, n_threads, scorer), k
        )

    def _kbest(
        self,
        sentences: Iterable[Sentence],
        k: int,
        inventory: LabelInventory,
        n_threads: int | None,
        scorer: Scorer | None = None,
    ) -> Generator[CandidateList, None, None]:
        ids = InventoryIds(self._names(), inventory)
        for heads, labels, scores in self._lists(sentences, k, n_threads, scorer):
            yield CandidateList.from_arrays(
                heads, ids(labels), scores[:, None], inventory=inventory, sources=("sampling",)
            )

    def _names(self) -> list[str]:
        """Label names by id; ids below FIRST_ID are no labels."""
        return ["_"] * FIRST_ID + list(self.schema.labels)

    def _lists(
        self,
        sentences: Iterable[Sentence],
        k: int,
        n_threads: int | None,
        scorer: Scorer | None = None,
    ) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]]:
        """Heads int32[k, n], labels int32[k, n] and scores float64[k] of each sentence."""
        s, scorer = self.settings, scorer or self._scorer
        restarts, patience = s.restarts, s.patience
        if k > SHORT_LIST:
            restarts, patience = max(restarts, s.list_restarts), max(patience, s.list_patience)
        for batch in in_batches(sentences, lambda sentence: k * (len(sentence) + 2)):
            corpus = encode(self.schema, batch, seed=s.seed)
            options: dict[str, Any] = {
                "k": k,
                # Of first order the best trees are the list itself.
                "exact": max(k, s.exact_starts) if s.order == 1 else s.exact_starts,
                "restarts": max(k, restarts) if s.order == 1 else restarts,
                "patience": patience,
                "temperature": s.temperature,
                "label_share": s.label_share,
                "n_threads": n_threads,
            }
            where = (scorer, corpus.fields, corpus.starts, corpus.lengths)
            every = np.arange(len(corpus))
            if self.kernel is None:
                found = decode(*where, every, seeds=corpus.seeds, **options)
            else:
                nodes, table = self.kernel.nodes(batch), self.kernel.label_table(self.schema)
                arcs = lattice_arcs(*where, every, n_threads=n_threads)
                arcs = self.kernel.added(arcs, corpus.lengths, nodes, table, n_threads=n_threads)
                found, _ = decode_with_kernel(
                    self.kernel, scorer, corpus, arcs, nodes, table, **options
                )
            heads, labels, scores, counts = found
            for i, count in enumerate(counts.tolist()):
                rows = corpus.rows(i)
                words = slice(rows.start + 1, rows.stop - 1)
                yield (
                    np.ascontiguousarray(heads[words, :count].T),
                    np.ascontiguousarray(labels[words, :count].T),
                    scores[i, :count],
                )

    def _score_batch(
        self,
        sentences: Sequence[Sentence],
        lists: Sequence[CandidateList],
        n_threads: int | None,
    ) -> list[NDArray[np.float64]]:
        corpus = encode(self.schema, sentences)
        labels = list(map(LabelTables(self.schema.label_id).labels, lists))
        out = [np.zeros(len(trees)) for trees in lists]
        checked = [trees.trees for trees in lists]
        for kind, name in enumerate(PARTS_OF_ORDER[self.settings.order]):
            found = [
                extract_parts(heads, ids, PART_TYPES[name])
                for heads, ids in zip(checked, labels, strict=True)
            ]
            owners = np.repeat(
                np.arange(len(found), dtype=np.int32), [len(rows) for rows, _, _ in found]
            )
            scores = part_scores(
                self._scorer,
                corpus.fields,
                corpus.starts,
                corpus.lengths,
                owners,
                np.concatenate([rows for rows, _, _ in found]),
                kind,
                n_threads=n_threads,
            )
            if self.kernel is not None and (name == ARC or name in self.kernel.pairs):
                scores = scores + self._kernel_scores(
                    self.kernel,
                    name,
                    sentences,
                    corpus,
                    owners,
                    [rows for rows, _, _ in found],
                    n_threads,
                )
                if name != ARC:  # in single precision, as in the search
                    scores = scores.astype(np.float32).astype(np.float64)
            done = 0
            for (rows, starts, members), total in zip(found, out, strict=True):
                add_candidate_scores(scores[done : done + len(rows)], starts, members, total)
                done += len(rows)
        for i, (trees, ids, total) in enumerate(zip(lists, labels, out, strict=True)):
            crossing_scores(self._scorer, corpus.fields[corpus.rows(i)], trees.heads, ids, total)
            total[(ids < FIRST_ID).any(axis=1)] = np.nan
        return out

    def _kernel_scores(
        self,
        kernel: SearchKernel,
        name: str,
        sentences: Sequence[Sentence],
        corpus: Corpus,
        owners: NDArray[np.int32],
        rows: Sequence[NDArray[np.int32]],
        n_threads: int | None,
    ) -> NDArray[np.float64]:
        """What the kernel adds to parts, rows as parts.extract_parts finds them: float64[p]."""
        table = kernel.label_table(self.schema)
        slots = {name: part_slots(name, np.concatenate(rows), table, corpus.starts[owners])}
        return kernel.scores(kernel.nodes(sentences), slots, n_threads=n_threads)[name]

    # Storage

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        kernel = self.kernel
        if kernel is None:
            return self._own_files(self._meta(self.settings.to_dict(), self.about, version=1))
        about: dict[str, Any] = {"gamma": kernel.gamma, "support_parts": len(kernel.support)}
        if kernel.pairs:
            about["pairs"] = list(kernel.pairs)
        meta = self._meta(
            self.settings.to_dict(),
            {"kernel": about, **self.about},
            version=3 if kernel.pairs else 2,
        )
        return {
            **self._own_files(meta),
            KERNEL_SCHEMA: srsly.msgpack_dumps(kernel.schema.to_dict()),
            KERNEL: to_npz(kernel.support.to_arrays()),
        }

    def _own_files(self, meta: bytes) -> dict[str, bytes]:
        return {
            META: meta,
            SCHEMA: srsly.msgpack_dumps(self.schema.to_dict()),
            WEIGHTS: to_npz(
                {
                    **sparse("weights", self.weights),
                    **sparse("pruner", self.pruner),
                    "places": self.places,
                }
            ),
        }

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        settings = SamplingSettings.from_dict(meta["settings"])
        schema = read_schema(files, SCHEMA)
        arrays = read_npz(files, WEIGHTS)
        with reading(WEIGHTS):
            n_cells = FIRST_ID + len(schema.labels)
            places = read_places(arrays, n_cells)
            if places[:FIRST_ID].any():
                raise ValueError(f"places of ids below {FIRST_ID}, which are no labels")
            weights = dense(arrays, "weights", (1 << settings.bits) + n_cells, most=MOST_WEIGHT)
            pruner = dense(arrays, "pruner", 1 << settings.pruner_bits, most=MOST_WEIGHT)
        kernel = None
        if meta["format_version"] > 1:
            stored = stored_table(stored_entry(meta, "kernel", META), "kernel")
            given = stored_texts(stored.get("pairs", []), "kernel.pairs")
            names = (ARC, *(name for name in PAIRS if name in given))
            if len(names) != 1 + len(given):
                raise ValueError(f"a kernel of {given}, expected some of {PAIRS}")
            gamma = stored_number(
                stored_entry(stored, "gamma", "kernel"), "kernel.gamma", positive=True
            )
            own = read_schema(files, KERNEL_SCHEMA)
            arrays = read_npz(files, KERNEL)
            with reading(KERNEL):
                support = Support.from_arrays(arrays, names, n_properties=len(own.properties))
            kernel = SearchKernel(schema=own, support=support, gamma=gamma)
        return cls(
            schema=schema,
            settings=settings,
            weights=weights,
            pruner=pruner,
            places=places,
            kernel=kernel,
            about=cls._about(meta, "kernel"),
        )


def make_scorer(
    schema: Schema,
    settings: SamplingSettings,
    weights: NDArray[np.float32],
    pruner: NDArray[np.float32],
    places: NDArray[np.uint8],
) -> Scorer:
    """The decoder's parser of a model, which reads the arrays as they stand, without a copy."""
    return Scorer(
        weights,
        pruner,
        places,
        order=settings.order,
        max_heads=settings.max_heads,
        prune_margin=settings.prune_margin,
        max_labels=settings.max_labels,
        label_margin=settings.label_margin,
        arc_margin=settings.arc_margin,
        single_root=settings.single_root,
        morph_end=schema.n_columns,
        crossing=settings.crossing,
    )


def read_parser(path: Path) -> SamplingParser:
    """The sampling parser in a directory: one alone, or the first one of a pipeline.

    Raises UserError where there is none.
    """
    places = model_places(path, PARSER_FORMAT, maker="train-parser", factory="tk_parser")
    return SamplingParser.from_disk(places[0])
