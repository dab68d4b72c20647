"""What a tokenizer is: it finds the sentences, tokens and words of plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import TextSentence


class Tokenizer(Protocol):
    """A trained tokenizer."""

    def split(self, pieces: Iterable[str]) -> Iterator[TextSentence]:
        """The sentences of one document, whose text comes in pieces."""
        ...

    def sentences(self, pieces: Iterable[str], *, path: str = "") -> Iterator[Sentence]:
        """The same as sentences without tags and tree, numbered from 1.

        path: of the text, for messages about them.
        """
        ...
