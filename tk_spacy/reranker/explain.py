"""Why one tree of a list scores more than another: its score by arcs and components, and examples.

The scores are split by `score_split`, the examples found by `influences`; here are the two trees
that are compared, the arcs in which they differ, and all of it as one value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from tk_spacy.evaluation.well_formed import word_facts
from tk_spacy.features.encoder import PartLists
from tk_spacy.features.schema import Schema
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.well_formed import list_violations
from tk_spacy.kernels.support import Support
from tk_spacy.reranker.examples import Examples
from tk_spacy.reranker.influences import Influence, InfluenceFinder
from tk_spacy.reranker.score_split import MODIFIER, SplitModel, scale_of, split_scores
from tk_spacy.selection.shares import feature_shares
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.array_types import Int32

Role = Literal["winner", "runner-up", "given"]
EXAMPLES = 3
"""Support parts that are told of each arc."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTree:
    """A tree and its score.

    role: in the comparison.  rank: by the final score, from 1 on; trees that may not be chosen,
    as they are not well-formed enough, come after all others.  heads, deprels: of the n words.
    score: the final one.  by_arc: by component what it gives the arc into each word.  by_tree: by
    component what it gives the tree as a whole.  They sum to the score.
    violations: how often it breaks which constraints of well-formed trees.
    details: by its name, what each feature of the list gives (summed in by_tree).
    selected: the same of each selected feature that the tree has, where features were selected in
    the kernel's place (summed in by_arc or by_tree).
    """

    role: Role
    rank: int
    heads: tuple[int, ...]
    deprels: tuple[str, ...]
    score: float
    violations: Mapping[str, int]
    by_arc: Mapping[str, tuple[float, ...]]
    by_tree: Mapping[str, float]
    details: Mapping[str, float]
    selected: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "role": self.role,
            "rank": self.rank,
            "heads": list(self.heads),
            "deprels": list(self.deprels),
            "score": self.score,
            "violations": dict(self.violations),
            "by_arc": {name: list(values) for name, values in self.by_arc.items()},
            "by_tree": dict(self.by_tree),
            "list_features": dict(self.details),
            "selected_features": dict(self.selected),
        }


@dataclass(frozen=True, slots=True)
class DifferingArc:
    """A word whose arc differs between the two trees, and the examples behind its kernel scores.

    word: from 1.  influences: of the arc in either tree, the strongest support parts.
    """

    word: int
    influences: tuple[tuple[Influence, ...], tuple[Influence, ...]]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "word": self.word,
            "influences": [[item.to_dict() for item in own] for own in self.influences],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the winner of a list scores more than another tree.

    sent_id, forms, upos: of the sentence.  n_candidates: trees compared.  trees: the winner and the
    other; the winner alone where the list has no other tree.  given_wins: whether the winner is the
    tree that was given to compare with, and the other the runner-up for that reason.
    arcs: those that differ, in the order of the words.  has_examples: whether the model keeps the
    sentences that it learnt from.
    """

    sent_id: str | None
    forms: tuple[str, ...]
    upos: tuple[str, ...]
    n_candidates: int
    trees: tuple[ExplainedTree, ...]
    arcs: tuple[DifferingArc, ...]
    has_examples: bool
    given_wins: bool = False

    @property
    def differing(self) -> tuple[int, ...]:
        """The words, from 1, whose arcs differ."""
        return tuple(arc.word for arc in self.arcs)

    def components(self) -> list[tuple[str, str, tuple[float, ...]]]:
        """Each component's name, where it counts, and what it gives each of the trees.

        Where: "the differing arcs", "the other arcs" or "the whole tree"; together, the scores.
        """
        differing = {word - 1 for word in self.differing}
        rows = []
        for name in self.trees[0].by_arc:
            for where, counts in (("the differing arcs", True), ("the other arcs", False)):
                sums = tuple(
                    math.fsum(
                        value
                        for i, value in enumerate(tree.by_arc[name])
                        if (i in differing) == counts
                    )
                    for tree in self.trees
                )
                rows.append((name, where, sums))
        for name in self.trees[0].by_tree:
            rows.append((name, "the whole tree", tuple(tree.by_tree[name] for tree in self.trees)))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "sent_id": self.sent_id,
            "forms": list(self.forms),
            "upos": list(self.upos),
            "n_candidates": self.n_candidates,
            "trees": [tree.to_dict() for tree in self.trees],
            "arcs": [arc.to_dict() for arc in self.arcs],
            "has_examples": self.has_examples,
            "given_wins": self.given_wins,
        }


def find_row(candidates: CandidateList, heads: Sequence[int], deprels: Sequence[str]) -> int:
    """The row of a tree in a list.  Raises ValueError where it is not there."""
    labels = candidates.inventory.encode(deprels, add=False)
    wanted = np.array(heads, dtype=np.int32)
    if len(wanted) != candidates.n_words or len(labels) != candidates.n_words:
        raise ValueError(
            f"the tree has {len(wanted)} heads and {len(labels)} labels, the sentence has "
            f"{candidates.n_words} words"
        )
    return candidates.row_of(wanted, labels)


class ExplainedModel(SplitModel, Protocol):
    """What a reranker has to tell for explanations; see `Reranker`."""

    @property
    def schema(self) -> Schema:
        """Properties and values."""
        ...

    @property
    def support(self) -> Support:
        """The kernel's support parts."""
        ...

    @property
    def examples(self) -> Examples | None:
        """The sentences that they came from."""
        ...


