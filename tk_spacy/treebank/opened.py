"""A CoNLL-U file that is opened once, and looked into before its sentences are read.

What may be a treebank or a k-best file is told by its first comments.  Pipes and standard input can
only be opened once, so the lines that were looked at are kept for the reader.
"""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tk_spacy.errors import TreebankError
from tk_spacy.treebank.conllu import Trees
from tk_spacy.treebank.reader import Reader, check_plain, unreadable
from tk_spacy.treebank.sentence import Sentence

STDIN = "-"
STDIN_NAME = "standard input"


class OpenTreebank:
    """An open file, of which the lines up to its first word have been read.

    path: a file, a pipe, or STDIN.
    name: of the file in messages.
    comments: of the first sentence, without line ends.

    Raises TreebankError where it cannot be read, is compressed, or holds nothing but blank lines.
    The file is closed when its sentences have been read, or when they and this object are let go.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        self.name = STDIN_NAME if path == STDIN else path
        lines = _lines(path, self.name)
        seen: list[bytes] = []
        comments: list[bytes] = []
        for line in lines:
            if not seen:
                check_plain(self.name, line)
            seen.append(line)
            text = line.removeprefix(BOM_UTF8) if len(seen) == 1 else line
            if text.startswith(b"#"):
                comments.append(text.rstrip(b"\r\n"))
            elif comments or text.strip(b" \r\n"):
                break
        else:
            if not comments:
                raise self._empty()
        # What is not UTF-8 is an error of the reader's, which names its line.
        self.comments = tuple(line.decode(errors="replace") for line in comments)
        self._unread: Iterator[bytes] | None = chain(seen, lines)

    def sentences(
        self, *, trees: Trees = "required", single_root: bool = True
    ) -> Iterator[Sentence]:
        """The sentences, as `read_conllu` reads them; they can be read once.

        The first one is read at once, so that what is wrong from the start is said at the start.
        """
        if self._unread is None:
            raise ValueError(f"the sentences of {self.name} were read before")
        # Not kept here: who stops early and lets the sentences go closes the file.
        unread, self._unread = self._unread, None
        reader = Reader(self.name, trees == "required", single_root, any_trees=trees == "any")
        sentences = reader.sentences(unread)
        first = next(sentences, None)
        if first is None:
            raise self._empty()
        return chain([first], sentences)

    def _empty(self) -> TreebankError:
        cure = "give a file with CoNLL-U in it"
        return TreebankError(self.name, 0, f"the file holds no sentence; {cure}")


def _lines(path: str, name: str) -> Iterator[bytes]:
    """A generator, which closes its file at its end or when nobody wants it any more."""
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise TreebankError(name, 0, "it is closed; give a file, or something to read")
            yield from sys.stdin.buffer
        else:
            with Path(path).open("rb") as file:
                yield from file
    except OSError as error:
        raise unreadable(name, error) from error
