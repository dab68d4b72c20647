"""Trees from arcs that have scores: the best ones, and the plain vote of several parsers.

Source of the vote: Sagae and Lavie 2006, "Parser combination by reparsing".
"""

from __future__ import annotations

import numpy as np

from tk_spacy.ensemble.combiner.arcs import ListArcs
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.trees.spanning import k_best_spanning_trees
from tk_spacy.utils.array_types import Float64, Int32


def best_trees(arcs: ListArcs, scores: Float64, k: int) -> Int32:
    """The k trees with the largest sums of scores, each pair of words with its best label.

    scores: float64[a].  Returns the arc of each word, int32[k', n], best tree first; k' is at least
    1, since the candidates are trees of such arcs, and at most k.
    """
    n = len(arcs.starts) - 1
    # Of each pair of words the arc with the best label, of equals the first.
    pairs = int(arcs.with_head[-1]) + 1
    best = np.empty(pairs, dtype=np.int32)
    order = np.lexsort((-np.arange(len(scores)), scores))
    best[arcs.with_head[order]] = order
    table = np.full((n + 1, n + 1), -np.inf)
    table[arcs.heads[best], arcs.words[best] + 1] = scores[best]
    numbers = np.zeros((n + 1, n), dtype=np.int32)
    numbers[arcs.heads[best], arcs.words[best]] = best
    heads, _ = k_best_spanning_trees(table, k)
    return numbers[heads, np.arange(n)]


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
    shares = arcs.shares(voters)
    # Heads are voted first: a label's votes only decide between the labels of one head.
    scores = arcs.head_shares(shares)[0] + 1e-8 * shares[0]
    tree = best_trees(arcs, scores, 1)[0]
    return arcs.heads[tree], arcs.labels[tree]
