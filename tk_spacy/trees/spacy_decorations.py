"""Undoing spaCy's pseudo-projective transformation on arrays instead of Docs.

Source: Nivre and Nilsson 2005, "Pseudo-projective dependency parsing", scheme HEAD, as in spaCy's
`nonproj.deprojectivize`: an arc that was lifted carries the label "own||head's", and goes back to
the first word with the label "head's" that a breadth-first search below its present head finds.
Like spaCy's, the search looks for a word's children within the span that the word had before any
arc was moved; the two must agree to the last detail, or a list would not hold the parser's tree.
"""

from __future__ import annotations

from collections.abc import Sequence

DECORATION = "||"


def deprojectivize(
    heads: list[int],
    labels: list[str],
    *,
    is_space: Sequence[bool] | None = None,
) -> None:
    """Move the decorated arcs of a projective tree, in place, and cut their labels' decoration.

    heads:    0-based head of each word, -1 for the root.
    labels:   spaCy's labels.
    is_space: words of white space, which are passed over.
    """
    decorated = [i for i, label in enumerate(labels) if DECORATION in label]
    if not decorated:
        return
    left, right = _spans(heads)
    blank = [False] * len(heads) if is_space is None else is_space
    for word in decorated:
        label, _, head_label = labels[word].partition(DECORATION)
        start = heads[word] if heads[word] >= 0 else word
        heads[word] = _find_head(word, start, head_label, heads, labels, left, right, blank)
        labels[word] = label


def _find_head(
    word: int,
    start: int,
    head_label: str,
    heads: list[int],
    labels: list[str],
    left: list[int],
    right: list[int],
    blank: Sequence[bool],
) -> int:
    level = [start]
    while level:
        below = []
        for parent in level:
            for child in range(left[parent], right[parent] + 1):
                if heads[child] != parent or child == word or blank[child]:
                    continue
                if labels[child] == head_label:
                    return child
                below.append(child)
        level = below
    return heads[word]


def _spans(heads: list[int]) -> tuple[list[int], list[int]]:
    """First and last word of the subtree below each word."""
    left = list(range(len(heads)))
    right = list(range(len(heads)))
    for word in range(len(heads)):
        ancestor = heads[word]
        while ancestor >= 0:
            left[ancestor] = min(left[ancestor], word)
            right[ancestor] = max(right[ancestor], word)
            ancestor = heads[ancestor]
    return left, right
