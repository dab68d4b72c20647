"""The embedding of a treebank's words: the sum of many small embeddings in two groups.

A word's own group is its form, lemma, affixes and shape, the other one its tags: UPOS, XPOS, each
FEATS attribute (see `vocabulary`).  In training single columns are left out, or one of the groups.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np
import srsly
from spacy.util import registry
from thinc.api import Model, deserialize_attr, serialize_attr
from thinc.types import Ragged

from tk_spacy.errors import UserError
from tk_spacy.parsers.biaffine.batch import Batch
from tk_spacy.parsers.biaffine.chance import generator
from tk_spacy.parsers.biaffine.tables import Tables
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary, stacked
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Int32

NAME = "tk_treebank_embed"
TABLES = ("words", "tags")
SPREAD = 0.1
"""Of the numbers that a training of the parser starts from."""

_OPENED: WeakValueDictionary[bytes, Vocabulary] = WeakValueDictionary()
"""The vocabularies of opened models that are still in use, by a digest of what they hold."""


class Reader(Protocol):
    """What tells the rows of both tables that belong to words: `Vocabulary`, or another one."""

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of both tables."""
        ...

    def encode_all(self, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        """Rows int32[n + sentences, columns] of each table, the root's before each sentence's."""
        ...


@registry.architectures("tk_spacy.TreebankEmbed.v1")
def build_treebank_embed(
    word_width: int = 100,
    tag_width: int = 100,
    dropout: float = 0.2,
    column_dropout: float = 0.15,
) -> Model[Batch, Ragged]:
    """The embedding of words by a vocabulary, for `tk_spacy.BiLSTM.v1` alone.

    It takes sentences and gives their rows, the root's before each sentence's words, and it must
    have got its vocabulary before `initialize`, which `tk_biaffine` sees to.
    word_width, tag_width: of the two groups.
    dropout: how often one of the groups is left out; the other one counts double then.
    column_dropout: share of the single embeddings (a form, a suffix, a FEATS attribute) that are.
    """
    return make_embedding((word_width, tag_width), dropout, column_dropout)


def make_embedding(
    widths: tuple[int, int],
    dropout: float,
    column_dropout: float,
    *,
    vocabulary: Reader | None = None,
    spread: float = SPREAD,
) -> Model[Batch, Ragged]:
    """Such a layer, of any two groups of columns.

    widths, dropout, column_dropout: see `build_treebank_embed`.
    vocabulary: what it reads; None for one of the parser's that is to be set.
    spread: standard deviation of the first numbers in the tables.
    """
    return Model(
        NAME,
        forward,
        init=partial(init, spread=spread),
        dims={"nO": sum(widths)},
        attrs={
            "widths": list(widths),
            "dropout_rate": dropout,
            "column_dropout": column_dropout,
            "vocabulary": Vocabulary({}, {}) if vocabulary is None else vocabulary,
            "has_vocabulary": vocabulary is not None,
        },
        shims=[Tables()],
    )


def embedding_of(model: Model) -> Model[Batch, Ragged] | None:
    """The layer of this kind in a model, None where it has none."""
    return next((node for node in model.walk() if node.name == NAME), None)


def set_vocabulary(model: Model[Batch, Ragged], vocabulary: Vocabulary) -> None:
    """Give such a layer its vocabulary, before it is initialized."""
    model.attrs["vocabulary"] = vocabulary
    model.attrs["has_vocabulary"] = True


@contextmanager
def encoding_once(model: Model[Any, Any], sentences: Sequence[Sentence]) -> Iterator[None]:
    """While this lasts, the model reads none but these sentences, and looks up their rows once.

    A training reads each of them many times.  A model without a layer of this kind is left alone.
    """
    embedding = embedding_of(model)
    if embedding is None:
        yield
        return
    reader = embedding.attrs["vocabulary"]
    embedding.attrs["vocabulary"] = _EncodedOnce(reader, sentences)
    try:
        yield
    finally:
        embedding.attrs["vocabulary"] = reader


class _EncodedOnce:
    """A `Reader` of sentences whose rows are known."""

    def __init__(self, reader: Reader, sentences: Sequence[Sentence]) -> None:
        self.rows = reader.rows
        self._sentences = sentences  # so that no other object gets the id of one
        self._encoded = {id(sentence): reader.encode_all([sentence]) for sentence in sentences}

    def encode_all(self, sentences: Sequence[Sentence]) -> tuple[Int32, Int32]:
        """As `Reader.encode_all`."""
        first, second = zip(*(self._encoded[id(s)] for s in sentences), strict=True)
        return stacked(first), stacked(second)


def tables_of(model: Model[Batch, Ragged]) -> Tables:
    """Its tables."""
    (tables,) = model.shims
    assert isinstance(tables, Tables)
    return tables


def forward(
    model: Model[Batch, Ragged], X: Batch, is_train: bool
) -> tuple[Ragged, Callable[[Ragged], Batch]]:
    """The embedded rows."""
    ops, tables = model.ops, tables_of(model)
    both: list[Any] = list(map(ops.asarray, _encoded(X, model.attrs["vocabulary"])))
    lengths = ops.asarray1i([len(sentence) + 1 for sentence in X.sentences])
    if is_train and model.attrs["column_dropout"]:
        rate = model.attrs["column_dropout"]
        both = [ids * (ops.get_dropout_mask(ids.shape, rate) > 0) for ids in both]
    parts = [tables.read(name, ids) for name, ids in zip(TABLES, both, strict=True)]
    masks: Any = None
    if is_train and model.attrs["dropout_rate"]:
        keep = ops.get_dropout_mask((2, len(parts[0])), model.attrs["dropout_rate"]) > 0
        masks = keep * (2.0 / ops.xp.maximum(keep.sum(axis=0), 1))
        masks = masks.astype(parts[0].dtype)[:, :, None]
        parts = [part * mask for part, mask in zip(parts, masks, strict=True)]
    split = parts[0].shape[1]

    def backprop(d: Ragged) -> Batch:
        data: Any = d.dataXd
        slopes = [data[:, :split], data[:, split:]]
        if masks is not None:
            slopes = [own * mask for own, mask in zip(slopes, masks, strict=True)]
        for name, ids, own in zip(TABLES, both, slopes, strict=True):
            tables.add_slopes(name, ids, own)
        return X

    return Ragged(ops.xp.concatenate(parts, axis=1), lengths), backprop


def _encoded(batch: Batch, reader: Reader) -> Any:
    """What a reader finds of a batch's sentences, once for all networks that share it."""
    found = batch.encoded.get(id(reader))
    if found is None:
        # With the reader itself, so that no other one gets its id.
        found = batch.encoded[id(reader)] = reader, reader.encode_all(batch.sentences)
    return found[1]


def init(
    model: Model[Batch, Ragged], X: Batch | None = None, Y: Any = None, *, spread: float = SPREAD
) -> None:
    """Tables of normally distributed numbers, whose row 0 is 0.  Raises UserError."""
    vocabulary = model.attrs["vocabulary"]
    if not model.attrs["has_vocabulary"]:
        raise UserError(
            "tk_spacy.TreebankEmbed.v1 learns its vocabulary from all sentences, which only "
            "tk_biaffine gives it: use it in the model of that component, and another embedding, "
            "such as spacy.MultiHashEmbed.v2, in a tok2vec that several components share"
        )
    rng, tables = generator(), tables_of(model)
    for name, rows, width in zip(TABLES, vocabulary.rows, model.attrs["widths"], strict=True):
        values: Any = (rng.standard_normal((rows, width)) * spread).astype(np.float32)
        values[0] = 0
        tables.arrays[name] = model.ops.asarray_f(values)


@serialize_attr.register(Vocabulary)
def _serialize(_: Any, value: Vocabulary, name: str, model: Model) -> bytes:
    packed: bytes = srsly.msgpack_dumps(value.to_dict())
    return packed


@deserialize_attr.register(Vocabulary)
def _deserialize(_: Any, value: bytes, name: str, model: Model) -> Vocabulary:
    # Parsers that differ in the seed alone know the same words, which are looked up once for all.
    key = blake2b(value, digest_size=32).digest()
    found = _OPENED.get(key)
    if found is None:
        found = _OPENED[key] = Vocabulary.from_dict(srsly.msgpack_loads(value))
    return found
