"""Where the sentences of a Doc begin and end, and which of their tokens are words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from spacy.attrs import IS_SPACE, SENT_START

from tk_spacy.utils.array_types import Intp

if TYPE_CHECKING:
    from spacy.tokens import Doc

Span = tuple[int, int]
"""Start and end of a sentence, as in doc[start:end]."""


def sentence_spans(doc: Doc) -> list[Span]:
    """The sentences of a Doc, in order; together they are all of it, none where it is empty.

    A sentence begins at the first token, whatever the Doc says of it, and wherever
    `token.is_sent_start` is True; not where it is False, nor where it is None (not set).  So a Doc
    without sentence starts is one sentence.  White space may begin a sentence as words do, and may
    be all of one.  These are the bounds of `doc.sents`, which raises where none are set and asks
    `doc.user_hooks`, as this does not.
    """
    attributes: list[Any] = [SENT_START]
    return spans_of_starts(doc.to_array(attributes) == 1)


def spans_of_starts(starts: ArrayLike) -> list[Span]:
    """The sentences of n tokens, as above.  starts: bool[n], which tokens begin one."""
    marks = np.array(starts, dtype=bool)
    marks[:1] = True
    places = np.flatnonzero(marks).tolist()
    return list(zip(places, [*places[1:], len(marks)], strict=False))


def words_of_spans(doc: Doc, spans: Sequence[Span]) -> list[Intp]:
    """The places in the Doc of each span's words: of its tokens that are no white space.

    intp[m] each, m being 0 where a span is nothing but white space.
    """
    attributes: list[Any] = [IS_SPACE]
    is_word = doc.to_array(attributes) == 0
    return [start + np.flatnonzero(is_word[start:end]) for start, end in spans]
