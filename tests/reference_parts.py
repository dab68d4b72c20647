"""Projective trees by enumeration, and what their parts score, slow and plain."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from tk_spacy.trees.crossing import crossing_arcs
from tk_spacy.trees.validity import check_tree

Tree = tuple[int, ...]


@functools.cache
def projective_trees(n: int) -> tuple[Tree, ...]:
    """The heads of all projective trees of n words with one root."""
    return tuple(
        heads
        for heads in product(range(n + 1), repeat=n)
        if heads.count(0) == 1
        and check_tree(np.array(heads)) is None
        and not any(crossing_arcs(heads))
    )


def nearer_sibling(heads: Sequence[int], m: int) -> int:
    """The modifier of the same head that is next to m towards the head; n + 1 for none."""
    h = heads[m - 1]
    between = range(h + 1, m) if h < m else range(m + 1, h)
    siblings = [word for word in between if heads[word - 1] == h]
    if not siblings:
        return len(heads) + 1
    return max(siblings) if h < m else min(siblings)


def parts_of_tree(heads: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """All parts of a tree: arcs, siblings, grandparents, grand-siblings, tri-siblings."""
    n, parts = len(heads), []
    for m, h in enumerate(heads, 1):
        s = nearer_sibling(heads, m)
        parts += [("arc", (h, m)), ("sibling", (h, s, m))]
        if h > 0:
            g = heads[h - 1]
            parts += [("grandparent", (g, h, m)), ("grand-sibling", (g, h, s, m))]
        if s <= n:
            parts.append(("tri-sibling", (h, nearer_sibling(heads, s), s, m)))
    return parts


def score(heads: Sequence[int], scores: Mapping[tuple[str, tuple[int, ...]], float]) -> float:
    """The sum of the scores of a tree's parts."""
    return sum(scores[part] for part in parts_of_tree(heads))
