"""Sentences as the flat arrays that the sampling parser works on."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tk_spacy.features.schema import BOUNDARY, FIRST_ID, ROOT, Schema
from tk_spacy.features.word_properties import shape
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32

EXTRA = ("tag", "prefix", "suffix 2", "suffix 3", "shape", "class")
"""Columns behind the FEATS attributes: see `_extra_row`.  The schema's extras follow them."""
N_EXTRA = len(EXTRA)

CLASSES = {"PUNCT": 1, "VERB": 2, "AUX": 2, "CCONJ": 3, "SCONJ": 4}
"""Words that part a sentence, by UPOS; templates count those between head and modifier."""


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Sentences one after the other, n + 2 rows for one of n words: root, words, boundary.

    fields: int32[rows, F + N_EXTRA + E], the schema's fields, then those of EXTRA, then those of
        the schema's extras.
    starts, lengths: int32[S], each sentence's rows.  seeds: uint64[S], of its search.
    heads, labels: int32[rows], the gold trees, 0 beside the words; None where there are none.
    nodes: int32[rows, P], the schema's node rows, for a kernel; None where nobody asked.
    """

    fields: Int32
    starts: Int32
    lengths: Int32
    seeds: NDArray[np.uint64]
    heads: Int32 | None = None
    labels: Int32 | None = None
    nodes: Int32 | None = None

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
    schema: Schema,
    sentences: Sequence[Sentence],
    *,
    seed: int = 0,
    with_trees: bool = False,
    with_nodes: bool = False,
) -> Corpus:
    """The arrays of sentences.  Raises ValueError where a tree is wanted and missing.

    A search's seed comes from the sentence's own values, so a sentence is parsed in the same way
    wherever it stands.
    """
    lengths = np.array([len(sentence) + 2 for sentence in sentences], dtype=np.int32)
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    first, last = schema.n_columns, schema.n_columns + N_EXTRA
    fields = np.empty((int(lengths.sum()), last + len(schema.extras)), dtype=np.int32)
    seeds = np.empty(len(sentences), dtype=np.uint64)
    heads = np.zeros(len(fields), dtype=np.int32) if with_trees else None
    labels = np.zeros(len(fields), dtype=np.int32) if with_trees else None
    nodes = None
    if with_nodes:
        nodes = np.empty((len(fields), len(schema.properties)), dtype=np.int32)
    known: dict[tuple[str, ...], list[int]] = {}
    for i, (sentence, start) in enumerate(zip(sentences, starts.tolist(), strict=True)):
        end = start + len(sentence) + 2
        of_schema = schema.encode_fields(sentence)
        fields[start:end, :first] = of_schema[:, :first]
        fields[start:end, last:] = of_schema[:, first:]
        fields[start, first:last] = ROOT
        fields[end - 1, first:last] = BOUNDARY
        fields[[start, end - 1], last - 1] = 0
        if nodes is not None:
            nodes[start:end] = schema.encode(sentence).nodes
        xpos = sentence.xpos if schema.pos_column == "XPOS" else sentence.upos
        columns = zip(sentence.forms, sentence.upos, xpos, sentence.feats, strict=True)
        for row, word in enumerate(columns, start=start + 1):
            extra = known.get(word)
            if extra is None:
                extra = known[word] = _extra_row(*word)
            fields[row, first:last] = extra
        seeds[i] = zlib.crc32(fields[start:end].tobytes()) + (seed << 32)
        if heads is not None and labels is not None:
            if not sentence.has_tree:
                raise ValueError(f"sentence {i + 1} has no tree, expected HEAD of every word")
            heads[start + 1 : end - 1] = sentence.heads
            labels[start + 1 : end - 1] = [schema.label_id(name) for name in sentence.deprels]
    return Corpus(fields, starts, lengths, seeds, heads, labels, nodes)


def _extra_row(form: str, upos: str, xpos: str, feats: str) -> list[int]:
    """The whole tag (UPOS, XPOS and all FEATS as one value), affixes, shape and class of a word.

    Values but the class are hashed, so that no tables need to be kept.
    """
    lower = form.lower()
    return [
        _hashed("\t".join((upos, xpos, feats))),
        _hashed(lower[:3]),
        _hashed(lower[-2:]),
        _hashed(lower[-3:]),
        _hashed(shape(form)),
        CLASSES.get(upos, 0),
    ]


def _hashed(value: str) -> int:
    return FIRST_ID + zlib.crc32(value.encode()) % (2**31 - FIRST_ID)
