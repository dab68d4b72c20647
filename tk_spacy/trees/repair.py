"""A tree with one root from heads that are none, as other parsers may give them."""

from __future__ import annotations

from collections.abc import Sequence


def repaired(heads: Sequence[int], deprels: Sequence[str]) -> tuple[list[int], list[str]]:
    """The tree nearest to what was given; a tree with one root comes back as it is.

    heads: of n words; out of 0..n where a word has none.  deprels: n labels.
    The first word under the root stays there, or word 1 where none is; all other such words, and of
    each cycle the first word, are attached to it.  A word that leaves the root's place gets the
    label `parataxis` where the root kept the same one, since only roots may be called root.
    """
    n = len(heads)
    fixed = [head if 0 <= head <= n and head != word else -1 for word, head in enumerate(heads, 1)]
    labels = list(deprels)
    root = fixed.index(0) + 1 if 0 in fixed else 1
    fixed[root - 1] = 0
    for word in range(1, n + 1):
        if word != root and fixed[word - 1] <= 0:
            fixed[word - 1] = root
            if labels[word - 1] == labels[root - 1]:
                labels[word - 1] = "parataxis"
    done = [False] * (n + 1)
    done[0] = True
    for start in range(1, n + 1):
        path: list[int] = []
        word = start
        while not done[word] and word not in path:
            path.append(word)
            word = fixed[word - 1]
        if not done[word]:  # a cycle, which cannot hold the root
            fixed[min(path[path.index(word) :]) - 1] = root
        for seen in path:
            done[seen] = True
    return fixed, labels
