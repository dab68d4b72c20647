"""A small biaffine parser that several test modules use: made once, in a second or two."""

from __future__ import annotations

import functools

from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.biaffine.training import train_biaffine_parser
from tk_spacy.treebank.synthetic import generate

QUICK = BiaffineSettings(
    epochs=12, steps=0, batch=200, rate=0.02, word_width=16, tag_width=16, width=16, layers=1,
    arc_width=16, label_width=8, dropout=0.1,
)  # fmt: skip
SENTENCES = list(generate(300, seed=31))
NEW = list(generate(40, seed=32))


@functools.cache
def trained() -> BiaffineParser:
    """The parser; not to be changed."""
    return train_biaffine_parser(SENTENCES, settings=QUICK)
