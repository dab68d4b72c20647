"""What a parser has read just now: it is mostly asked for trees and then for scores of others."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tk_spacy.parsers.spacy_transition.directed_parser import ReadBatch
from tk_spacy.treebank.conllu import Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc

MAX_BATCHES = 8
"""Their vectors take some 16 MB each with the default parser."""
MAX_SENTENCES = 4096


class Recent:
    """The Docs of the last sentences, and the batches that models were run over last.

    Sentences and Docs are known by identity: equal ones may differ in what a parser reads.
    """

    def __init__(self) -> None:
        self._docs: dict[int, tuple[Sentence, Doc]] = {}
        self._batches: deque[tuple[dict[int, int], Sequence[Doc], list[ReadBatch]]] = deque(
            maxlen=MAX_BATCHES
        )

    def add_doc(self, sentence: Sentence, doc: Doc) -> None:
        """Keep a sentence's Doc."""
        if len(self._docs) >= MAX_SENTENCES:
            self._docs.clear()
        self._docs[id(sentence)] = (sentence, doc)

    def doc_of(self, sentence: Sentence) -> Doc | None:
        """The Doc of a sentence, None where it is not kept."""
        kept = self._docs.get(id(sentence))
        return kept[1] if kept is not None else None

    def add_batch(self, docs: Sequence[Doc], read: list[ReadBatch]) -> None:
        """Keep what each parser read of some Docs."""
        self._batches.append(({id(doc): i for i, doc in enumerate(docs)}, docs, read))

    def batch_of(self, doc: Doc) -> tuple[list[ReadBatch], int] | None:
        """Each parser's batch with a Doc, and its place there; None where it is not kept."""
        for places, _, read in self._batches:
            if id(doc) in places:
                return read, places[id(doc)]
        return None
