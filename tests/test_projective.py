"""The projective parser: parts, exact k-best search, pruning, learning, lists, storage."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from reference_parts import Tree, nearer_sibling, parts_of_tree, projective_trees, score

from tk_spacy.parsers.projective.decoder import arc_marginals, best_of_parts, parts_of

Scores = dict[tuple[str, tuple[int, ...]], float]


# Exact search


def all_arcs(n: int) -> list[list[int]]:
    return [[h for h in range(n + 1) if h != m] for m in range(1, n + 1)]


def some_arcs(rng: np.random.Generator, n: int) -> list[list[int]]:
    """Arcs of one projective tree and some more."""
    trees = projective_trees(n)
    heads = trees[rng.integers(len(trees))]
    return [
        [h for h in range(n + 1) if h != m and (h == heads[m - 1] or rng.random() < 0.4)]
        for m in range(1, n + 1)
    ]


def random_scores(rng: np.random.Generator, *, whole: bool = False) -> Scores:
    """A score of every part, made when it is asked for; whole numbers have many ties."""
    return defaultdict(lambda: float(rng.integers(-2, 3)) if whole else float(rng.normal()))


def search(kept: list[list[int]], scores: Scores, k: int) -> tuple[list[Tree], list[float]]:
    """The decoder's trees by scores of all parts."""
    n = len(kept)
    first = np.array([0, 0, *np.cumsum([len(heads) for heads in kept])], dtype=np.int32)
    heads = np.array([h for own in kept for h in own], dtype=np.int32)
    arcs, chains, triples = parts_of(first, heads)
    root = [
        scores["arc", (0, m)] + scores["sibling", (0, n + 1, m)] if h == 0 else 0.0
        for h, m in arcs.tolist()
    ]
    of_chains = [
        scores["arc", (h, m)] + scores["sibling", (h, s, m)] + scores["grandparent", (g, h, m)]
        + scores["grand-sibling", (g, h, s, m)]
        for g, h, s, m in chains.tolist()
    ]  # fmt: skip
    of_triples = [scores["tri-sibling", tuple(part)] for part in triples.tolist()]
    trees, totals = best_of_parts(
        first, heads,
        *(np.array(values, dtype=np.float32) for values in (root, of_chains, of_triples)), k=k,
    )  # fmt: skip
    return [tuple(tree) for tree in trees.tolist()], totals.tolist()


def test_projective_trees_are_counted() -> None:
    """With one root: n = 1 to 6, OEIS A006013."""
    assert [len(projective_trees(n)) for n in range(1, 7)] == [1, 2, 7, 30, 143, 728]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("pruned", [False, True])
def test_lists_are_those_of_enumeration(n: int, pruned: bool) -> None:
    rng = np.random.default_rng((n, pruned))
    for _ in range(12 if pruned else 5):
        kept = some_arcs(rng, n) if pruned else all_arcs(n)
        scores = random_scores(rng)
        possible = {
            tree: score(tree, scores)
            for tree in projective_trees(n)
            if all(h in own for h, own in zip(tree, kept, strict=True))
        }
        expected = sorted(possible, key=lambda tree: -possible[tree])
        for k in (1, 2, 10, len(projective_trees(n)) + 3):
            trees, totals = search(kept, scores, k)
            assert trees == expected[:k]
            assert totals == pytest.approx([possible[tree] for tree in trees], abs=1e-4)


@pytest.mark.parametrize("n", [3, 4, 5])
def test_trees_of_equal_scores_are_all_found_once(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        scores = random_scores(rng, whole=True)
        possible = {tree: score(tree, scores) for tree in projective_trees(n)}
        for k in (7, len(possible)):
            trees, totals = search(all_arcs(n), scores, k)
            assert len(set(trees)) == len(trees) == min(k, len(possible))
            assert totals == [possible[tree] for tree in trees]
            assert totals == sorted(possible.values(), reverse=True)[:k]


def test_no_tree_where_the_arcs_form_none() -> None:
    assert search([[2], [1]], random_scores(np.random.default_rng(0)), 3) == ([], [])


def test_a_known_tree_has_these_parts() -> None:
    """he <- gave -> her, gave -> book -> a: 2 0 2 5 2."""
    heads = (2, 0, 2, 5, 2)
    assert [nearer_sibling(heads, m) for m in range(1, 6)] == [6, 6, 6, 6, 3]
    parts = parts_of_tree(heads)
    assert ("grand-sibling", (0, 2, 3, 5)) in parts
    assert ("tri-sibling", (2, 6, 3, 5)) in parts
    assert ("grandparent", (2, 5, 4)) in parts
    assert len(parts) == 2 * 5 + 2 * 4 + 1


# Pruning


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_marginals_are_those_of_enumeration(n: int) -> None:
    scores = np.random.default_rng(n).normal(size=(n + 1, n + 1)) * 2
    weights = {
        tree: np.exp(sum(scores[h, m] for m, h in enumerate(tree, 1)))
        for tree in projective_trees(n)
    }
    expected = np.zeros((n + 1, n + 1))
    for tree, weight in weights.items():
        for m, h in enumerate(tree, 1):
            expected[h, m] += weight / sum(weights.values())
    assert arc_marginals(scores) == pytest.approx(expected)
