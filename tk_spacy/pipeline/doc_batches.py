"""A stream of Docs in batches, alike for all components of a pipeline.

What one component has read of a Doc is remembered until the next one asks for it, and the first
Docs are soon through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc

FIRST = 16
"""Docs of the first batch, which is done before others are shared: it loads what all need."""
MOST_TOKENS = 1500
"""Tokens of a batch of more than one Doc: some dozens of sentences are enough to share."""


def doc_batches(stream: Iterable[Doc], size: int | None, *, most: int) -> Iterator[list[Doc]]:
    """A stream in batches.

    size: Docs of each, None for `most`, which there are at most in any case.

    The first one has FIRST at most; those of more than one Doc have MOST_TOKENS at most.
    """
    size = most if size is None else max(1, min(size, most))
    most = min(size, FIRST)
    batch: list[Doc] = []
    tokens = 0
    for doc in stream:
        if batch and tokens + len(doc) > MOST_TOKENS:
            yield batch
            batch, tokens, most = [], 0, size
        batch.append(doc)
        tokens += len(doc)
        if len(batch) == most:  # who waits for it need not wait for the next Doc
            yield batch
            batch, tokens, most = [], 0, size
    if batch:
        yield batch
