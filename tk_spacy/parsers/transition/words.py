"""Sentences as the flat arrays that the transition parser works on.

Values of columns are hashed, so that no tables of them need to be kept: what training never saw has
features without weight.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tk_spacy.features.schema import by_frequency, choose_pos_column
from tk_spacy.treebank.conllu import Sentence, parse_feats
from tk_spacy.utils.array_types import Int32
from tk_spacy.utils.stored_rows import joined_rows, row_bytes

COLUMNS = ("form", "lemma", "pos", "cpos", "tag", "suffix")
"""Columns before those of FEATS attributes, as in templates.pxd."""
MOST_FEATS = 16
NONE, ROOT, BOUNDARY, FIRST = 0, 1, 2, 3
"""No value, the artificial root, no word; values are from FIRST on."""
MOST_KNOWN = 200_000
"""Words whose rows are remembered before all are forgotten."""


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Sentences one after the other, n + 2 rows for one of n words: root, words, no word.

    fields: int32[rows, F].  starts, lengths: int32[S], each sentence's rows.
    heads, labels: int32[rows], the gold trees, 0 and -1 beside the words; None without.
    """

    fields: Int32
    starts: Int32
    lengths: Int32
    heads: Int32 | None = None
    labels: Int32 | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, i: int) -> slice:
        """The rows of a sentence."""
        start = int(self.starts[i])
        return slice(start, start + int(self.lengths[i]))


@dataclass(slots=True)
class Reading:
    """What is read of words, and in which direction.

    feats: FEATS attributes with features of their own.  xpos: whether XPOS is read.
    columns: the columns of CoNLL-U beside FORM that had values in training.
    labels: the DEPREL values, by their ids.  backward: whether words are read from right to left.
    """

    feats: tuple[str, ...]
    xpos: bool
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    backward: bool
    _rows: dict[tuple[str, ...], bytes] = field(init=False, repr=False, default_factory=dict)
    _ids: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._ids = {name: i for i, name in enumerate(self.labels)}

    @classmethod
    def fit(
        cls, sentences: Sequence[Sentence], *, xpos: bool, backward: bool, n_feats: int
    ) -> Reading:
        """What to read of a treebank's words: the FEATS attributes on most words, for example."""
        own_xpos = xpos and choose_pos_column(sentences) == "XPOS"
        filled = {
            "LEMMA": any(value != "_" for s in sentences for value in s.lemmas),
            "UPOS": any(value != "_" for s in sentences for value in s.upos),
            "XPOS": own_xpos,
            "FEATS": any(value != "_" for s in sentences for value in s.feats),
        }
        return cls(
            feats=tuple(by_frequency(sentences)[:n_feats]),
            xpos=own_xpos,
            columns=tuple(name for name, there in filled.items() if there),
            labels=tuple(sorted({label for s in sentences for label in s.deprels})),
            backward=backward,
        )

    def label_id(self, deprel: str) -> int:
        """The id of a DEPREL, -1 where training never saw it."""
        return self._ids.get(deprel, -1)

    def encode(self, sentences: Sequence[Sentence], *, with_trees: bool = False) -> Corpus:
        """The arrays of sentences.  Raises ValueError where a tree is wanted and missing."""
        lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int32)
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        root, boundary = (
            row_bytes([value] * len(COLUMNS) + [NONE] * len(self.feats))
            for value in (ROOT, BOUNDARY)
        )
        rows: list[bytes] = []
        for sentence in sentences:
            rows.append(root)
            words = list(
                zip(sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats,
                    strict=True)
            )  # fmt: skip
            rows += map(self._row, reversed(words) if self.backward else words)
            rows.append(boundary)
        fields = joined_rows(rows) if rows else np.zeros((0, len(root) // 4), dtype=np.int32)
        heads = labels = None
        if with_trees:
            heads = np.zeros(len(fields), dtype=np.int32)
            labels = np.full(len(fields), -1, dtype=np.int32)
            for i, (sentence, start) in enumerate(zip(sentences, starts.tolist(), strict=True)):
                if not sentence.has_tree:
                    raise ValueError(f"sentence {i + 1} has no tree, expected HEAD of every word")
                words_of = slice(start + 1, start + 1 + len(sentence))
                heads[words_of] = self.turned(sentence.heads)
                ids = [self.label_id(name) for name in sentence.deprels]
                labels[words_of] = ids[::-1] if self.backward else ids
        return Corpus(fields, starts, lengths, heads, labels)

    def turned(self, heads: Int32) -> Int32:
        """HEAD int32[..., n] as read."""
        if not self.backward:
            return heads
        back = heads[..., ::-1]
        return np.where(back == 0, 0, heads.shape[-1] + 1 - back).astype(np.int32)

    def _row(self, word: tuple[str, ...]) -> bytes:
        row = self._rows.get(word)
        if row is None:
            if len(self._rows) >= MOST_KNOWN:
                self._rows.clear()
            row = self._rows[word] = row_bytes(self._new_row(*word))
        return row

    def _new_row(self, form: str, lemma: str, upos: str, xpos: str, feats: str) -> list[int]:
        lower = form.lower()
        tag = xpos if self.xpos else ""
        given = parse_feats(feats) if feats != "_" else {}
        return [
            _hashed(lower),
            _hashed(lemma),
            _hashed(tag or upos),
            _hashed(upos),
            _hashed("\t".join((upos, tag, feats))),
            _hashed(lower[-3:]),
            *(_hashed(given[name]) if name in given else NONE for name in self.feats),
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "feats": list(self.feats), "xpos": self.xpos, "columns": list(self.columns),
            "labels": list(self.labels), "backward": self.backward,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """The inverse of `to_dict`.  Raises ValueError where it does not hold together."""
        for name in ("feats", "columns", "labels"):
            values = data[name]
            if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
                raise ValueError(f"{name} are {values!r}, expected a list of texts")
            if len(set(values)) != len(values):
                raise ValueError(f"{name} hold one of them twice")
        for name in ("xpos", "backward"):
            if not isinstance(data[name], bool):
                raise ValueError(f"{name} is {data[name]!r}, expected true or false")
        if len(data["feats"]) > MOST_FEATS:
            raise ValueError(
                f"{len(data['feats'])} FEATS attributes, expected {MOST_FEATS} at most"
            )
        for label in data["labels"]:
            if not label or any(character in label for character in "\t\n\r"):
                raise ValueError(f"label {label!r} is empty or holds a tab or line break")
        return cls(
            feats=tuple(data["feats"]),
            xpos=data["xpos"],
            columns=tuple(data["columns"]),
            labels=tuple(data["labels"]),
            backward=data["backward"],
        )


@lru_cache(maxsize=MOST_KNOWN)
def _hashed(value: str) -> int:
    return FIRST + zlib.crc32(value.encode()) % (2**31 - FIRST)
