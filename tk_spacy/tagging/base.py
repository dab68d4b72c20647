"""What a tagger is: it gives words LEMMA, UPOS, XPOS and FEATS, and is trained from a treebank.

A `TaggerSpec` is plain data, since the folds of the jackknife run in processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import Trainable
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.data_notes import COLUMNS


class Tags(NamedTuple):
    """The columns of one sentence of n words, each n texts, "_" for none."""

    lemmas: tuple[str, ...]
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    feats: tuple[str, ...]

    @classmethod
    def of(cls, sentence: Sentence) -> Tags:
        """Those that a sentence has."""
        return cls(sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats)

    def put(self, sentence: Sentence) -> Sentence:
        """The sentence with these tags, its tree and all else as before.

        Raises ValueError where they are of another number of words.
        """
        for name, column in zip(self._fields, self, strict=True):
            if len(column) != len(sentence):
                raise ValueError(
                    f"{name} has {len(column)} values for a sentence of {len(sentence)} words"
                )
        return replace(
            sentence, lemmas=self.lemmas, upos=self.upos, xpos=self.xpos, feats=self.feats
        )

    def column(self, name: str) -> tuple[str, ...]:
        """A column by its name in CoNLL-U, such as "UPOS"."""
        column: tuple[str, ...] = getattr(self, COLUMNS[name])
        return column


def check_upos(sentences: Iterable[Sentence]) -> None:
    """Raises UserError where no word has UPOS: no tagger can learn from such sentences."""
    if not any(tag != "_" for sentence in sentences for tag in sentence.upos):
        raise UserError(
            "no word has UPOS, so no tagger can be trained; use gold tags (--tags gold)"
        )


class Tagger(Protocol):
    """A trained tagger."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `COLUMNS` that it gives; the others it leaves "_"."""
        ...

    def tag(self, sentences: Iterable[Sentence]) -> Iterator[Tags]:
        """The tags of each sentence from its words alone, in order."""
        ...


class TaggerSpec(Trainable, Protocol):
    """A tagger to be trained: its kind and settings."""

    def open(self, directory: Path) -> Tagger:
        """The tagger that `train` wrote."""
        ...
