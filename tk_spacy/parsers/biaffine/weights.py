"""The weights of stored parsers: those of before there was a thinc model, and checks of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from thinc.api import Model

from tk_spacy.parsers.biaffine.batch import Input
from tk_spacy.parsers.biaffine.committee import members_of
from tk_spacy.parsers.biaffine.embedding import (
    TABLES,
    embedding_of,
    set_vocabulary,
    tables_of,
)
from tk_spacy.parsers.biaffine.model import scorer_of
from tk_spacy.parsers.biaffine.recurrent import PARTS
from tk_spacy.parsers.biaffine.scorer import WEIGHTS, weight_shapes
from tk_spacy.parsers.biaffine.vocabulary import Vocabulary
from tk_spacy.utils.claimed_sizes import check_thinc_model
from tk_spacy.utils.serialization import from_msgpack

MOST_WEIGHT = 1e3
"""Weights of a stored parser are smaller; the search relies on scores that are finite numbers."""


def take_old_weights(
    model: Model[Input, Any], vocabulary: Vocabulary, arrays: Mapping[str, Any]
) -> None:
    """Put weights by the names of format version 1 into a model that is not initialized.

    Raises ValueError where they are not those of such a model.
    """
    embedding = embedding_of(model)
    assert embedding is not None
    set_vocabulary(embedding, vocabulary)
    expected: set[str] = set(TABLES)
    for name in TABLES:
        tables_of(embedding).arrays[name] = model.ops.asarray_f(arrays[name])
    n_in = embedding.get_dim("nO")
    for layer, lstm in enumerate(_lstms(model)):
        lstm.set_dim("nI", n_in)
        n_in = lstm.get_dim("nO")
        for part in lstm.param_names:
            expected.add(f"lstm {layer}.{part}")
            lstm.set_param(part, model.ops.asarray_f(arrays[f"lstm {layer}.{part}"]))
    scorer = scorer_of(model)
    scorer.set_dim("nI", n_in)
    scorer.set_dim("nO", arrays["label"].shape[1] // arrays["label"].shape[0])
    for name in WEIGHTS:
        old = name.replace("_", ".")
        expected.add(old)
        scorer.set_param(name, model.ops.asarray_f(arrays[old]))
    if arrays.keys() != expected:
        raise ValueError(f"weights are {sorted(arrays)}, expected {sorted(expected)}")


def take_weights(model: Model[Any, Any], content: bytes) -> None:
    """Put weights that thinc wrote into a model.  Raises ValueError for what is no msgpack."""
    check_thinc_model(from_msgpack(content))
    model.from_bytes(content)


def check_weights(model: Model[Input, Any], *, n_labels: int) -> None:
    """Raises ValueError for weights that are not numbers as they must be, or of another shape."""
    for member in members_of(model):
        scorer = scorer_of(member)
        if scorer.get_dim("nO") != n_labels:
            raise ValueError(f"scores of {scorer.get_dim('nO')} labels, expected {n_labels}")
        check_shapes([*encoder_weights(member), *_scorer_weights(member)])


def check_shapes(weights: Iterable[tuple[str, Any, Any]]) -> None:
    """Raises ValueError for weights that are not numbers as they must be, or of another shape.

    weights: name, array and expected shape; None for the shape of others' layers.
    """
    for name, found, shape in weights:
        if shape is not None and (found.shape != shape or found.dtype != np.float32):
            raise ValueError(f"{name} is {found.dtype}{found.shape}, not float32{shape}")
        if not (abs(found) < MOST_WEIGHT).all():
            raise ValueError(f"{name} beyond {MOST_WEIGHT:g}, whose products may be infinite")


def _lstms(model: Model) -> list[Model]:
    return [node for node in model.walk() if node.name == "tk_lstm"]


def encoder_weights(model: Model[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, array and expected shape of the weights of a model's embedding and LSTMs."""
    embedding = embedding_of(model)
    if embedding is not None:
        widths, rows = embedding.attrs["widths"], embedding.attrs["vocabulary"].rows
        for name, n, width in zip(TABLES, rows, widths, strict=True):
            yield name, tables_of(embedding).arrays[name], (n, width)
    for layer, lstm in enumerate(_lstms(model)):
        n_in, width = lstm.get_dim("nI"), lstm.get_dim("nO") // 2
        shapes: tuple[tuple[int, ...], ...] = (
            (n_in, 8 * width),
            (2, width, 4 * width),
            (8 * width,),
        )
        for part, of_part in zip(PARTS, shapes, strict=True):
            yield f"lstm {layer}.{part}", lstm.get_param(part), of_part


def _scorer_weights(model: Model[Input, Any]) -> Iterator[tuple[str, Any, Any]]:
    scorer = scorer_of(model)
    for name, shape in weight_shapes(scorer).items():
        yield name, scorer.get_param(name), shape
