"""Whether heads form a tree, and what is wrong where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def _and(words: Sequence[int]) -> str:
    if len(words) > 5:
        return f"{', '.join(map(str, words[:5]))} and {len(words) - 5} more"
    return f"{', '.join(map(str, words[:-1]))} and {words[-1]}"


def _cycle(heads: Sequence[int], word: int, roots: int) -> tuple[int, str]:
    loop = [word]
    while heads[loop[-1] - 1] != word:
        loop.append(heads[loop[-1] - 1])
    first = loop.index(min(loop))
    loop = loop[first:] + loop[:first]
    if not roots:
        return loop[0], "no word has HEAD 0; give the root of the sentence HEAD 0"
    if len(loop) == 1:
        return loop[0], f"word {loop[0]} is its own HEAD; attach it to another word or to 0"
    shown = " -> ".join(map(str, [*loop, loop[0]]))
    return loop[0], f"cycle: HEADs lead {shown}; attach one of these words to a word outside it"


def check_tree(heads: ArrayLike, *, single_root: bool = True) -> str | None:
    """Why heads (int[n], values 0..n wanted) are no tree over n words, or None if they are one.

    Reasons: HEAD out of range, self-loop, no root, several roots (unless ``single_root`` is
    False), a cycle, whose words are named.  O(n).
    """
    fault = tree_fault(np.asarray(heads).tolist(), single_root=single_root)
    return None if fault is None else fault[1]


def out_of_range(word: int, head: str, n: int) -> str:
    """The reason for a HEAD outside 0..n."""
    return f"HEAD of word {word} is {head}, but must be 0 (the root) or a word from 1 to {n}"


def tree_fault(heads: Sequence[int], *, single_root: bool) -> tuple[int, str] | None:
    """``check_tree`` on a list: the word (1..n) at fault and the reason."""
    n = len(heads)
    if not n:
        return 0, "there is no word; a tree needs at least one"
    if min(heads) < 0 or max(heads) > n:
        word = next(i for i, head in enumerate(heads, 1) if not 0 <= head <= n)
        return word, out_of_range(word, str(heads[word - 1]), n)
    roots = heads.count(0)
    if roots > 1 and single_root:
        words = [i for i, head in enumerate(heads, 1) if head == 0]
        cure = "keep one root and attach the others to it"
        return words[1], f"words {_and(words)} have HEAD 0; {cure}"
    # Walk up from every word until a word seen before; seeing one of the same walk is a cycle.
    seen = [0] * (n + 1)
    seen[0] = -1
    for start in range(1, n + 1):
        word = start
        while not seen[word]:
            seen[word] = start
            word = heads[word - 1]
        if seen[word] == start:
            return _cycle(heads, word, roots)
    return None
