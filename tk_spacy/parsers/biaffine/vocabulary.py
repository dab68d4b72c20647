"""Words as rows of embedding tables: what the network reads of a sentence.

Two groups of columns, each with a table of its own whose rows are summed: what belongs to the word
(form, lemma, affixes, shape) and what to its tags (UPOS, XPOS, each FEATS attribute, and all of
them as one value).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tk_spacy.features.word_properties import shape
from tk_spacy.treebank.conllu import Sentence, parse_feats
from tk_spacy.treebank.data_notes import COLUMNS
from tk_spacy.utils.array_types import Int32
from tk_spacy.utils.stored_rows import joined_rows, row_bytes

NONE, ROOT = 0, 1
"""Rows of both tables: no value, which adds nothing, and the artificial root."""
FIRST = 2
ROOT_ROWS = (row_bytes([ROOT]), row_bytes([ROOT]))

WORD_COLUMNS = ("form", "lemma", "prefix 1", "prefix 2", "prefix 3", "suffix 1", "suffix 2",
                "suffix 3", "suffix 4", "shape")  # fmt: skip
XPOS = "xpos"
MIN_COUNT: Mapping[str, int] = {"form": 2, "lemma": 2, XPOS: 2, "tag": 2}
DEFAULT_MIN_COUNT = 3
MOST_KNOWN = 200_000
"""Words whose rows are remembered before all are forgotten."""


@dataclass(slots=True, weakref_slot=True)
class Vocabulary:
    """The rows of both tables.

    words, tags: the row of each column, tab and value, from FIRST on.
    A value that is not there has the row of its column alone (column and tab), which is trained on
    rare values.
    """

    words: dict[str, int]
    tags: dict[str, int]
    _known: dict[tuple[str, ...], tuple[bytes, bytes]] = field(
        init=False, repr=False, default_factory=dict
    )
    _known_tags: dict[tuple[str, ...], bytes] = field(init=False, repr=False, default_factory=dict)
    _columns: tuple[str, ...] | None = field(init=False, repr=False, default=None)

    @classmethod
    def fit(cls, sentences: Sequence[Sentence], *, xpos: bool = True) -> Vocabulary:
        """The values of a treebank that are frequent enough, most frequent ones first.

        xpos: whether the XPOS column counts; without it the parser never looks at it.
        """
        counts = Counter(
            word
            for s in sentences
            for word in zip(s.forms, s.lemmas, s.upos, s.xpos, s.feats, strict=True)
        )
        words: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for word, n in counts.items():
            read = word if xpos else _without_xpos(word)
            for keys, table in ((word_keys(*word), words), (tag_keys(*read), tags)):
                for key in keys:
                    table[key] += n
        return cls(_number(words), _number(tags))

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of both tables."""
        return len(self.words) + FIRST, len(self.tags) + FIRST

    @property
    def reads_xpos(self) -> bool:
        """Whether the XPOS column counts."""
        return f"{XPOS}\t" in self.tags

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of CoNLL-U beside FORM that had values in training."""
        if self._columns is None:
            parts = [key.partition("\t") for key in (*self.words, *self.tags)]
            filled = {column.split(" ")[0] for column, _, value in parts if value not in ("", "_")}
            self._columns = tuple(name for name in COLUMNS if name.lower() in filled)
        return self._columns

    def encode_all(self, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        """Rows of the word table int32[n + 1, W] and of the tag table int32[n + 1, T], in order.

        Of each sentence row 0 is the root; unused places hold NONE.
        """
        found: list[tuple[bytes, bytes]] = []
        for s in sentences:
            found.append(ROOT_ROWS)
            found += map(self._rows, zip(s.forms, s.lemmas, s.upos, s.xpos, s.feats, strict=True))
        words, tags = zip(*found, strict=True)
        return joined_rows(words), joined_rows(tags)

    def encode(self, sentence: Sentence) -> tuple[Int32, Int32]:
        """`encode_all` of one sentence."""
        return self.encode_all([sentence])

    def _rows(self, word: tuple[str, ...]) -> tuple[bytes, bytes]:
        rows = self._known.get(word)
        if rows is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
                self._known_tags.clear()
            of_word = row_bytes(_find(self.words, word_keys(*word)))
            rows = self._known[word] = of_word, self._tag_row(word)
        return rows

    def _tag_row(self, word: tuple[str, ...]) -> bytes:
        # Words are many, their tags few.
        tags = word[2:]
        row = self._known_tags.get(tags)
        if row is None:
            read = word if self.reads_xpos else _without_xpos(word)
            row = self._known_tags[tags] = row_bytes(_find(self.tags, tag_keys(*read)))
        return row

    def to_dict(self) -> dict[str, Any]:
        """Plain values: keys in the order of their rows."""
        return {"words": list(self.words), "tags": list(self.tags)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Vocabulary:
        """The inverse of `to_dict`."""
        return cls(
            {key: i for i, key in enumerate(data["words"], start=FIRST)},
            {key: i for i, key in enumerate(data["tags"], start=FIRST)},
        )


def stacked(parts: Sequence[Int32]) -> Int32:
    """Rows one below the other, as wide as the widest; unused places hold NONE."""
    out = np.zeros((sum(map(len, parts)), max(own.shape[1] for own in parts)), dtype=np.int32)
    start = 0
    for own in parts:
        out[start : start + len(own), : own.shape[1]] = own
        start += len(own)
    return out


def word_keys(form: str, lemma: str, upos: str, xpos: str, feats: str) -> list[str]:
    """The keys of a word's own columns."""
    lower = form.lower()
    values = (
        lower, lemma.lower(), lower[:1], lower[:2], lower[:3], lower[-1:], lower[-2:], lower[-3:],
        lower[-4:], shape(form),
    )  # fmt: skip
    return [f"{c}\t{v}" for c, v in zip(WORD_COLUMNS, values, strict=True)]


def tag_keys(form: str, lemma: str, upos: str, xpos: str, feats: str) -> list[str]:
    """The keys of a word's tags; without XPOS where that is empty."""
    keys = [f"upos\t{upos}", f"tag\t{upos} {xpos} {feats}"]
    if xpos:
        keys.insert(1, f"{XPOS}\t{xpos}")
    if feats != "_":
        keys += [f"feats {name}\t{value}" for name, value in parse_feats(feats).items()]
    return keys


def _without_xpos(word: tuple[str, ...]) -> tuple[str, ...]:
    form, lemma, upos, _, feats = word
    return form, lemma, upos, "", feats


def _number(counts: Counter[str]) -> dict[str, int]:
    columns: Counter[str] = Counter()
    for key, n in counts.items():
        columns[key.partition("\t")[0]] += n
    kept = [f"{column}\t" for column in sorted(columns) if columns[column] >= DEFAULT_MIN_COUNT]
    for key, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        column, _, value = key.partition("\t")
        if value and n >= MIN_COUNT.get(column, DEFAULT_MIN_COUNT):
            kept.append(key)
    return {key: i for i, key in enumerate(kept, start=FIRST)}


def _find(table: Mapping[str, int], keys: Iterable[str]) -> list[int]:
    rows = []
    for key in keys:
        row = table.get(key)
        if row is None:
            row = table.get(key[: key.index("\t") + 1], NONE)
        rows.append(row)
    return rows
