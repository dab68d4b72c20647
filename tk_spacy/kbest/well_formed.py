"""Candidates that break fewer constraints: which do, and repaired copies of those that do not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.repairs import Repairing
from tk_spacy.kbest.scores import filled
from tk_spacy.trees.constraints import (
    KINDS,
    Violations,
    WordFacts,
    constraint_rules,
    count_violations_of_lists,
    kind_bits,
    relation_numbers,
    violations,
)
from tk_spacy.utils.array_types import Float64, Int32

REPAIRED = 3
"""Of the best trees of a list, how many are repaired."""
MOST_CHANGES = 12
"""Changes of a tree that is repaired, at most."""
UNSEEN = 0.5
"""What an arc counts that no candidate has."""


class Repair(NamedTuple):
    """A copy of a candidate, changed so that it breaks fewer constraints.

    heads, labels: int32[n].  origin: row of the candidate.  changes: float64[n], for each word the
    log-ratio of how many candidates have its new arc and how many its old one, 0 where it is the
    same.
    """

    heads: Int32
    labels: Int32
    origin: int
    changes: Float64


def list_violations(candidates: CandidateList, words: WordFacts) -> Violations:
    """Where each candidate breaks constraints."""
    return violations(candidates.heads, candidates.labels, candidates.inventory.names, words)


def count_kinds(
    lists: Sequence[CandidateList],
    words: Sequence[WordFacts],
    kinds: Collection[str] = KINDS,
) -> list[NDArray[np.int32]]:
    """How often the candidates of several lists have each kind of violation: int32[k, kinds]."""
    relations = {item.inventory: relation_numbers(tuple(item.inventory.names)) for item in lists}
    return count_violations_of_lists(
        [item.heads for item in lists],
        [item.labels for item in lists],
        [relations[item.inventory] for item in lists],
        words,
        kinds,
    )


def count_broken(
    candidates: CandidateList, words: WordFacts, kinds: Collection[str] = KINDS
) -> NDArray[np.int64]:
    """How many constraints of these kinds each candidate breaks: int64[k]."""
    return list_violations(candidates, words).counts(kinds).sum(axis=1, dtype=np.int64)


def best_formed(candidates: CandidateList, words: WordFacts) -> NDArray[np.bool_]:
    """Which candidates break the fewest constraints: bool[k]."""
    broken = count_broken(candidates, words)
    return np.asarray(broken == broken.min())


def best_formed_list(candidates: CandidateList, words: WordFacts) -> CandidateList:
    """The candidates that break the fewest constraints, repaired ones among them.

    The best of them is the new list's base.
    """
    repairs = needed_repairs(candidates, filled(candidates.scores[:, 0]), words)
    longer = with_repairs(candidates, repairs)
    kept = best_formed(longer, words)
    return CandidateList.from_arrays(
        longer.heads[kept],
        longer.labels[kept],
        longer.scores[kept],
        inventory=longer.inventory,
        sources=longer.sources,
    )


def needed_repairs(
    candidates: CandidateList,
    scores: Float64,
    words: WordFacts,
    kinds: Collection[str] = KINDS,
) -> list[Repair]:
    """Repaired copies of the REPAIRED best trees, where the best breaks constraints of these kinds.

    scores: float64[k], by which trees are the best.
    In a copy one word after the other gets the arc after which the fewest violations are left, of
    such arcs the one that the most candidates have.  It may get the arcs that candidates give it,
    and its label with other heads: its neighbours, and the words above its head and above these.
    """
    names = tuple(candidates.inventory.names)
    repairing = Repairing(
        candidates.heads, candidates.labels, relation_numbers(names), words.misfits, words.flags,
        constraint_rules(), kind_bits(kinds),
    )  # fmt: skip
    if not repairing.is_broken(int(scores.argmax())):
        return []
    known = {_key(*tree) for tree in zip(candidates.heads, candidates.labels, strict=True)}
    ranks = _ranks(names)
    found = []
    for row in np.argsort(-scores, kind="stable")[:REPAIRED].tolist():
        heads, labels, changed = repairing.repaired(row, ranks, UNSEEN, MOST_CHANGES)
        key = _key(heads, labels)
        if key in known:  # as a tree is that nothing mends
            continue
        known.add(key)
        changes = np.zeros(len(heads))
        for word, share, before in changed:
            changes[word] += np.log(share / max(before, UNSEEN))
        found.append(Repair(heads, labels, row, changes))
    return found


def with_repairs(
    candidates: CandidateList, repairs: Sequence[Repair], *, by_share: str | None = None
) -> CandidateList:
    """The list with repaired trees; itself where there are none.

    A copy has the scores of its tree, except that of the source `by_share`, a log-probability,
    which goes down as the new arcs' shares of the candidates do.
    """
    if not repairs:
        return candidates
    scores = candidates.scores[[repair.origin for repair in repairs]]
    if by_share in candidates.sources:
        column = candidates.sources.index(by_share)
        scores[:, column] += [repair.changes.sum() for repair in repairs]
    return CandidateList.from_arrays(
        np.concatenate([candidates.heads, [repair.heads for repair in repairs]]),
        np.concatenate([candidates.labels, [repair.labels for repair in repairs]]),
        np.concatenate([candidates.scores, scores]),
        inventory=candidates.inventory,
        sources=candidates.sources,
        base=candidates.base,
        bases=candidates.bases,
    )


def _key(heads: Int32, labels: Int32) -> bytes:
    return heads.tobytes() + labels.tobytes()


@lru_cache(maxsize=16)
def _ranks(names: tuple[str, ...]) -> Int32:
    """The place of each label by its name: ids depend on what was read before."""
    ranks = np.empty(len(names), dtype=np.int32)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks
