"""The trained model: scores candidates, chooses one, goes to disk and to bytes.

Source: Taub-Tabib et al. 2015, equation 2 (score), section 4 (prediction) and section 5 (final
system).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import srsly
from numpy.typing import NDArray

from tk_spacy.ensemble.combiner.arc_features import BITS
from tk_spacy.ensemble.combiner.model import COMBINER, ArcCombiner
from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.features.candidate_scores import add_candidate_scores, add_list_scores
from tk_spacy.features.encoder import EncodedList, ListEncoder
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.schema import Schema, read_schema
from tk_spacy.features.templates import add_scores
from tk_spacy.kbest.arc_probabilities import ArcProbabilities
from tk_spacy.kbest.candidates import CandidateList, in_batches
from tk_spacy.kbest.well_formed import count_kinds
from tk_spacy.kernels.hashed_kernel import KernelMap
from tk_spacy.kernels.scorer import SupportScorer
from tk_spacy.kernels.support import Support
from tk_spacy.parallel.prefetch import made_ahead
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.reranker.calibration import Calibration, Confidence
from tk_spacy.reranker.cascade import Cascade
from tk_spacy.reranker.decision import Decision, repaired_list
from tk_spacy.reranker.examples import Examples
from tk_spacy.reranker.explain import EXAMPLES as EXAMPLES_TOLD
from tk_spacy.reranker.explain import Explanation, explain
from tk_spacy.reranker.interpolation import Combination
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.provenance import Provenance
from tk_spacy.reranker.settings import Settings
from tk_spacy.selection.explicit import ExplicitModel, explicit_to_dict, read_explicit
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.trees.constraints import KINDS
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.model_dirs import (
    COMBINER_WEIGHTS,
    EXAMPLES,
    EXPLICIT,
    KERNEL_MAP,
    SCHEMA,
    SUPPORT,
    WEIGHTS,
)
from tk_spacy.utils.serialization import (
    META,
    RERANKER_FORMAT,
    StoredModel,
    dense,
    read_npz,
    reading,
    sparse,
    to_npz,
)
from tk_spacy.utils.stored_values import (
    check_same,
    shown,
    stored_entry,
    stored_numbers,
    stored_table,
)

Pair = tuple[Sentence, CandidateList]

OF_FILES: Mapping[str, str] = {
    "combiner": COMBINER_WEIGHTS,
    "kernel_map": KERNEL_MAP,
    "explicit": EXPLICIT,
}
"""What meta.json tells of where there is the file."""
BEFORE_EXPLICIT, BEFORE_PENALTIES = 3, 4
"""The formats of models without explicit features, and without penalties, which earlier versions
can read."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Reranker(StoredModel):
    """A trained reranker.

    schema: properties and values.  settings: as trained.  support: the kernel's support parts.
    weights: float64[2 ** bits] of the manual features, None without them; kept to float32
        precision, in which they are stored.
    list_features, list_weights: float64[d], the features of a candidate within its list and their
        weights; both None without them.
    kernel_map: scores arcs in the place of the support, which is empty then; None without it.
    explicit: scores candidates in the place of support, manual features and features of the list,
        which are empty or None then; None without it.
    combination: with the parsers' scores; None for the reranker's score alone.
    combiner: adds trees and a score to the lists of several parsers; None without it.
    penalties: on ill-formed trees, in the final scores.
    calibration: makes probabilities of the final scores; None without it.
    cascade: tells which sentences may be left to quick parsers; None where that is not known.
    examples: the training sentences that support parts came from, for explanations; None where the
        model was told to keep none, and in models of before.
    about: further facts as meta.json stores them, JSON values; `provenance` reads them.
    """

    FORMAT = RERANKER_FORMAT
    VERSION = 5
    # 1: no features of the list; 2: neither combiner nor kernel map; 3: no explicit model; 4: no
    # penalties
    OLDEST = 1
    FILES = (META, SCHEMA, SUPPORT, WEIGHTS, COMBINER_WEIGHTS, KERNEL_MAP, EXPLICIT, EXAMPLES)

    schema: Schema
    settings: Settings
    support: Support
    weights: Float64 | None
    list_features: ListFeatures | None = None
    list_weights: Float64 | None = None
    kernel_map: KernelMap | None = None
    explicit: ExplicitModel | None = None
    combination: Combination | None = None
    combiner: ArcCombiner | None = None
    penalties: Penalties = field(default_factory=Penalties)
    calibration: Calibration | None = None
    cascade: Cascade | None = None
    examples: Examples | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    _provenance: Provenance | None = field(default=None, init=False, repr=False)
    _encoder: ListEncoder = field(init=False, repr=False)
    _scorer: SupportScorer | KernelMap = field(init=False, repr=False)

    def __post_init__(self) -> None:
        encoder = ListEncoder(
            self.schema,
            kernel_parts=self.settings.kernel_parts,
            manual_parts=self.settings.manual_parts,
            list_features=self.list_features,
        )
        if self.explicit is not None and (
            len(self.support)
            or self.kernel_map is not None
            or self.weights is not None
            or self.list_features is not None
        ):
            raise ValueError("explicit features beside a kernel or manual weights, expected none")
        object.__setattr__(self, "_encoder", encoder)
        scorer = self.kernel_map or SupportScorer(self.support, self.schema.property_groups())
        object.__setattr__(self, "_scorer", scorer)
        if self.weights is not None:
            object.__setattr__(self, "weights", self.weights.astype(np.float32).astype(np.float64))

    def __repr__(self) -> str:
        # Not its values: those of a treebank's words are thousands.
        what = f"{len(self.support):,} support parts"
        if self.explicit is not None:
            what = f"{len(self.explicit):,} selected features"
        elif self.kernel_map is not None:
            what = f"a hashed map of {self.kernel_map.bits} bits"
        sources = ", ".join(self.needed_sources) or "no parser"
        return f"<Reranker: {what}, {len(self.schema.labels)} labels, scores of {sources}>"

    @property
    def needed_sources(self) -> list[str]:
        """The sources whose scores a list must have; the combiner's is made here."""
        names: dict[str, None] = {}
        if self.combination is not None:
            names |= {name: None for name, beta in self.combination.betas.items() if beta}
        if self.list_features is not None:
            names |= dict.fromkeys(self.list_features.scales)
        if self.combiner is not None:
            names |= dict.fromkeys(self.combiner.features.scales)
        return [name for name in names if name != COMBINER]

    def completed(self, sentence: Sentence, candidates: CandidateList) -> CandidateList:
        """The list as all methods below want it: with the combiner's trees and scores, if any."""
        if self.combiner is None or COMBINER in candidates.sources:
            return candidates
        return self.combiner.extended(sentence, candidates)

    def completed_all(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Several sentences with their lists, each as `completed` makes it, in one go."""
        if self.combiner is None:
            return list(pairs)
        wanted = [pair for pair in pairs if COMBINER not in pair[1].sources]
        longer = iter(self.combiner.extended_all(wanted))
        return [
            (sentence, candidates if COMBINER in candidates.sources else next(longer))
            for sentence, candidates in pairs
        ]

    def scores(
        self, sentence: Sentence, candidates: CandidateList, *, n_threads: int | None = None
    ) -> Float64:
        """The reranker's own score of every candidate: float64[k].

        Comparable within the list only: what all candidates share is left out.
        """
        return self.batch_scores([(sentence, candidates)], n_threads=n_threads)[0]

    def batch_scores(
        self, pairs: Sequence[tuple[Sentence, CandidateList]], *, n_threads: int | None = None
    ) -> list[Float64]:
        """As `scores`, for several sentences in one go."""
        return self.encoded_scores(self.encode_all(pairs), n_threads=n_threads)

    def encode(self, sentence: Sentence, candidates: CandidateList) -> Any:
        """What `encoded_scores` reads of a sentence and its candidates."""
        return self.encode_all([(sentence, candidates)])[0]

    def encode_all(self, pairs: Sequence[Pair]) -> list[Any]:
        """As `encode`, for several sentences in one go."""
        encoder = self._encoder if self.explicit is None else self.explicit
        return encoder.encode_all(pairs)

    def encoded_scores(
        self, encoded: Sequence[Any], *, n_threads: int | None = None
    ) -> list[Float64]:
        """As `batch_scores`, for lists that are encoded already."""
        n_threads = effective_n_threads(n_threads)
        if self.explicit is not None:
            return self.explicit.scores(encoded, n_threads=n_threads)
        out = [np.zeros(item.n_candidates) for item in encoded]
        if not encoded:
            return out
        if self.has_kernel:
            by_type = self.kernel_scores(encoded, n_threads=n_threads)
            for item, values, scores in zip(encoded, by_type, out, strict=True):
                for parts, of_parts in zip(item.kernel, values, strict=True):
                    add_candidate_scores(of_parts, parts.starts, parts.members, scores)
        for i in range(len(self.settings.manual_parts) if self.weights is not None else 0):
            part_scores = self.manual_scores(encoded, i, n_threads=n_threads)
            for item, of_parts, scores in zip(encoded, part_scores, out, strict=True):
                parts = item.manual[i]
                add_candidate_scores(of_parts, parts.starts, parts.members, scores)
        if self.list_weights is not None:
            for item, scores in zip(encoded, out, strict=True):
                if item.listed is None:
                    raise ValueError("a list is encoded without its features, expected them")
                add_list_scores(item.listed, self.list_weights, scores)
        return out

    @property
    def has_kernel(self) -> bool:
        """Whether anything is scored by support parts, or by a map of them."""
        return bool(self.settings.kernel_parts) and (
            self.kernel_map is not None or len(self.support) > 0
        )

    def kernel_scores(
        self, encoded: Sequence[EncodedList], *, n_threads: int | None = None
    ) -> list[list[Float64]]:
        """The kernel's score of every part: for each list and type float64[p]."""
        by_type = [[np.zeros(len(p.slots)) for p in item.kernel] for item in encoded]
        self._scorer.add_scores(
            [item.sentence.nodes for item in encoded],
            [[parts.slots for parts in item.kernel] for item in encoded],
            by_type,
            n_threads=n_threads,
        )
        return by_type

    def manual_scores(
        self, encoded: Sequence[EncodedList], i: int, *, n_threads: int | None = None
    ) -> list[Float64]:
        """The manual features' score of every part of the i-th type: for each list float64[p]."""
        assert self.weights is not None
        part_scores = [np.zeros(len(item.manual[i].rows)) for item in encoded]
        add_scores(
            [item.sentence.fields for item in encoded],
            [item.manual[i].rows for item in encoded],
            self.settings.manual_parts[i],
            self.weights,
            part_scores,
            n_threads=n_threads,
        )
        return part_scores

    def final_scores(
        self, sentence: Sentence, candidates: CandidateList, *, n_threads: int | None = None
    ) -> Float64:
        """The final system's score of every candidate: float64[k].

        The best of them need not be what is chosen: `decide` may add repaired trees.
        """
        final = self.combined(candidates, self.scores(sentence, candidates, n_threads=n_threads))
        return self.penalized(sentence, candidates, final)

    def combined(self, candidates: CandidateList, scores: Float64) -> Float64:
        """The final scores without penalties from the reranker's own ones, float64[k]."""
        return scores if self.combination is None else self.combination.final(candidates, scores)

    def penalized(self, sentence: Sentence, candidates: CandidateList, scores: Float64) -> Float64:
        """The final scores from those without penalties, float64[k]."""
        if not self.penalties.weights:
            return scores
        (counts,) = count_kinds([candidates], [word_facts(sentence)], self.penalties.weights)
        return self._penalized(counts, scores)

    def _penalized(self, counts: NDArray[np.int32], scores: Float64) -> Float64:
        return scores - self.penalties.of_counts(counts)

    def decide(
        self,
        sentence: Sentence,
        candidates: CandidateList,
        scores: Float64 | None = None,
        *,
        well_formed: bool = False,
        n_threads: int | None = None,
    ) -> Decision:
        """The choice among the trees of a completed list.

        With penalties, repaired trees join a list whose best tree would have some.
        scores: the reranker's own, where they are known.
        well_formed: repaired trees join a list whose best tree breaks any constraint, and of all
            those alone may be chosen that break the fewest.
        """
        if scores is None:
            scores = self.scores(sentence, candidates, n_threads=n_threads)
        (decision,) = self.decide_all(
            [(sentence, candidates)], [scores], well_formed=well_formed, n_threads=n_threads
        )
        return decision

    def decide_all(
        self,
        pairs: Sequence[Pair],
        scores: Sequence[Float64],
        *,
        well_formed: bool = False,
        n_threads: int | None = None,
    ) -> list[Decision]:
        """As `decide`, for the completed lists of several sentences in one go.

        scores: the reranker's own, float64[k] of each list.
        """
        finals = [self.combined(trees, own) for (_, trees), own in zip(pairs, scores, strict=True)]
        kinds = KINDS if well_formed else tuple(self.penalties.weights)
        if not kinds:
            return [
                Decision(trees, final, np.ones(len(trees), dtype=np.bool_))
                for (_, trees), final in zip(pairs, finals, strict=True)
            ]
        facts = [word_facts(sentence) for sentence, _ in pairs]
        counts = count_kinds([trees for _, trees in pairs], facts, kinds)
        found = [
            repaired_list(trees, final, words, kinds) if own[final.argmax()].any() else (trees, [])
            for (_, trees), final, words, own in zip(pairs, finals, facts, counts, strict=True)
        ]
        grown = [i for i, (_, repairs) in enumerate(found) if repairs]
        longer = count_kinds([found[i][0] for i in grown], [facts[i] for i in grown], kinds)
        for i, own_counts in zip(grown, longer, strict=True):
            counts[i] = own_counts
        again = self.batch_scores([(pairs[i][0], found[i][0]) for i in grown], n_threads=n_threads)
        for i, own in zip(grown, again, strict=True):
            finals[i] = self.combined(found[i][0], own)
        decisions = []
        penalized = [kinds.index(kind) for kind in self.penalties.weights]
        for (trees, repairs), final, own_counts in zip(found, finals, counts, strict=True):
            eligible = np.ones(len(trees), dtype=np.bool_)
            if well_formed:
                broken = own_counts.sum(axis=1)
                eligible = broken == broken.min()
            if penalized:
                final = self._penalized(np.ascontiguousarray(own_counts[:, penalized]), final)
            decisions.append(Decision(trees, final, eligible, repairs))
        return decisions

    def confidence(
        self,
        candidates: CandidateList,
        final: Float64,
        row: int | None = None,
        *,
        arcs: Float64 | None = None,
    ) -> Confidence | None:
        """How sure a choice is; None for a model without calibration.

        candidates: a completed list, such as a decision's.  final: float64[k], its final scores.
        row: of the candidate, by default the best.
        arcs: float64[n, 2], how likely its arcs are to the parsers (see `kbest.arc_probabilities`),
            where that is known.
        """
        if self.calibration is None:
            return None
        return self.calibration.confidence(candidates, final, row, arcs=arcs)

    def confidences(
        self, decided: Sequence[tuple[Sentence, Decision]], arcs: ArcProbabilities | None = None
    ) -> list[Confidence | None]:
        """How sure the choices for some sentences are; None each without calibration.

        arcs: how likely the parsers find any arcs, where they can be asked.
        """
        calibration = self.calibration
        if calibration is None:
            return [None] * len(decided)
        likely: Sequence[Float64 | None] = [None] * len(decided)
        if arcs is not None and calibration.informed:
            likely = arcs([decision.chosen(sentence) for sentence, decision in decided])
        choices = [(made.candidates, made.final, made.row) for _, made in decided]
        return list(calibration.confidences(choices, likely))

    def choices(
        self,
        pairs: Iterable[Pair],
        *,
        n_threads: int | None = None,
        batch_size: int = 128,
        well_formed: bool = False,
    ) -> Generator[tuple[Sentence, CandidateList, int], None, None]:
        """Each sentence with the list and the row that are decided for; see `decisions`."""
        found = self.decisions(
            pairs, n_threads=n_threads, batch_size=batch_size, well_formed=well_formed
        )
        with closing(found):
            for sentence, decision in found:
                yield sentence, decision.candidates, decision.row

    def decisions(
        self,
        pairs: Iterable[Pair],
        *,
        n_threads: int | None = None,
        batch_size: int = 128,
        well_formed: bool = False,
    ) -> Generator[tuple[Sentence, Decision], None, None]:
        """Each sentence with the choice among its list, which is completed first, streaming.

        well_formed: see `decide`.
        Where more than one thread may be used, the next batch is read and encoded in a thread of
        its own while one is scored and its sentences are worked on: it alone runs `pairs` then.
        """
        batches = self._encoded_batches(pairs, batch_size)
        if effective_n_threads(n_threads) > 1:
            batches = made_ahead(batches)
        with closing(batches):
            for batch, lists in batches:
                scores = self.encoded_scores(lists, n_threads=n_threads)
                decided = self.decide_all(
                    batch, scores, well_formed=well_formed, n_threads=n_threads
                )
                yield from zip((sentence for sentence, _ in batch), decided, strict=True)

    def _encoded_batches(
        self, pairs: Iterable[Pair], batch_size: int
    ) -> Generator[tuple[list[Pair], list[Any]], None, None]:
        for given in in_batches(pairs, lambda pair: pair[1].heads.size, most=batch_size):
            batch = self.completed_all(given)
            yield batch, self.encode_all(batch)

    # Explanations

    def explain(
        self,
        sentence: Sentence,
        candidates: CandidateList,
        *,
        tree: tuple[Sequence[int], Sequence[str]] | None = None,
        most: int = EXAMPLES_TOLD,
        well_formed: bool = False,
        n_threads: int | None = None,
    ) -> Explanation:
        """Why the best tree of a list scores more than the next best, or than another one of it.

        candidates: as the parsers made it, with the scores in `needed_sources`; of a list that is
            completed already, the combiner's score is told for the whole tree, not for each arc.
        tree: heads and labels of the tree to compare with; None for the next best, as where it is
            the best itself.
        most: support parts that are told of each differing arc.
        well_formed: explain the choice of the best-formed trees alone; see `decide`.
        Raises ValueError where the tree is not in the completed list.
        """
        return explain(
            self, sentence, candidates,
            tree=tree, most=most, well_formed=well_formed, n_threads=n_threads,
        )  # fmt: skip

    # Storage

    @property
    def provenance(self) -> Provenance:
        """What the model was made from: `about`, typed; strange values are taken as missing."""
        if self._provenance is None:
            object.__setattr__(self, "_provenance", Provenance.from_dict(self.about, strict=False))
        assert self._provenance is not None
        return self._provenance

    def to_files(self) -> dict[str, bytes]:
        """The model as named files."""
        more = {
            "combination": self.combination.to_dict() if self.combination else None,
            "list_features": self._list_features_to_dict(),
            "combiner": self.combiner.to_dict() if self.combiner else None,
            "support_parts": {name: len(parts) for name, parts in self.support.types.items()},
            **self.about,
        }
        if self.calibration is not None:
            more["calibration"] = self.calibration.to_dict()
        if self.cascade is not None:
            more["cascade"] = self.cascade.to_dict()
        version = BEFORE_EXPLICIT
        if self.kernel_map is not None:
            more["kernel_map"] = self.kernel_map.to_dict()
        if self.explicit is not None:
            more["explicit"], version = explicit_to_dict(self.explicit), BEFORE_PENALTIES
        if self.penalties.weights:
            more["penalties"], version = self.penalties.to_dict(), self.VERSION
        files = {
            META: self._meta(self.settings.to_dict(), more, version=version),
            SCHEMA: srsly.msgpack_dumps(self.schema.to_dict()),
            SUPPORT: to_npz(self.support.to_arrays()),
        }
        if self.weights is not None:
            files[WEIGHTS] = to_npz(sparse("", self.weights))
        if self.combiner is not None:
            files[COMBINER_WEIGHTS] = to_npz(sparse("", self.combiner.hashed))
        if self.kernel_map is not None:
            files[KERNEL_MAP] = to_npz(self.kernel_map.to_arrays())
        if self.explicit is not None:
            files[EXPLICIT] = to_npz(self.explicit.to_arrays())
        if self.examples is not None:
            files[EXAMPLES] = to_npz(self.examples.to_arrays())
        return files

    def _list_features_to_dict(self) -> dict[str, Any] | None:
        if self.list_features is None or self.list_weights is None:
            return None
        names, weights = self.list_features.names, self.list_weights.tolist()
        return self.list_features.to_dict() | {"weights": dict(zip(names, weights, strict=True))}

    @classmethod
    def _read_files(cls, files: Mapping[str, bytes], meta: dict[str, Any]) -> Self:
        """The inverse of `to_files`; see `StoredModel`."""
        stored = dict(stored_table(stored_entry(meta, "settings", META), "settings"))
        if meta["format_version"] == 1:
            stored["list_features"] = []
        if meta["format_version"] < 3:
            stored["combiner"] = False
        settings = Settings.from_dict(stored)
        combination = None
        if stored_entry(meta, "combination", META) is not None:
            combination = Combination.from_dict(meta["combination"])
        for name, file in OF_FILES.items():
            if file in files and meta.get(name) is None:
                raise ValueError(f"{name!r} is missing, but there is {file}")
        if meta["format_version"] > BEFORE_PENALTIES:
            stored_entry(meta, "penalties", META)
        is_explicit = meta.get("explicit") is not None
        list_features, list_weights = None, None
        if not is_explicit:
            list_features, list_weights = _read_list_features(meta.get("list_features"), settings)
        combiner = None
        if (data := meta.get("combiner")) is not None:
            arrays = read_npz(files, COMBINER_WEIGHTS)
            with reading(COMBINER_WEIGHTS):
                hashed = dense(arrays, "", 1 << BITS, kind=np.float64)
            combiner = ArcCombiner.from_dict(data, hashed)
        weights = None
        if settings.manual_parts and not is_explicit:
            arrays = read_npz(files, WEIGHTS)
            with reading(WEIGHTS):
                weights = dense(arrays, "", 1 << settings.bits, kind=np.float64)
        kernel_map = None
        if meta.get("kernel_map") is not None:
            arrays = read_npz(files, KERNEL_MAP)
            with reading(KERNEL_MAP):
                kernel_map = KernelMap.from_stored(meta["kernel_map"], arrays)
        penalties = Penalties.from_dict(meta.get("penalties", {}))
        calibration = None
        if meta.get("calibration") is not None:
            calibration = Calibration.from_dict(meta["calibration"])
        sources = _check_sources(combination, list_features, combiner, calibration)
        cascade = None
        if meta.get("cascade") is not None:
            cascade = Cascade.from_dict(meta["cascade"])
            _check_quick(cascade, sources)
        schema = read_schema(files, SCHEMA)
        explicit = None
        if is_explicit:
            arrays = read_npz(files, EXPLICIT)
            with reading(EXPLICIT):
                explicit = read_explicit(meta["explicit"], arrays, schema)
        arrays = read_npz(files, SUPPORT)
        with reading(SUPPORT):
            support = Support.from_arrays(
                arrays, settings.kernel_parts, n_properties=len(schema.properties)
            )
        examples = None
        if EXAMPLES in files:
            arrays = read_npz(files, EXAMPLES)
            with reading(EXAMPLES):
                examples = Examples.from_arrays(arrays)
                examples.check(support)
        return cls(
            schema=schema,
            settings=settings,
            support=support,
            weights=weights,
            list_features=list_features,
            list_weights=list_weights,
            kernel_map=kernel_map,
            explicit=explicit,
            combination=combination,
            combiner=combiner,
            penalties=penalties,
            calibration=calibration,
            cascade=cascade,
            examples=examples,
            about=cls._about(
                meta,
                "combination",
                "support_parts",
                "list_features",
                "combiner",
                "penalties",
                "calibration",
                "cascade",
                "kernel_map",
                "explicit",
            ),
        )


def _read_list_features(
    data: Mapping[str, Any] | None, settings: Settings
) -> tuple[ListFeatures | None, Float64 | None]:
    if data is None and not settings.list_features:
        return None, None
    if data is None:
        raise ValueError("the weights of the list's features are missing")
    features = ListFeatures.from_dict(data)
    weights = stored_numbers(
        stored_entry(data, "weights", "list_features"), "list_features.weights"
    )
    if features.names != list(weights):
        raise ValueError("the list's features and their weights do not fit together")
    return features, np.array(list(weights.values()), dtype=np.float64)


def _check_sources(
    combination: Combination | None,
    list_features: ListFeatures | None,
    combiner: ArcCombiner | None,
    calibration: Calibration | None,
) -> set[str]:
    """The sources that a model knows; raises ValueError unless all its parts have the same."""
    of_parts: dict[str, Iterable[str]] = {}
    if combination is not None:
        of_parts["combination"] = combination.betas
    if list_features is not None:
        of_parts["list_features"] = list_features.scales
    if combiner is not None:
        of_parts["combiner"] = (*combiner.features.scales, COMBINER)
    if calibration is not None:
        of_parts["calibration"] = calibration.scales
    first, *others = of_parts or {"": ()}
    for name in others:
        check_same(of_parts[name], of_parts[first], f"the sources of {name}")
    return {*of_parts.get(first, ())}


def _check_quick(cascade: Cascade, sources: set[str]) -> None:
    """Raises ValueError unless the quick parsers are some of a model's, but not all."""
    parsers = sources - {COMBINER}
    if not {*cascade.quick} < parsers:
        raise ValueError(
            f"cascade.quick is {shown(list(cascade.quick))}, expected some of {sorted(parsers)}, "
            "not all"
        )
