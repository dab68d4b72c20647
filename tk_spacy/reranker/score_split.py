"""Final scores, split into what each component gives, arc by arc where it is a sum over arcs.

Source: Taub-Tabib et al. 2015, equation 2 (the reranker's score is a sum over parts) and section 5
(the final score is a sum over parsers and reranker).  What belongs to which arc is ours:

- an arc part belongs to its arc; a part of several words (sibling, grandparent and larger ones)
  to the arc into its modifier, m in `part_types`;
- the combiner's log-probability of a tree is a sum over arcs;
- frames and spans, the parsers' scores, the features of the list, selected features that are no
  combinations of a part's properties, and penalties on what is ill-formed, belong to the tree as a
  whole.

Only contested parts count: what all trees of the list share adds nothing to any score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tk_spacy.ensemble.combiner.model import COMBINER, ArcCombiner
from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.features.encoder import EncodedList, PartLists
from tk_spacy.features.list_features import ListFeatures
from tk_spacy.features.part_types import ROLES
from tk_spacy.features.templates import FRAME, SPAN
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.parallel.threads import effective_n_threads
from tk_spacy.reranker.decision import Decision
from tk_spacy.reranker.interpolation import Combination
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.reranker.settings import Settings
from tk_spacy.selection.combinations.model import CombinationModel
from tk_spacy.selection.explicit import ExplicitModel
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Float64, Int32

MODIFIER = ROLES.index("m")
OF_TREES = (FRAME, SPAN)
"""Types of parts that have no modifier."""
KERNEL, MANUAL, LIST, SELECTED = "kernel", "manual features", "features of the list", "selected"
COMBINED = "combiner"
PENALTIES = "penalties"


def parser_component(source: str) -> str:
    """What the share of a parser's score is called."""
    return f"score of {source}"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSplit:
    """The final scores of the k trees of a list over n words, split.

    by_arc: by component float64[k, n], what it gives the arc into each word.  by_tree: by component
    float64[k], what it gives each tree beside that.  All in units of the final score: the sum of
    a tree's values is its final score.
    """

    by_arc: Mapping[str, Float64]
    by_tree: Mapping[str, Float64]

    def total(self, row: int) -> float:
        """The final score of a tree, summed exactly and rounded once."""
        arcs = (value for part in self.by_arc.values() for value in part[row].tolist())
        return math.fsum((*arcs, *(float(part[row]) for part in self.by_tree.values())))


class SplitModel(Protocol):
    """What a reranker has to tell of its scores; see `Reranker`."""

    @property
    def settings(self) -> Settings:
        """Names of the part types."""
        ...

    @property
    def weights(self) -> Float64 | None:
        """Of the manual features."""
        ...

    @property
    def list_features(self) -> ListFeatures | None:
        """What the list says of a candidate."""
        ...

    @property
    def list_weights(self) -> Float64 | None:
        """Their weights."""
        ...

    @property
    def explicit(self) -> ExplicitModel | None:
        """What may be in the place of kernel, manual features and features of the list."""
        ...

    @property
    def combination(self) -> Combination | None:
        """With the parsers' scores."""
        ...

    @property
    def combiner(self) -> ArcCombiner | None:
        """Of arcs."""
        ...

    @property
    def penalties(self) -> Penalties:
        """On ill-formed trees."""
        ...

    @property
    def has_kernel(self) -> bool:
        """Whether `kernel_scores` are a part of the scores."""
        ...

    def completed(self, sentence: Sentence, candidates: CandidateList) -> CandidateList:
        """The list with what the combiner adds."""
        ...

    def decide(
        self,
        sentence: Sentence,
        candidates: CandidateList,
        *,
        well_formed: bool = False,
        n_threads: int | None = None,
    ) -> Decision:
        """The choice among the trees of such a list."""
        ...

    def encode(self, sentence: Sentence, candidates: CandidateList) -> Any:
        """What the scores are made of."""
        ...

    def kernel_scores(
        self, encoded: Sequence[EncodedList], *, n_threads: int | None = None
    ) -> list[list[Float64]]:
        """For each list and part type float64[p]."""
        ...

    def manual_scores(
        self, encoded: Sequence[EncodedList], i: int, *, n_threads: int | None = None
    ) -> list[Float64]:
        """For each list float64[p], of the parts of the i-th type."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SplitList:
    """The choice among a list, with the final scores split.

    details: by the name of each feature of the list float64[k], what it gives, in units of the
    final score.
    """

    decision: Decision
    scores: ScoreSplit
    details: Mapping[str, Float64]


def scale_of(combination: Combination | None) -> float:
    """What a reranker's own scores are divided by in the final ones."""
    return 1.0 if combination is None else combination.reranker_scale


