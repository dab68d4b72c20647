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


@pytest.mark.parametrize(
    ("heads", "labels", "wanted", "wanted_labels"),
    [
        # The second root goes under the first, and may not be called root any more.
        ([0, 1, 0], "root a root", [0, 1, 1], "root a parataxis"),
        ([0, 1, 0], "root a b", [0, 1, 1], "root a b"),
        # A cycle of words 2 and 3 is opened at word 2; word 4, which hangs on it, stays.
        ([0, 3, 2, 3], "root a b c", [0, 1, 2, 3], "root a b c"),
        # No root at all.
        ([2, 1], "a b", [0, 1], "a b"),
        ([-1, 9, 3], "a b c", [0, 1, 1], "a b c"),
    ],
)
def test_repair_changes_little(
    heads: list[int], labels: str, wanted: list[int], wanted_labels: str
) -> None:
    assert repaired(heads, labels.split()) == (wanted, wanted_labels.split())
