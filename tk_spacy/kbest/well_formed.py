"""Candidates that break fewer constraints: which do, and repaired copies of those that do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.scores import filled
from tk_spacy.trees.constraints import (
    KINDS,
    Violations,
    WordFacts,
    count_violations_of_lists,
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

Arc = tuple[int, int, int, float]
"""A word from 0, its head, its label's id, and how many candidates have it."""


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
    relations = {item.inventory: relation_numbers(item.inventory.names) for item in lists}
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
    """
    best = int(scores.argmax())
    tree = candidates.heads[best, None], candidates.labels[best, None]
    if not violations(*tree, candidates.inventory.names, words).counts(kinds).any():
        return []
    known = {_key(*tree) for tree in zip(candidates.heads, candidates.labels, strict=True)}
    found = []
    for row in np.argsort(-scores, kind="stable")[:REPAIRED].tolist():
        repair = _repaired(candidates, row, words, kinds)
        key = _key(repair.heads, repair.labels)
        if key not in known:  # as a tree is that nothing mends
            known.add(key)
            found.append(repair)
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


def _repaired(
    candidates: CandidateList, row: int, words: WordFacts, kinds: Collection[str]
) -> Repair:
    """A tree with fewer violations, as it was where no change of one word helps.

    One word after the other gets the arc after which the fewest violations are left, of such arcs
    the one that the most candidates have.
    """
    heads, labels = candidates.heads[row].copy(), candidates.labels[row].copy()
    names = candidates.inventory.names
    changes = np.zeros(len(heads))
    for _ in range(MOST_CHANGES):
        now = violations(heads[None], labels[None], names, words)
        total = int(now.counts(kinds).sum())
        if not total:
            break
        arcs = [
            arc
            for word in np.flatnonzero(now.suspects[0] & (heads > 0)).tolist()
            for arc in _other_arcs(candidates, heads, labels, word)
        ]
        if not arcs:
            break
        trees = np.tile(heads, (len(arcs), 1)), np.tile(labels, (len(arcs), 1))
        for i, (word, head, label, _) in enumerate(arcs):
            trees[0][i, word], trees[1][i, word] = head, label
        left = violations(*trees, names, words).counts(kinds).sum(axis=1)
        # Equals by name: numbers of labels depend on what was read before.
        keys = [
            (left[i], -share, word, head, names[label])
            for i, (word, head, label, share) in enumerate(arcs)
        ]
        best = min(range(len(arcs)), key=keys.__getitem__)
        if left[best] >= total:
            break
        word, head, label, share = arcs[best]
        same = candidates.heads[:, word] == heads[word]
        same &= candidates.labels[:, word] == labels[word]
        changes[word] += np.log(share / max(int(same.sum()), UNSEEN))
        heads[word], labels[word] = head, label
    return Repair(heads, labels, row, changes)


def _other_arcs(candidates: CandidateList, heads: Int32, labels: Int32, word: int) -> list[Arc]:
    """Arcs that the word might have instead and that leave a tree.

    Those of the candidates, and its label with other heads: its neighbours, and the words above its
    head and above these.
    """
    pairs = zip(
        candidates.heads[:, word].tolist(), candidates.labels[:, word].tolist(), strict=True
    )
    above, label = heads.tolist(), int(labels[word])
    found: dict[tuple[int, int], float] = dict(sorted(Counter(pairs).items()))
    for start in (above[word], word, word + 2):  # the neighbours are numbered from 1
        at = start if start <= len(above) else 0
        while at:
            found.setdefault((at, label), UNSEEN)
            at = above[at - 1]
    own = above[word], label
    return [
        (word, *arc, float(count))
        for arc, count in found.items()
        if arc != own and arc[0] and not _is_below(above, arc[0], word + 1)
    ]


def _is_below(heads: Sequence[int], at: int, word: int) -> bool:
    """Whether a word of a tree is another one, or below it."""
    while at and at != word:
        at = heads[at - 1]
    return at == word
