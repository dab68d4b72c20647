"""Names that several floors share: the default parsers, the parsers in files, searches.

All else about a kind of parser stands in its own `kind` module (see `parsers.kinds`).
"""

from __future__ import annotations

from typing import Literal

SAMPLING, SPACY, BIAFFINE, TRANSITION = "sampling", "spacy", "biaffine", "transition"
BOTH_WAYS = (TRANSITION, f"{TRANSITION}:direction=backward")
DEFAULT_PARSERS = (BIAFFINE, f"{BIAFFINE}:seed=1", *BOTH_WAYS)
EARLIER_PARSERS = (SAMPLING, SPACY, BIAFFINE)
"""The default before."""
FILE = "file"
FILE_PREFIX = f"{FILE}:"
"""Before the name that the user gives to another parser, whose trees are in files."""

TK_RERANKER = "tk_reranker"
"""The factory of the reranker's spaCy component."""

Search = Literal["discrepancy", "beam", "both"]
SEARCHES: tuple[Search, ...] = ("discrepancy", "beam", "both")
"""How spaCy's parser looks for its k best trees, the default first."""


def backward_name(component: str) -> str:
    """Name of a parser's twin that reads from right to left."""
    return f"{component}_backward"
