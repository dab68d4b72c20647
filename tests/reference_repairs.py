"""The repair of a candidate as plain code says it: the twin of `kbest.repairs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.well_formed import MOST_CHANGES, UNSEEN, Repair
from tk_spacy.trees.constraints import WordFacts, violations
from tk_spacy.utils.array_types import Int32

Arc = tuple[int, int, int, float]
"""A word from 0, its head, its label's id, and how many candidates have it."""


def repaired(
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
    found = {pair: float(count) for pair, count in Counter(pairs).items()}
    own = int(heads[word]), int(labels[word])
    for start in (own[0], word, word + 2):  # the neighbours are numbered from 1
        at = start if start <= len(heads) else 0
        while at:
            found.setdefault((at, own[1]), UNSEEN)
            at = int(heads[at - 1])
    below = _below(heads, word + 1)
    return [
        (word, head, label, count)
        for (head, label), count in found.items()
        if (head, label) != own and head and not below[head]
    ]


def _below(heads: Int32, word: int) -> np.ndarray:
    """bool[n + 1]: the word and those below it."""
    at = np.arange(len(heads) + 1)
    above = np.concatenate([[0], heads])
    found = at == word
    while at.any():
        at = above[at]
        found |= at == word
    return found
