"""The trees of a candidate list as one forest that shares equal subtrees.

Two words of two trees are one node of the forest where they have the same arcs to the same nodes
below them, in order: what a tree kernel counts below a node is then counted once for all trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.utils.array_types import Int32


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees over arcs, equal subtrees once.

    Node c has the children child_nodes[starts[c]:starts[c + 1]], left to right, by the arcs
    child_arcs[...] of the same range; children come before their parents.  int32[c + 1], int32[_].
    trees: int32[k, n + 1], the node of the root and of each word in each tree.
    """

    starts: Int32
    child_nodes: Int32
    child_arcs: Int32
    trees: Int32

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @classmethod
    def make(cls, heads: Int32, members: Int32) -> Forest:
        """From trees.

        heads: int32[k, n], valid trees.  members: int32[k, n], the number of the arc into each
        word; arcs with equal numbers are equal.
        """
        k, n = heads.shape
        known: dict[tuple[tuple[int, int], ...], int] = {}
        trees = np.empty((k, n + 1), dtype=np.int32)
        for tree, (row, arcs) in enumerate(zip(heads.tolist(), members.tolist(), strict=True)):
            below: list[list[int]] = [[] for _ in range(n + 1)]
            for word, head in enumerate(row, 1):
                below[head].append(word)
            nodes = [0] * (n + 1)
            for word in _bottom_up(below):
                key = tuple([(arcs[child - 1], nodes[child]) for child in below[word]])
                nodes[word] = known.setdefault(key, len(known))
            trees[tree] = nodes
        starts = np.cumsum([0, *map(len, known)], dtype=np.int32)
        pairs = [pair for key in known for pair in key]
        arcs_of, nodes_of = zip(*pairs, strict=True) if pairs else ((), ())
        return cls(
            starts=starts,
            child_nodes=np.array(nodes_of, dtype=np.int32),
            child_arcs=np.array(arcs_of, dtype=np.int32),
            trees=trees,
        )

    def part(self, rows: Sequence[int]) -> tuple[Forest, Int32]:
        """The forest of some of the trees, with the numbers that its arcs had here.

        Its arcs are numbered anew, 0..a-1 in the order of the old numbers, which are returned.
        """
        trees = self.trees[list(rows)]
        nodes, new_trees = np.unique(trees, return_inverse=True)
        new = np.zeros(self.n_nodes, dtype=np.int32)
        new[nodes] = np.arange(len(nodes), dtype=np.int32)
        sizes = np.diff(self.starts)[nodes]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        where = np.arange(starts[-1]) + np.repeat(self.starts[nodes] - starts[:-1], sizes)
        arcs, new_arcs = np.unique(self.child_arcs[where], return_inverse=True)
        return Forest(
            starts=starts,
            child_nodes=new[self.child_nodes[where]],
            child_arcs=new_arcs.astype(np.int32),
            trees=new_trees.reshape(trees.shape).astype(np.int32),
        ), arcs.astype(np.int32)


def _bottom_up(below: Sequence[Sequence[int]]) -> list[int]:
    """The words of a tree, the root 0 among them, each after all that hang on it."""
    order = [0]
    for word in order:
        order.extend(below[word])
    return order[::-1]
