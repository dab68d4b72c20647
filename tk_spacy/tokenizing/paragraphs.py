"""Plain text in paragraphs, which a tokenizer takes one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MOST = 1 << 16
"""Characters that are handed on at once, whether the paragraph ends there or not."""

_CLEAN = str.maketrans(
    {
        "\0": " ",  # which ends a text for UDPipe
        "\t": " ",
        **dict.fromkeys(map(chr, range(0x1C, 0x20)), " "),
        **dict.fromkeys("\r\v\f\x85\u2028\u2029", "\n"),
    }
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class Paragraph(NamedTuple):
    """Some text without blank lines in it, perhaps none.

    ends: whether the paragraph ends with it; False where more of it follows.
    """

    text: str
    ends: bool


def clean(text: str) -> str:
    """A text of the same length in which white space is what tokenizers know.

    Null characters and tabs become spaces, all that ends a line a line feed, and halves of
    surrogate pairs, which are no characters, U+FFFD.
    """
    return _SURROGATES.sub("\ufffd", text.replace("\r\n", " \n").translate(_CLEAN))


def paragraphs(pieces: Iterable[str]) -> Iterator[Paragraph]:
    """The paragraphs of a text that comes in pieces, some of them perhaps empty.

    Blank lines part them.  A piece must not end amid a line end of two characters.
    """
    rest = ""
    for piece in pieces:
        rest += clean(piece)
        if len(rest) <= MOST:
            continue
        *whole, rest = _BLANK_LINES.split(rest)
        yield from _ended(whole)
        while len(rest) > MOST:
            # Before white space, so that no word is cut, and no blank line that goes on.
            cut = _last_space(rest[:MOST]) or MOST
            yield Paragraph(rest[:cut], False)
            rest = rest[cut:]
    yield from _ended(_BLANK_LINES.split(rest))


def _ended(texts: Iterable[str]) -> Iterator[Paragraph]:
    # An empty one may end another that was begun.
    for text in texts:
        yield Paragraph(text, True)


def _last_space(text: str) -> int:
    """Where the last white space after a word begins, 0 where there is none."""
    place = len(text)
    while place and not text[place - 1].isspace():
        place -= 1
    return len(text[:place].rstrip())
