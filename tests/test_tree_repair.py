"""Trees out of heads that are none."""

from __future__ import annotations

import itertools

import pytest

from tk_spacy.treebank.conllu import check_tree
from tk_spacy.trees.repair import repaired


def test_repair_leaves_trees_alone_and_makes_trees_of_all_else() -> None:
    for n in (1, 2, 3, 4):
        for heads in itertools.product(range(-1, n + 2), repeat=n):
            labels = [f"l{word}" for word in range(n)]
            fixed, fixed_labels = repaired(heads, labels)
            assert check_tree(fixed) is None
            assert len(fixed_labels) == n
            if check_tree(heads) is None:
                assert fixed == list(heads)
                assert fixed_labels == labels
            if 0 not in heads:
                assert fixed_labels[fixed.index(0)] == "root"


@pytest.mark.parametrize("root", ["root", "root:x"])
def test_repair_calls_the_root_alone_root(root: str) -> None:
    """Whatever the heads are, where the labels say which word it is, that word stays the root."""
    for n in (1, 2, 3, 4):
        for heads in itertools.product(range(-1, n + 2), repeat=n):
            if 0 in heads:  # HEAD 0 is called root, be it once or more often
                labels = [root if head == 0 else "l" for head in heads]
            else:
                labels = [root if word == n - 1 else "l" for word in range(n)]
            fixed, fixed_labels = repaired(heads, labels)
            assert check_tree(fixed) is None
            for head, label in zip(fixed, fixed_labels, strict=True):
                assert (head == 0) == (label == root)


@pytest.mark.parametrize(
    ("heads", "labels", "wanted", "wanted_labels"),
    [
        # The second root goes under the first, and may not be called root any more.
        ([0, 1, 0], "root a root", [0, 1, 1], "root a parataxis"),
        ([0, 1, 0], "root a b", [0, 1, 1], "root a b"),
        # A cycle of words 2 and 3 is opened at word 2; word 4, which hangs on it, stays.
        ([0, 3, 2, 3], "root a b c", [0, 1, 2, 3], "root a b c"),
        # No root at all: one that is called so, or else word 1, which is called so then.
        ([2, 1], "a b", [0, 1], "root b"),
        ([2, 1], "a root", [2, 0], "a root"),
        ([2, 3, 2], "a b root", [2, 3, 0], "a b root"),
        ([-1, 9, 3], "a b c", [0, 1, 1], "root b c"),
        # Words without a head and of a cycle are not called root under the root.
        ([0, 2], "a root", [0, 1], "a parataxis"),
        ([0, 3, 2], "root root b", [0, 1, 2], "root parataxis b"),
    ],
)
def test_repair_changes_little(
    heads: list[int], labels: str, wanted: list[int], wanted_labels: str
) -> None:
    assert repaired(heads, labels.split()) == (wanted, wanted_labels.split())
