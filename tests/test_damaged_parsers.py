"""Stored parsers in which one value or array is wrong: they parse, or are refused in a line.

As `test_damaged_models` has it of rerankers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import biaffine_parsers
import pytest
import test_projective
import test_transition
from damages import (
    Files,
    check_refusal,
    damaged_arrays,
    damaged_contents,
    damaged_meta,
    damaged_msgpack,
)
from sampling_parsers import treebank
from search_kernels import EVERY, with_kernel

from tk_spacy.errors import UserError
from tk_spacy.parsers.base import StoredParser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.serialization import META

NEW = test_transition.NEW
MODELS: dict[str, tuple[Callable[[], StoredParser], Sentence]] = {
    "sampling": (lambda: with_kernel(EVERY), treebank()[1][0]),
    "transition": (test_transition.trained, NEW[0]),
    "projective": (test_projective.trained, NEW[0]),
    "biaffine": (biaffine_parsers.trained, biaffine_parsers.NEW[0]),
}
ARRAYS = {
    "sampling": ("weights.npz", "kernel.npz"),
    "transition": ("weights.npz",),
    "projective": ("weights.npz",),
}
MSGPACKS = {
    "sampling": ("kernel.msgpack",),
    "transition": ("reading.msgpack",),
}


def of(table: dict[str, tuple[str, ...]]) -> list[Any]:
    return [(kind, name) for kind, names in table.items() for name in names]


def check(kind: str, all_files: Iterable[Files], name: str | None, *, least: int = 1) -> None:
    parser, sentence = MODELS[kind]
    model = type(parser())
    refused = 0
    for files in all_files:
        try:
            opened = model.from_files(files, where="here")
        except UserError as error:
            check_refusal(error, name=name, names=model.FILES)
            refused += 1
            continue
        ((heads, labels),) = opened.parse([sentence], n_threads=1)
        assert len(heads) == len(labels) == len(sentence)
        assert set(labels) <= set(opened.labels)
    assert refused >= least


@pytest.mark.parametrize("kind", MODELS)
def test_meta(kind: str) -> None:
    files = MODELS[kind][0]().to_files()
    check(kind, [files], None, least=0)
    check(kind, damaged_meta(files), None, least=30)


@pytest.mark.parametrize(("kind", "name"), of(ARRAYS))
def test_arrays(kind: str, name: str) -> None:
    check(kind, damaged_arrays(MODELS[kind][0]().to_files(), name), name, least=10)


@pytest.mark.parametrize(("kind", "name"), of(MSGPACKS))
def test_vocabularies(kind: str, name: str) -> None:
    check(kind, damaged_msgpack(MODELS[kind][0]().to_files(), name), None, least=20)


@pytest.mark.parametrize("kind", MODELS)
def test_contents(kind: str) -> None:
    files = MODELS[kind][0]().to_files()
    for name, content in files.items():
        damaged = ({**files, name: other} for other in damaged_contents(content))
        check(kind, damaged, name, least=9)
        if name != META:
            missing = {other: kept for other, kept in files.items() if other != name}
            check(kind, [missing], name)
