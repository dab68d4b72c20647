"""Sentences as the flat arrays that the sampling parser works on."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.properties import BOUNDARY, FIRST_ID, FIRST_MORPH, ROOT, Schema
from tk_spacy.treebank import Sentence

Int32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Sentences one after the other, n + 2 rows for one of n words: root, words, boundary.

    fields: int32[rows, F + 1], the schema's fields, then the whole tag.  starts, lengths: int32[S],
    each sentence's rows.  seeds: uint64[S], of its search.
    heads, labels: int32[rows], the gold trees, 0 beside the words; None where there are none.
    """

    fields: Int32
    starts: Int32
    lengths: Int32
    seeds: NDArray[np.uint64]
    heads: Int32 | None = None
    labels: Int32 | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def words(self) -> int:
        """Number of words."""
        return int(self.lengths.sum()) - 2 * len(self)

    def rows(self, i: int) -> slice:
        """The rows of a sentence."""
        start = int(self.starts[i])
        return slice(start, start + int(self.lengths[i]))


def encode(
    schema: Schema, sentences: Sequence[Sentence], *, seed: int = 0, with_trees: bool = False
) -> Corpus:
    """The arrays of sentences.

    A search's seed comes from the sentence's own values, so a sentence is parsed in the same way
    wherever it stands.
    """
    lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int32)
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    n_fields = FIRST_MORPH + len(schema.morph) + 1
    fields = np.empty((int(lengths.sum()), n_fields), dtype=np.int32)
    seeds = np.empty(len(sentences), dtype=np.uint64)
    heads = np.zeros(len(fields), dtype=np.int32) if with_trees else None
    labels = np.zeros(len(fields), dtype=np.int32) if with_trees else None
    tags: dict[tuple[str, str, str], int] = {}
    for i, (sentence, start) in enumerate(zip(sentences, starts.tolist(), strict=True)):
        end = start + len(sentence) + 2
        fields[start:end, :-1] = schema.encode(sentence).fields
        fields[start, -1] = ROOT
        fields[end - 1, -1] = BOUNDARY
        xpos = sentence.xpos if schema.pos_column == "XPOS" else sentence.upos
        fields[start + 1 : end - 1, -1] = [
            _tag(tags, triple) for triple in zip(sentence.upos, xpos, sentence.feats, strict=True)
        ]
        seeds[i] = zlib.crc32(fields[start:end].tobytes()) + (seed << 32)
        if heads is not None and labels is not None:
            heads[start + 1 : end - 1] = sentence.heads
            labels[start + 1 : end - 1] = [schema.label_id(name) for name in sentence.deprels]
    return Corpus(fields, starts, lengths, seeds, heads, labels)


def _tag(known: dict[tuple[str, str, str], int], triple: tuple[str, str, str]) -> int:
    """The number of a whole tag: hashed, so that no table needs to be kept."""
    number = known.get(triple)
    if number is None:
        value = zlib.crc32("\t".join(triple).encode())
        number = known[triple] = FIRST_ID + value % (2**31 - FIRST_ID)
    return number
