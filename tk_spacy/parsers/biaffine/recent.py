"""What the network said of the sentences that it read last, for who asks about them twice.

Lists are made first, then every parser scores the trees of all lists: the network need not read the
same words again for that, which takes most of its time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from tk_spacy.treebank.conllu import Sentence

S = TypeVar("S")

ROWS = 1 << 13
"""Words that are remembered, at least those of one sentence."""


class Recent(Generic[S]):
    """Scores by the columns that a parser may read; the oldest are forgotten first."""

    def __init__(self, rows: int = ROWS) -> None:
        self._rows = rows
        self._used = 0
        self._scores: OrderedDict[tuple[tuple[str, ...], ...], S] = OrderedDict()

    def find(self, sentence: Sentence) -> S | None:
        """Those of a sentence with these words and tags."""
        return self._scores.get(_key(sentence))

    def keep(self, sentence: Sentence, scores: S) -> None:
        """Remember them."""
        key = _key(sentence)
        if key in self._scores:
            return
        self._scores[key] = scores
        self._used += len(sentence)
        while self._used > self._rows and len(self._scores) > 1:
            (forms, *_), _ = self._scores.popitem(last=False)
            self._used -= len(forms)


def _key(sentence: Sentence) -> tuple[tuple[str, ...], ...]:
    return sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats
