"""A tree with one root from heads that are none, as other parsers may give them."""

from __future__ import annotations

from collections.abc import Sequence

ROOT, ATTACHED = "root", "parataxis"


def repaired(heads: Sequence[int], deprels: Sequence[str]) -> tuple[list[int], list[str]]:
    """The tree nearest to what was given; a tree with one root comes back as it is.

    heads: of n words; out of 0..n where a word has none.  deprels: n labels.
    The first word under the root stays there.  Where none is, the first word called root takes the
    place, or else word 1, which is called root then.  All other words without a head, and of each
    cycle the first word, are attached to the root.  A word that is attached gets the label
    `parataxis` where it is called as the root, or root, since only roots may be called so.
    """
    n = len(heads)
    fixed = [head if 0 <= head <= n and head != word else -1 for word, head in enumerate(heads, 1)]
    labels = list(deprels)
    if 0 in fixed:
        root = fixed.index(0) + 1
    else:
        root = next((word for word, label in enumerate(labels, 1) if _is_root(label)), 1)
        fixed[root - 1] = 0
        if not _is_root(labels[root - 1]):
            labels[root - 1] = ROOT
    for word in range(1, n + 1):
        if word != root and fixed[word - 1] <= 0:
            _attach(word, root, fixed, labels)
    done = [False] * (n + 1)
    done[0] = True
    for start in range(1, n + 1):
        path: list[int] = []
        word = start
        while not done[word] and word not in path:
            path.append(word)
            word = fixed[word - 1]
        if not done[word]:  # a cycle, which cannot hold the root
            _attach(min(path[path.index(word) :]), root, fixed, labels)
        for seen in path:
            done[seen] = True
    return fixed, labels


def _attach(word: int, root: int, heads: list[int], labels: list[str]) -> None:
    heads[word - 1] = root
    if labels[word - 1] == labels[root - 1] or _is_root(labels[word - 1]):
        labels[word - 1] = ATTACHED


def _is_root(label: str) -> bool:
    """Whether this is UD's relation of roots, or a subtype of it."""
    return label.partition(":")[0] == ROOT
