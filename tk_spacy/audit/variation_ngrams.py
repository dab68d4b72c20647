"""Variation n-grams: the same words, annotated in another way elsewhere.

Dickinson and Meurers 2003 look for strings that recur with different annotation; Boyd, Dickinson
and Meurers 2008 ("On detecting errors in dependency treebanks", section 3) do so for dependencies:
the nucleus is a pair of words, its annotation the relation and direction of the arc between them,
or NIL where there is none.  A nucleus whose neighbours recur too (their non-fringe heuristic) is
more likely an error than a true ambiguity.

Ours differ in three ways.  The whole string from the one word to the other, with a neighbour on
both sides, has to recur, first as forms, then as lemmas, then as tags but for the two words.  What
varies gets a number: how much of the other occurrences are annotated otherwise, against those
annotated so.  And a NIL, which belongs to no arc, is laid to the word that would be the dependent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.audit.words import EDGE, Words
from tk_spacy.utils.array_types import Float32, Int32

FARTHEST = 6
"""Words from the one of a pair to the other at most: longer strings hardly ever recur."""
NIL = "-"
PRIOR = 1.0
"""What the other occurrences' shares are smoothed by."""


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """What the other occurrences of words' strings say.

    margin: float32[n], share of the annotation most frequent elsewhere minus the share of what
        stands there; 0 where nothing recurs.
    heads: int32[n], row of the head that others have, -1 where they have no arc (or none recurs).
    labels: n texts, relation that others have, NIL for no arc, "" where none recurs.
    witnesses: int32[n], another occurrence annotated so: the row of its dependent or, of a NIL, of
        the word that corresponds; -1 where none recurs.
    """

    margin: Float32
    heads: Int32
    labels: list[str]
    witnesses: Int32


def variation(words: Words, level: str = "forms", *, farthest: int = FARTHEST) -> Variation:
    """The variation n-grams that each word is the dependent of.

    level: "forms", "lemmas" or "tags", of which the strings are.
    farthest: words from the one word of a pair to the other at most.
    """
    found: dict[tuple[str, ...], list[tuple[int, int, str]]] = defaultdict(list)
    for key, left, right, mark in _nuclei(words, level, farthest):
        found[key].append((left, right, mark))
    n = len(words)
    result = Variation(
        np.zeros(n, np.float32), np.full(n, -1, np.int32), [""] * n, np.full(n, -1, np.int32)
    )
    for places in found.values():
        counts = Counter(mark for _, _, mark in places)
        if len(counts) > 1:
            _compare(result, places, counts)
    return result


def _compare(
    result: Variation, places: Sequence[tuple[int, int, str]], counts: Counter[str]
) -> None:
    """Lay what varies among the occurrences of a string to their dependents."""
    others = len(places) - 1 + PRIOR
    ranked = counts.most_common()
    example = {mark: (left, right) for left, right, mark in places}
    for left, right, mark in places:
        best = next(other for other, _ in ranked if other != mark)
        margin = (counts[best] - (counts[mark] - 1)) / others
        # The dependent of the arc that stands here or, where there is none, elsewhere.
        telling = best if mark == NIL else mark
        word = left if telling[0] == "<" else right
        if margin <= result.margin[word]:
            continue
        witness = example[best]
        result.margin[word] = margin
        result.labels[word] = best if best == NIL else best[1:]
        result.heads[word] = -1 if best == NIL else right if best[0] == "<" else left
        result.witnesses[word] = witness[0] if word == left else witness[1]
        if best != NIL and best[0] != telling[0]:
            # The arc runs the other way elsewhere: its head there would be this word.
            result.heads[word] = -1
            result.labels[word] = NIL


def _nuclei(
    words: Words, level: str, farthest: int
) -> Iterator[tuple[tuple[str, ...], int, int, str]]:
    """Every pair of words near each other whose words have an arc somewhere: its string and arc."""
    column = {"forms": words.forms, "lemmas": words.lemmas, "tags": words.upos}[level]
    nucleus = words.lemmas if level == "tags" else column
    heads = words.heads.tolist()
    pairs = {
        (nucleus[min(row, head)], nucleus[max(row, head)])
        for row, head in enumerate(heads)
        if head >= 0 and abs(row - head) <= farthest
    }
    for first, stop in zip(words.starts[:-1].tolist(), words.starts[1:].tolist(), strict=True):
        for left in range(first, stop):
            for right in range(left + 1, min(left + farthest + 1, stop)):
                if (nucleus[left], nucleus[right]) not in pairs:
                    continue
                if heads[left] == right:
                    mark = "<" + words.deprels[left]
                elif heads[right] == left:
                    mark = ">" + words.deprels[right]
                else:
                    mark = NIL
                before = column[left - 1] if left > first else EDGE
                after = column[right + 1] if right + 1 < stop else EDGE
                inner = column[left + 1 : right]
                yield (before, nucleus[left], *inner, nucleus[right], after), left, right, mark
