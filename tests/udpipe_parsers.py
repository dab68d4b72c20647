"""A small UDPipe parser that several test modules use: made once."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import pytest

from tk_spacy.parsers.udpipe.parser import UdpipeParser
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.parsers.udpipe.training import train_udpipe_parser
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.treebank.synthetic import generate

QUICK = {"iterations": 2, "hidden_layer": 20, "embedding_form": 10}
SENTENCES = list(generate(40, seed=3))
NEW = list(generate(12, seed=5))

needs_udpipe = pytest.mark.skipif(
    importlib.util.find_spec("ufal") is None, reason="ufal.udpipe is not installed"
)


@functools.cache
def parser() -> UdpipeParser:
    return train_udpipe_parser(SENTENCES, settings=UdpipeSettings(**QUICK))


def parsed(parser: UdpipeParser, sentences: list[Sentence]) -> list[tuple[list[int], Any]]:
    return [(heads.tolist(), deprels) for heads, deprels in parser.parse(sentences)]
