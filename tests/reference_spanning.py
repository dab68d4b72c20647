"""Plain, slow twins of tk_spacy/sampling/spanning.pyx."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np


def is_tree(heads, *, single_root):
    """Whether heads[m - 1], the head of word m, lead every word to node 0."""
    for word in range(1, len(heads) + 1):
        node = word
        for _ in range(len(heads)):
            node = heads[node - 1] if node else 0
        if node:
            return False
    return not single_root or list(heads).count(0) == 1


def total(scores, heads):
    """The sum of the scores of a tree's arcs, in the order of the words."""
    return float(sum(scores[head, word] for word, head in enumerate(heads, start=1)))


@cache
def tree_shapes(n, *, single_root):
    """int[t, n]: every tree of n words."""
    candidates = product(range(n + 1), repeat=n)
    return np.array([heads for heads in candidates if is_tree(heads, single_root=single_root)])


def all_totals(scores, *, single_root):
    """The totals of all trees without a missing arc, the largest first."""
    n = len(scores) - 1
    totals = scores[tree_shapes(n, single_root=single_root), np.arange(1, n + 1)].sum(axis=1)
    return np.sort(totals[totals > -np.inf])[::-1]


def chu_liu_edmonds(arcs, nodes):
    """The best tree of {(head, word): score} over nodes with root 0 as {word: head}, or None.

    The textbook recursion: contract one cycle of best arcs, solve the smaller graph, expand.
    """
    best = {}
    for word in nodes - {0}:
        entering = [head for head in nodes if (head, word) in arcs]
        if not entering:
            return None
        best[word] = max(entering, key=lambda head: arcs[head, word])
    cycle = find_cycle(best)
    if not cycle:
        return best
    new = max(nodes) + 1
    smaller, origin = {}, {}
    for (head, word), score in arcs.items():
        if head in cycle and word in cycle:
            continue
        arc = (new if head in cycle else head, new if word in cycle else word)
        if word in cycle:
            score -= arcs[best[word], word]
        if arc not in smaller or score > smaller[arc]:
            smaller[arc] = score
            origin[arc] = (head, word)
    solved = chu_liu_edmonds(smaller, (nodes - cycle) | {new})
    if solved is None:
        return None
    tree = {word: best[word] for word in cycle}
    for word, head in solved.items():
        real_head, real_word = origin[head, word]
        tree[real_word] = real_head
    return tree


def find_cycle(heads):
    """The words of some cycle, an empty set where there is none."""
    for start in heads:
        path, node = [], start
        while node in heads and node not in path:
            path.append(node)
            node = heads[node]
        if node in path:
            return set(path[path.index(node) :])
    return set()


def best_tree(scores, *, single_root):
    """The best tree's heads, or None; a single root is tried word by word."""
    n = len(scores) - 1
    arcs = {
        (head, word): float(scores[head, word])
        for head in range(n + 1)
        for word in range(1, n + 1)
        if head != word and scores[head, word] > -np.inf
    }
    if not single_root:
        tree = chu_liu_edmonds(arcs, set(range(n + 1)))
        return tree and tuple(tree[word] for word in range(1, n + 1))
    found = []
    for root in range(1, n + 1):
        kept = {arc: score for arc, score in arcs.items() if arc[0] or arc[1] == root}
        tree = chu_liu_edmonds(kept, set(range(n + 1)))
        if tree:
            found.append(tuple(tree[word] for word in range(1, n + 1)))
    return max(found, key=lambda heads: total(scores, heads), default=None)
