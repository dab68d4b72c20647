"""What the network said of the sentences that it read last, for who asks about them twice.

A pipeline's component parses first, then the reranker asks it for lists, and then every parser
scores the trees of all lists: the network need not read the same words again for that, which takes
most of its time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from tk_spacy.treebank.conllu import Sentence

S = TypeVar("S")

SIZE = 1 << 21
"""Of what is remembered, at least one sentence, as `_size` counts: some 25,000 words, 70 MB."""


class Recent(Generic[S]):
    """Scores by the columns that a parser may read; the oldest are forgotten first.

    Without locks: threads that share it may forget more than they need to.  A copy is empty.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
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
        self._used += _size(len(sentence))
        while self._used > self._size and len(self._scores) > 1:
            try:
                (forms, *_), _ = self._scores.popitem(last=False)
            except KeyError:
                break  # another thread was first
            self._used -= _size(len(forms))
        if len(self._scores) == 1:
            self._used = _size(len(sentence))  # where other threads have miscounted

    def known(self, sentences: Iterable[Sentence]) -> list[tuple[Sentence, S]]:
        """Those of these sentences that are there, each with its scores."""
        found = ((sentence, self.find(sentence)) for sentence in sentences)
        return [(sentence, scores) for sentence, scores in found if scores is not None]

    def clear(self) -> None:
        """Forget all."""
        self._scores.clear()
        self._used = 0

    def __reduce__(self) -> tuple[type[Recent[S]], tuple[int]]:
        return Recent, (self._size,)


def _size(n_words: int) -> int:
    """Of the scores of n words: pairs of words, and vectors of words that are as large as some."""
    return n_words * (n_words + 64)


def _key(sentence: Sentence) -> tuple[tuple[str, ...], ...]:
    return sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats
