"""A UDPipe parser as a source of candidates: it proposes one tree, and votes on those of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kbest.agreement import agreement, one_tree
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.udpipe.kind import KIND
from tk_spacy.parsers.udpipe.parser import UdpipeParser
from tk_spacy.treebank.conllu import Sentence

Tree = tuple[NDArray[np.int32], tuple[str, ...]]

REMEMBERED = 1024
"""Sentences whose trees wait for the trees of others to be scored."""


class UdpipeSource:
    """A ParserSource whose lists have one tree, UDPipe's own, with score 0.

    The score of any other tree is minus the number of words whose head or label differs from it:
    the parser gives neither probabilities nor the other trees of its beam.
    parser: trained.  inventory: shared table of labels.  name: of its scores.
    """

    in_company = False

    def __init__(
        self,
        parser: UdpipeParser,
        *,
        inventory: LabelInventory | None = None,
        name: str = KIND.name,
    ) -> None:
        self.parser = parser
        self.inventory = LabelInventory() if inventory is None else inventory
        self.names = (name,)
        self.inventory.encode(parser.labels)  # now, as a `ListingSource` does
        self._known: dict[tuple[tuple[str, ...], ...], Tree] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the parser has learnt to read beside FORM."""
        return self.parser.columns

    def candidates(self, sentences: Sequence[Sentence], *, k: int) -> Iterator[CandidateList]:
        """One list of one tree for each sentence, in order."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        for sentence in sentences:
            yield one_tree(*self._tree(sentence), inventory=self.inventory, source=self.names[0])

    def score(
        self, sentences: Sequence[Sentence], lists: Sequence[CandidateList]
    ) -> list[NDArray[np.float64]]:
        """Agreement of every tree with UDPipe's own: float64[k, 1] for each list, 0 at most."""
        return [
            agreement(trees, *self._tree(sentence))[:, None]
            for sentence, trees in zip(sentences, lists, strict=True)
        ]

    def _tree(self, sentence: Sentence) -> Tree:
        """Its tree; the latest are remembered, since they are proposed first and vote then."""
        key = (sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats)
        tree = self._known.pop(key, None)
        if tree is None:
            (tree,) = self.parser.parse([sentence])
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
        self._known[key] = tree
        return tree
