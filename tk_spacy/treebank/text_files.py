"""Plain text and words one a line: files that are no CoNLL-U yet, read as a stream."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from tk_spacy.errors import TreebankError
from tk_spacy.treebank.opened import STDIN, STDIN_NAME
from tk_spacy.treebank.reader import check_plain, unreadable
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import SurfaceToken, sentence_of_tokens

LOOKED_AT = 1 << 16
"""Bytes at the start of a file that say what it is."""
BLOCK = 1 << 16

_COMMENT = re.compile(rb"#\s*(sent_id|text|newdoc|newpar|global\.columns)\b")
_WORD_LINE = re.compile(rb"\d+(?:[-.]\d+)?(?:\t|(?: +\S+){5} +(?:\d+|_)(?: +\S+){3} *$)")
"""A number and further columns, also ten that spaces part, which the reader will tell."""


def looks_like_conllu(start: bytes) -> bool | None:
    """Whether the first bytes of a file are CoNLL-U, perhaps a faulty one.

    None where they hold nothing but blank lines and comments that may be anything.
    """
    for line in start.removeprefix(codecs.BOM_UTF8).splitlines():
        if _COMMENT.match(line):
            return True
        if line.strip() and not line.startswith(b"#"):
            return _WORD_LINE.match(line) is not None
    return None


def file_start(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file; none of what can be read once only, or not at all."""
    place = Path(path)
    if not place.is_file():
        return b""
    try:
        with place.open("rb") as file:
            return file.read(LOOKED_AT)
    except OSError:
        return b""  # which its reader will tell


def read_text(path: str | os.PathLike[str]) -> Iterator[str]:
    """The text of a UTF-8 file in pieces; line ends are line feeds, a byte-order mark is left out.

    path: a file, a pipe, or "-" for standard input.
    Raises TreebankError, with the line, where it is not UTF-8, and where it cannot be read.
    """
    path = os.fspath(path)
    name = STDIN_NAME if path == STDIN else path
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    ends = io.IncrementalNewlineDecoder(decoder, translate=True)
    lines, is_first = 1, True
    for block in _blocks(path, name):
        if is_first:
            check_plain(name, block)
            is_first = False
        try:
            piece = ends.decode(block)
        except UnicodeDecodeError as error:
            _not_utf8(name, lines, error)
        lines += block.count(b"\n")
        if piece:
            yield piece
    try:
        piece = ends.decode(b"", final=True)
    except UnicodeDecodeError as error:
        _not_utf8(name, lines, error)
    if piece:
        yield piece


def read_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a UTF-8 file, without their ends; all else as in `read_text`."""
    rest: list[str] = []
    for piece in read_text(path):
        first, *others = piece.split("\n")
        rest.append(first)
        if others:
            yield "".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    if last := "".join(rest):
        yield last


def read_vertical(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """Sentences of a file with one word a line and a blank line after each sentence.

    They are numbered from 1.  Raises TreebankError for a line with a tab, and as `read_text` does.
    """
    name = STDIN_NAME if os.fspath(path) == STDIN else os.fspath(path)
    words: list[SurfaceToken] = []
    number = 0
    for line, text in enumerate(read_lines(path), start=1):
        word = text.strip()
        if "\t" in word:
            raise TreebankError(
                name, line,
                "a tab in a file with one word a line; leave one column, or give it as CoNLL-U",
            )  # fmt: skip
        if word:
            words.append(SurfaceToken(word, (word,)))
        elif words:
            number += 1
            yield sentence_of_tokens(words, sent_id=str(number), path=name)
            words = []
    if words:
        yield sentence_of_tokens(words, sent_id=str(number + 1), path=name)


def _blocks(path: str, name: str) -> Iterator[bytes]:
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise TreebankError(name, 0, "it is closed; give a file, or something to read")
            while block := sys.stdin.buffer.read(BLOCK):
                yield block
        else:
            with Path(path).open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
    except OSError as error:
        raise unreadable(name, error) from error


def _not_utf8(name: str, lines: int, error: UnicodeDecodeError) -> NoReturn:
    line = lines + error.object[: error.start].count(b"\n")
    byte = error.object[error.start]
    raise TreebankError(
        name, line, f"not UTF-8 text (byte 0x{byte:02X}: {error.reason}); convert it to UTF-8"
    ) from error