def explain(
    model: ExplainedModel,
    sentence: Sentence,
    candidates: CandidateList,
    *,
    tree: tuple[Sequence[int], Sequence[str]] | None = None,
    most: int = EXAMPLES,
    well_formed: bool = False,
    n_threads: int | None = None,
) -> Explanation:
    """Why the best tree of a list scores more than another one; see `Reranker.explain`."""
    split = split_scores(model, sentence, candidates, well_formed=well_formed, n_threads=n_threads)
    decision, among = split.decision, split.decision.candidates
    order = decision.order
    rows: list[tuple[int, Role]] = [(order[0], "winner")]
    other = order[0] if tree is None else find_row(among, *tree)
    if other != order[0]:
        rows.append((other, "given"))
    elif decision.eligible.sum() > 1:
        rows.append((order[1], "runner-up"))
    selected: list[dict[str, float]] = [{} for _ in rows]
    if model.explicit is not None:
        scale = scale_of(model.combination)
        selected = [
            {name: share / scale for name, share in own.items()}
            for own in feature_shares(model.explicit, sentence, among, [row for row, _ in rows])
        ]
    broken = list_violations(among, word_facts(sentence)).at
    trees = tuple(
        ExplainedTree(
            role=role,
            rank=order.index(row) + 1,
            heads=tuple(among.heads[row].tolist()),
            deprels=among.deprels(row),
            score=float(decision.final[row]),
            violations={kind: n for kind, at in broken.items() if (n := int(at[row].sum()))},
            by_arc={name: tuple(part[row].tolist()) for name, part in split.scores.by_arc.items()},
            by_tree={name: float(part[row]) for name, part in split.scores.by_tree.items()},
            details={name: float(part[row]) for name, part in split.details.items()},
            selected=own,
        )
        for (row, role), own in zip(rows, selected, strict=True)
    )
    arcs: tuple[DifferingArc, ...] = ()
    if len(rows) > 1:
        pair = rows[0][0], rows[1][0]
        arcs = _differing_arcs(model, sentence, among, pair, most=most)
    return Explanation(
        sent_id=sentence.sent_id,
        forms=sentence.forms,
        upos=sentence.upos,
        n_candidates=len(among),
        trees=trees,
        arcs=arcs,
        has_examples=model.examples is not None,
        given_wins=tree is not None and other == order[0],
    )


def _differing_arcs(
    model: ExplainedModel,
    sentence: Sentence,
    candidates: CandidateList,
    rows: tuple[int, int],
    *,
    most: int,
) -> tuple[DifferingArc, ...]:
    """The arcs in which two trees of a completed list differ, and the examples behind them."""
    first, second = rows
    differs = candidates.heads[first] != candidates.heads[second]
    differs |= candidates.labels[first] != candidates.labels[second]
    words = (np.flatnonzero(differs) + 1).tolist()
    if not len(model.support):
        return tuple(DifferingArc(word, ((), ())) for word in words)
    encoded = model.encode(sentence, candidates)
    kernel = dict(zip(model.settings.kernel_parts, encoded.kernel, strict=True))
    scale = scale_of(model.combination)
    finder = InfluenceFinder(model.support, model.schema, model.examples, scale=scale)
    arcs = []
    for word in words:
        parts = [_parts_of(kernel, row, word) for row in rows]
        found = [
            tuple(finder.strongest(sentence, encoded.sentence.nodes, own, most)) for own in parts
        ]
        arcs.append(DifferingArc(word, (found[0], found[1])))
    return tuple(arcs)


def _parts_of(kernel: Mapping[str, PartLists], row: int, word: int) -> list[tuple[str, Int32]]:
    """The contested parts of a tree whose modifier is a word: their types and slot forms."""
    found = []
    for name, parts in kernel.items():
        members = parts.members[parts.starts[row] : parts.starts[row + 1]]
        for i in members[parts.rows[members, MODIFIER] == word].tolist():
            found.append((name, parts.slots[i]))
    return found
