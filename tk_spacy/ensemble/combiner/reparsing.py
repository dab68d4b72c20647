"""Trees from arcs that have scores: the best ones, and the plain vote of several parsers.

Source of the vote: Sagae and Lavie 2006, "Parser combination by reparsing".
"""

from __future__ import annotations

import numpy as np

from tk_spacy.ensemble.combiner.arcs import ListArcs
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kbest.long_sentences import WHOLE_WORDS
from tk_spacy.trees.spanning import k_best_spanning_trees
from tk_spacy.utils.array_types import Float64, Int32

MOST_FREE = WHOLE_WORDS
"""Words of a long sentence whose heads are chosen anew, at most: as many as are searched whole."""


def best_trees(arcs: ListArcs, scores: Float64, k: int) -> Int32:
    """The k trees with the largest sums of scores, each pair of words with its best label.

    scores: float64[a].  Returns the arc of each word, int32[k', n], best tree first; k' is at least
    1, since the candidates are trees of such arcs, and at most k.  In a sentence too long to be
    searched whole, at most MOST_FREE words leave the head that the best candidate gives them: those
    to which the scores promise most.
    """
    n = len(arcs.starts) - 1
    # Of each pair of words the arc with the best label, of equals the first.
    pairs = int(arcs.with_head[-1]) + 1
    best = np.empty(pairs, dtype=np.int32)
    order = np.lexsort((-np.arange(len(scores)), scores))
    best[arcs.with_head[order]] = order
    if n > WHOLE_WORDS:
        return _best_of_long(arcs, scores, best, k)
    table = np.full((n + 1, n + 1), -np.inf)
    table[arcs.heads[best], arcs.words[best] + 1] = scores[best]
    numbers = np.zeros((n + 1, n), dtype=np.int32)
    numbers[arcs.heads[best], arcs.words[best]] = best
    heads, _ = k_best_spanning_trees(table, k)
    return numbers[heads, np.arange(n)]


def _best_of_long(arcs: ListArcs, scores: Float64, best: Int32, k: int) -> Int32:
    """The same for a long sentence: words that keep their head are one node with it.

    best: the arc of each pair of words.
    """
    n = len(arcs.starts) - 1
    words, heads, values = arcs.words[best], arcs.heads[best], scores[best]
    # The pair of each word in the best candidate.
    kept = arcs.with_head[arcs.of_tree[scores[arcs.of_tree].sum(axis=1).argmax()]]
    gains = np.full(n, -np.inf)
    others = np.setdiff1d(np.arange(len(best)), kept)
    np.maximum.at(gains, words[others], values[others] - values[kept][words[others]])
    order = np.argsort(-gains, kind="stable")[:MOST_FREE]
    free = np.sort(order[gains[order] > -np.inf])
    if not len(free):
        return best[kept][None]
    # The node of each word: that of the first word above it which is free, 0 for the root's.
    above = np.concatenate([[0], heads[kept]])
    above[free + 1] = free + 1
    for _ in range(n.bit_length()):
        above = above[above]
    number = np.zeros(n + 1, dtype=np.int32)
    number[free + 1] = np.arange(1, len(free) + 1)
    node = number[above]
    # Where the root's word keeps its place, no other may take it.
    root_is_free = bool((heads[kept][free] == 0).any())
    pairs = np.flatnonzero(number[words + 1] > 0)
    pairs = pairs[node[heads[pairs]] != number[words[pairs] + 1]]
    if not root_is_free:
        pairs = pairs[heads[pairs] > 0]
    # Of the pairs between two nodes the best, of equals the first: it is written last.
    pairs = pairs[np.lexsort((-pairs, values[pairs]))]
    table = np.full((len(free) + 1, len(free) + 1), -np.inf)
    chosen = np.zeros(table.shape, dtype=np.int32)
    table[node[heads[pairs]], number[words[pairs] + 1]] = values[pairs]
    chosen[node[heads[pairs]], number[words[pairs] + 1]] = pairs
    found, _ = k_best_spanning_trees(table, k, single_root=root_is_free)
    trees = np.tile(kept, (len(found), 1))
    trees[:, free] = chosen[found, np.arange(1, len(free) + 1)]
    return best[trees]


def plain_vote(candidates: CandidateList) -> tuple[Int32, Int32]:
    """The tree with the most votes of the parsers' own trees: heads and labels int32[n].

    Each parser has one vote for the head of each word, and for the label of an arc that it has.  Of
    heads, or labels, with as many votes, that of the earliest parser wins.
    """
    own = [candidates.base, *candidates.bases.values()]
    # The arcs of these trees alone, since other candidates depend on who made them.
    rows = list(dict.fromkeys(own))
    arcs = ListArcs.of_trees(candidates.heads[rows], candidates.labels[rows])
    voters = np.zeros((1, len(rows)))
    # So little more for a parser that it decides between equals alone, and as much as for all later
    # ones together: no two sets of parsers have the same votes, whatever the order of arcs is.
    for place, row in enumerate(own):
        voters[0, rows.index(row)] += 1.0 + 1e-4 * 0.5**place
    labelled, of_heads = arcs.shares(voters)
    # Heads are voted first: a label's votes only decide between the labels of one head.
    scores = of_heads[0] + 1e-8 * labelled[0]
    tree = best_trees(arcs, scores, 1)[0]
    return arcs.heads[tree], arcs.labels[tree]
