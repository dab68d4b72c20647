"""The words of a treebank in one row, with the tree around each, as arrays and lists.

All signals are columns beside this row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32

NONE = "_"
"""What CoNLL-U writes for no value."""
EDGE = "<edge>"
"""Stands for the word beyond the first or last one, and for the artificial root."""
FUNCTION_LABELS = frozenset({"case", "mark", "cop", "aux", "det", "cc"})
"""Relations (without subtype) of words that mark how their head is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A row of n words.

    sentences: where they stand, in order.
    starts: int64[n_sentences + 1], row of each sentence's first word.
    sentence: int32[n], number of each word's sentence.
    heads: int32[n], row of each word's head, -1 for the root's child.
    forms (lower case), lemmas, upos, xpos, feats, deprels: n texts each.  A missing lemma is the
        form.
    markers: n texts, the lemmas of a word's function words, sorted.
    """

    sentences: tuple[Sentence, ...]
    starts: np.ndarray
    sentence: Int32
    heads: Int32
    forms: list[str]
    lemmas: list[str]
    upos: list[str]
    xpos: list[str]
    feats: list[str]
    deprels: list[str]
    markers: list[str]

    def __len__(self) -> int:
        return len(self.forms)

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Words:
        """The words of sentences with trees; ValueError for one without."""
        for sentence in sentences:
            if not sentence.has_tree:
                raise ValueError(f"sentence {sentence.sent_id} has no tree")
        lengths = [len(sentence) for sentence in sentences]
        starts = np.cumsum([0, *lengths])
        number = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        heads = np.concatenate([s.heads for s in sentences]) if sentences else np.zeros(0, np.int32)
        heads = np.where(heads > 0, heads - 1 + starts[number], -1).astype(np.int32)
        forms = [form.lower() for s in sentences for form in s.forms]
        lemmas = [lemma for s in sentences for lemma in s.lemmas]
        lemmas = [
            form if lemma == NONE else lemma for form, lemma in zip(forms, lemmas, strict=True)
        ]
        deprels = [label for s in sentences for label in s.deprels]
        marks: list[list[str]] = [[] for _ in forms]
        for row, head in enumerate(heads.tolist()):
            if head >= 0 and universal(deprels[row]) in FUNCTION_LABELS:
                marks[head].append(lemmas[row])
        return cls(
            sentences=tuple(sentences),
            starts=starts,
            sentence=number,
            heads=heads,
            forms=forms,
            lemmas=lemmas,
            upos=[tag for s in sentences for tag in s.upos],
            xpos=[tag for s in sentences for tag in s.xpos],
            feats=[feats for s in sentences for feats in s.feats],
            deprels=deprels,
            markers=[" ".join(sorted(found)) for found in marks],
        )

    def of_head(self, column: Sequence[str]) -> list[str]:
        """The value of each word's head in a column, EDGE for the artificial root."""
        return [EDGE if head < 0 else column[head] for head in self.heads.tolist()]

    def beside(self, column: Sequence[str], offset: int) -> list[str]:
        """The value of the word `offset` to the right (or left) in the sentence, else EDGE."""
        found = []
        for row, number in enumerate(self.sentence.tolist()):
            other = row + offset
            inside = self.starts[number] <= other < self.starts[number + 1]
            found.append(column[other] if inside else EDGE)
        return found

    @property
    def directions(self) -> list[str]:
        """ "<" for a word that stands before its head, ">" after it, "0" for the root's child."""
        return [
            "0" if head < 0 else "<" if row < head else ">"
            for row, head in enumerate(self.heads.tolist())
        ]

    @property
    def distances(self) -> list[int]:
        """Words from each word to its head, in bins: 1, 2, 3, 4, 5, 7 and 11 and more; 0: root."""
        apart = np.abs(np.arange(len(self)) - self.heads)
        binned = np.array([0, 1, 2, 3, 4, 5, 7, 11])
        found = binned[np.searchsorted(binned, apart, side="right") - 1]
        return np.where(self.heads < 0, 0, found).tolist()

    def place(self, row: int) -> tuple[Sentence, int]:
        """The sentence of a word, and its number there, from 1."""
        number = int(self.sentence[row])
        return self.sentences[number], row - int(self.starts[number]) + 1

    def name(self, number: int) -> str:
        """What a sentence is called, see `name_of`."""
        return name_of(self.sentences[number])


def name_of(sentence: Sentence) -> str:
    """The sent_id of a sentence; where it begins if it has none that a table can hold."""
    sent_id = sentence.sent_id
    if not sent_id or sent_id == NONE or "\t" in sent_id:
        return f"{sentence.path}:{sentence.line}"
    return sent_id


def universal(label: str) -> str:
    """A relation without its subtype."""
    return label.partition(":")[0]


def ids(*columns: Iterable[Hashable]) -> Int32:
    """Numbers of the combined values of columns, int32[n], from 0 in order of first use."""
    known: dict[Hashable, int] = {}
    keys = zip(*columns, strict=True) if len(columns) > 1 else columns[0]
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), dtype=np.int32)
