"""Names of the kinds of parsers, of the spaCy components and of searches, each in one place."""

from __future__ import annotations

from typing import Literal

SAMPLING, SPACY, BIAFFINE, UDPIPE = "sampling", "spacy", "biaffine", "udpipe"
PARSER_NAMES = (SAMPLING, SPACY, BIAFFINE, UDPIPE)
DEFAULT_PARSERS = (SAMPLING, SPACY, BIAFFINE)
FILE = "file"
FILE_PREFIX = f"{FILE}:"
"""Before the name that the user gives to another parser, whose trees are in files."""

TK_PARSER, TK_BIAFFINE, TK_UDPIPE = "tk_parser", "tk_biaffine", "tk_udpipe"
TK_RERANKER = "tk_reranker"
"""Factories of our spaCy components."""

Search = Literal["discrepancy", "beam", "both"]
SEARCHES: tuple[Search, ...] = ("discrepancy", "beam", "both")
"""How spaCy's parser looks for its k best trees, the default first."""


def backward_name(component: str) -> str:
    """Name of a parser's twin that reads from right to left."""
    return f"{component}_backward"