def split_scores(
    model: SplitModel,
    sentence: Sentence,
    candidates: CandidateList,
    *,
    well_formed: bool = False,
    n_threads: int | None = None,
) -> SplitList:
    """Decide for a tree of a list, and split the final scores of all its trees.

    candidates, well_formed: see `Reranker.explain`.
    """
    n_threads = effective_n_threads(n_threads)
    completed = model.completed(sentence, candidates)
    decision = model.decide(sentence, completed, well_formed=well_formed, n_threads=n_threads)
    by_arc, by_tree = _split_sources(model, sentence, candidates, completed, decision)
    if model.penalties.weights:
        # 0 minus it: no "-0.0" where there is none.
        by_tree[PENALTIES] = 0.0 - model.penalties.of(decision.candidates, word_facts(sentence))
    encoded = model.encode(sentence, decision.candidates)
    shape, scale = decision.candidates.heads.shape, scale_of(model.combination)
    details: dict[str, Float64] = {}
    if isinstance(model.explicit, CombinationModel):
        scores = [own[0] for own in model.explicit.part_scores([encoded], n_threads=n_threads)]
        names = [of_type.name for of_type in model.explicit.space.types]
        of_arcs, _ = split_parts(names, encoded.kernel, scores, shape=shape)
        by_arc[SELECTED] = of_arcs / scale
        return SplitList(decision, ScoreSplit(by_arc, by_tree), details)
    if model.explicit is not None:
        by_tree[SELECTED] = model.explicit.scores([encoded], n_threads=n_threads)[0] / scale
        return SplitList(decision, ScoreSplit(by_arc, by_tree), details)
    if model.has_kernel:
        (scores,) = model.kernel_scores([encoded], n_threads=n_threads)
        of_arcs, _ = split_parts(model.settings.kernel_parts, encoded.kernel, scores, shape=shape)
        by_arc[KERNEL] = of_arcs / scale
    if model.weights is not None:
        names = list(model.settings.manual_parts)
        scores = [
            model.manual_scores([encoded], i, n_threads=n_threads)[0] for i in range(len(names))
        ]
        of_arcs, of_trees = split_parts(names, encoded.manual, scores, shape=shape)
        by_arc[MANUAL] = of_arcs / scale
        for name, share in of_trees.items():
            by_tree[f"{MANUAL}: {name}"] = share / scale
    if model.list_features is not None and model.list_weights is not None:
        given = encoded.listed * model.list_weights / scale
        details = dict(zip(model.list_features.names, given.T, strict=True))
        by_tree[LIST] = np.array([math.fsum(row) for row in given.tolist()])
    return SplitList(decision, ScoreSplit(by_arc, by_tree), details)


def _split_sources(
    model: SplitModel,
    sentence: Sentence,
    candidates: CandidateList,
    completed: CandidateList,
    decision: Decision,
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """What the parsers and the combiner give, by arc and by tree."""
    by_arc: dict[str, Float64] = {}
    by_tree: dict[str, Float64] = {}
    combination = model.combination
    if combination is None:
        return by_arc, by_tree
    for source, share in combination.shares(decision.candidates).items():
        if source != COMBINER:
            by_tree[parser_component(source)] = share
        elif model.combiner is None or candidates is completed:
            by_tree[COMBINED] = share
        else:
            heads, labels, changes = _origins(completed, decision)
            scores = model.combiner.arc_scores(sentence, candidates, heads, labels)
            by_arc[COMBINED] = combination.factor(source) * (scores + changes)
    return by_arc, by_tree


def _origins(completed: CandidateList, decision: Decision) -> tuple[Int32, Int32, Float64]:
    """The trees whose arcs the combiner has scored, and what repairs changed in these scores.

    Heads and labels int32[k, n], where a tree is a repaired one those of the tree that it was, and
    float64[k, n].
    """
    trees = decision.candidates
    heads, labels, changes = trees.heads.copy(), trees.labels.copy(), np.zeros(trees.heads.shape)
    for repair in decision.repairs:
        row = trees.row_of(repair.heads, repair.labels)
        heads[row], labels[row] = completed.heads[repair.origin], completed.labels[repair.origin]
        changes[row] = repair.changes
    return heads, labels, changes


def add_to_arcs(scores: Float64, parts: PartLists, out: Float64) -> None:
    """Add the scores of parts to the arcs into their modifiers.

    scores: float64[p].  out: float64[k, n].
    """
    words = parts.rows[:, MODIFIER] - 1
    for row in range(len(out)):
        members = parts.members[parts.starts[row] : parts.starts[row + 1]]
        np.add.at(out[row], words[members], scores[members])


def tree_sums(scores: Float64, parts: PartLists) -> Float64:
    """The summed scores of each tree's parts: float64[k]."""
    return np.array(
        [
            math.fsum(scores[parts.members[start:stop]].tolist())
            for start, stop in zip(parts.starts[:-1], parts.starts[1:], strict=True)
        ]
    )


def split_parts(
    names: Sequence[str],
    lists: Sequence[PartLists],
    scores: Sequence[Float64],
    *,
    shape: tuple[int, int],
) -> tuple[Float64, dict[str, Float64]]:
    """The scores of parts by arc, float64[k, n], and those of parts of trees by their type.

    names, lists, scores: of each part type its name, its parts and their scores, float64[p].
    """
    of_arcs, of_trees = np.zeros(shape), {}
    for name, parts, values in zip(names, lists, scores, strict=True):
        if name in OF_TREES:
            of_trees[name] = tree_sums(values, parts)
        else:
            add_to_arcs(values, parts, of_arcs)
    return of_arcs, of_trees
