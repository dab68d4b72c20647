"""In which order sentences are learnt from, and which of them are held out for want of a dev part.

What is held out are blocks of neighbours, not single sentences: a treebank is made of documents,
and a parser that has learnt from the sentences before and after one knows its words and its style,
so that its score on it would flatter.  One block alone would be of one document or one genre, where
a treebank is ordered by them; so there are up to ten, one in each tenth of the treebank, each at a
place by the seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SHARE = 10
"""Of so many sentences one is held out."""
BLOCKS, BLOCK = 10, 10
"""Blocks at most, and the sentences that each has at least where there are several."""

FOLDS = ((10_000, 5), (30_000, 3))
"""Words under which a treebank is dealt into so many folds; see docs/results.md."""


def held_out_blocks(n: int, *, seed: int) -> list[range]:
    """The sentences, of 0..n-1, that take the place of dev: a tenth, at least one, in blocks.

    Raises ValueError for n below 2, of which nothing could be learnt.
    """
    if n < 2:
        raise ValueError(f"n is {n}, expected at least 2: one to learn from, one to hold out")
    size = max(1, round(n / SHARE))
    blocks = min(BLOCKS, max(1, size // BLOCK))
    rng = random.Random(seed)
    found = []
    for block in range(blocks):
        first, end = n * block // blocks, n * (block + 1) // blocks
        length = size * (block + 1) // blocks - size * block // blocks
        start = rng.randint(first, end - length)
        found.append(range(start, start + length))
    return found


def split(sentences: Sequence[T], *, seed: int) -> tuple[list[T], list[T]]:
    """What to learn from and what is held out, both in order; see `held_out_blocks`."""
    out = {i for block in held_out_blocks(len(sentences), seed=seed) for i in block}
    return (
        [sentence for i, sentence in enumerate(sentences) if i not in out],
        [sentence for i, sentence in enumerate(sentences) if i in out],
    )


def folds_for(words: int) -> int:
    """Folds of the jackknife that a treebank of so many words asks for.

    A small treebank's parser is much worse without half of it, and its lists tell nothing of those
    that it will make; a larger one's is not, and its folds cost most of the training.
    """
    return next((folds for size, folds in FOLDS if words < size), 2)


def dealt(parts: Sequence[Sequence[T]], *, folds: int) -> list[T]:
    """Several treebanks as one, so that each of its folds has a share of each of them.

    Folds are contiguous (`ensemble.jackknife.fold_of_sentences`).  Of treebanks that simply follow
    each other a fold would be one treebank, parsed by parsers that know the others alone: far worse
    than those of new text of all of them, which the lists are to be like.
    """
    if len(parts) == 1:
        return list(parts[0])
    # A fold begins at the first sentence whose number times folds reaches the fold's times n.
    cuts = [[-(-len(part) * fold // folds) for fold in range(folds + 1)] for part in parts]
    return [
        sentence
        for fold in range(folds)
        for part, cut in zip(parts, cuts, strict=True)
        for sentence in part[cut[fold] : cut[fold + 1]]
    ]
