"""Reads the sentences of a CoNLL-U file, one at a time.

Sentences are split here, not by ``conllu``, whose splitter and token parser drop trailing space,
blank lines, repeated keys and comments without "=" and read three times slower.  Its parsers of
single fields (ids, numbers, comments, FEATS) are used where they lose nothing.  What is accepted
and what refused stands in ``conllu``.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NoReturn

import numpy as np
from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value

from tk_spacy.errors import TreebankError
from tk_spacy.treebank.characters import invisible, name_character, name_invisible
from tk_spacy.treebank.sentence import Layout, Sentence, find_sent_id
from tk_spacy.trees.validity import out_of_range, tree_fault

_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_FEATS = re.compile(r"_|[^=|]+=[^=|]+(?:\|[^=|]+=[^=|]+)*")
"""What FEATS may be; any names and values do, as treebanks before UD have others."""
_POOL_SIZE = 200_000  # strings shared between sentences; bounded, so that memory stays flat
_LAYOUTS = 10_000  # the same of layouts: those with lines of multiword tokens hardly ever recur


def unreadable(path: str, error: OSError) -> TreebankError:
    """What to raise where the system cannot read a file."""
    reason = error.strerror or str(error)
    cure = "give a CoNLL-U file that exists and can be read"
    return TreebankError(path, 0, f"cannot read it: {reason}; {cure}")


def check_plain(path: str, start: bytes) -> None:
    """Raises TreebankError for a file that starts like a compressed one."""
    for mark, name in _COMPRESSED.items():
        if start.startswith(mark):
            cure = "decompress it first, and give the plain file"
            raise TreebankError(path, 0, f"compressed ({name}); {cure}")


class Reader:
    """State of one pass over a file: open place, shared strings, spelling of numbers."""

    def __init__(
        self, path: str, need_trees: bool, single_root: bool, *, any_trees: bool = False
    ) -> None:
        self.path, self.need_trees, self.single_root = path, need_trees, single_root
        self.any_trees = any_trees
        self.pool: dict[str, str] = {}
        self.layouts: dict[Layout, Layout] = {}
        self.ids: tuple[str, ...] = ()
        self.numbers: dict[str, int] = {"0": 0}
        self.known_feats: set[str] = set()

    def sentences(self, lines: Iterator[bytes] | None = None) -> Iterator[Sentence]:
        """Split at blank lines; hold a block until the first line of the next one.

        lines: of the file, where it is open already.
        """
        if lines is not None:
            yield from self._blocks(lines)
            return
        try:
            with Path(self.path).open("rb") as file:
                yield from self._blocks(file)
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _blocks(self, file: Iterator[bytes]) -> Iterator[Sentence]:
        block: list[bytes] = []
        blank: list[bytes] = []
        before = ""
        start = 0
        first = next(file, b"")
        check_plain(self.path, first)
        if first.startswith(BOM_UTF8):
            before, first = "\ufeff", first.removeprefix(BOM_UTF8)
        for number, raw in enumerate(chain([first], file), 1):
            # Nine tabs are ten empty columns, which are refused below.
            if raw < b"!" and not raw.strip(b" \t\r\n") and raw.count(b"\t") < 9:
                blank.append(raw)
                continue
            if blank or not block:
                if block:
                    yield self._sentence(block, b"".join(blank).decode(), before, start)
                    before = ""
                else:
                    before += b"".join(blank).decode()
                block, blank, start = [], [], number
            block.append(raw)
        if block:
            yield self._sentence(block, b"".join(blank).decode(), before, start)

    def _fail(self, line: int, reason: str) -> NoReturn:
        raise TreebankError(self.path, line, reason)

    def _sentence(self, block: list[bytes], blank: str, before: str, start: int) -> Sentence:
        lines, eols, end = self._lines(block, start)
        if lines[0][0] == "\ufeff":
            self._fail(
                start,
                f"{name_character(lines[0][0])} at the start of the line, which belongs to the "
                "start of a file; remove it (files that were joined have such)",
            )
        first = 0
        while first < len(lines) and lines[first][0] == "#":
            first += 1
        comments = tuple(lines[:first])
        self._check_columns_comment(comments, start)
        rows = [line.split("\t") for line in lines[first:]]
        if self.any_trees:
            for row in rows:
                row[6:8] = [value or "_" for value in row[6:8]]
        at = start + first
        if not rows:
            self._fail(start, "comments without a sentence; remove them, or the blank line below")
        if set(map(len, rows)) != {10}:
            self._bad_columns(lines[first:], rows, at)
        columns = list(zip(*rows, strict=True))
        extras: tuple[tuple[int, str], ...] = ()
        where: Sequence[int] = range(at, at + len(rows))  # the line of each word
        if any("" in column for column in columns):
            self._empty_column(rows, at)
        if columns[0] != self._first_ids(len(rows)):
            places, extras = self._order(rows, lines[first:], at)
            columns = list(zip(*(rows[place] for place in places), strict=True))
            where = [at + place for place in places]
        if not self.known_feats.issuperset(columns[5]):
            self._check_feats(columns, where)
        heads = np.array(self._heads(columns, where), np.int32)
        heads.setflags(write=False)
        layout = Layout(before, eols, end + blank, extras)
        if len(self.pool) > _POOL_SIZE:
            self.pool.clear()
        if len(self.layouts) > _LAYOUTS:
            self.layouts.clear()
        share = self.pool.setdefault
        shared = [tuple(map(share, column, column)) for column in columns]
        return Sentence(
            forms=shared[1],
            lemmas=shared[2],
            upos=shared[3],
            xpos=shared[4],
            feats=shared[5],
            heads=heads,
            deprels=shared[7],
            deps=shared[8],
            misc=shared[9],
            comments=comments,
            sent_id=find_sent_id(comments),
            path=self.path,
            line=start,
            layout=self.layouts.setdefault(layout, layout),
        )

    def _lines(self, block: list[bytes], start: int) -> tuple[list[str], tuple[str, ...], str]:
        """The block's lines, the line ends between them, and the last line's own."""
        try:
            text = b"".join(block).decode()
        except UnicodeDecodeError:
            self._bad_encoding(block, start)
        lines = text.split("\n")  # not splitlines: U+2028 and the like belong to the text
        end = "" if lines[-1] else "\n"
        if end:
            lines.pop()
        if "\r" not in text:
            return lines, ("\n",), end
        eols = []
        for i, line in enumerate(lines):
            returns = bool(end or i < len(lines) - 1) and line.endswith("\r")
            lines[i] = line[:-1] if returns else line
            if "\r" in lines[i]:
                cure = "end lines with LF or CRLF"
                self._fail(start + i, f"a carriage return that does not end the line; {cure}")
            eols.append("\r\n" if returns else "\n")
        last = eols.pop()
        end = last if end else ""
        if not eols:
            return lines, (last,), end
        return lines, (eols[0],) if len(set(eols)) == 1 else tuple(eols), end

    def _bad_encoding(self, block: list[bytes], start: int) -> NoReturn:
        for line, raw in enumerate(block, start):
            try:
                raw.decode()
            except UnicodeDecodeError as error:
                bad = f"byte 0x{raw[error.start]:02x} at position {error.start + 1}"
                self._fail(line, f"not UTF-8 ({bad} of the line); convert the file to UTF-8")
        raise AssertionError("every line decodes but their sum does not")

    def _bad_columns(self, lines: list[str], rows: list[list[str]], at: int) -> NoReturn:
        i = next(i for i, row in enumerate(rows) if len(row) != 10)
        if lines[i][0] == "#":
            self._fail(at + i, "a comment inside a sentence; move it above the first word")
        unseen = name_invisible(lines[i].replace("\t", ""))
        if unseen and not lines[i].strip(" \t" + "".join(invisible(lines[i]))):
            self._fail(at + i, f"a line of nothing but {unseen}; make it an empty line")
        found = f"{len(rows[i])} column{'s' * (len(rows[i]) > 1)} instead of 10"
        hint = ", not spaces" if len(rows[i]) == 1 and " " in lines[i] else ""
        hint += f" (the line holds {unseen})" if unseen else ""
        self._fail(at + i, f"{found}; separate the ten CoNLL-U columns by single tabs{hint}")

    def _empty_column(self, rows: list[list[str]], at: int) -> NoReturn:
        i = next(i for i, row in enumerate(rows) if "" in row)
        self._fail(at + i, f'{_NAMES[rows[i].index("")]} is empty; write "_" for no value')

    def _first_ids(self, n: int) -> tuple[str, ...]:
        if n > len(self.ids):
            self.ids = tuple(map(str, range(1, 2 * n + 1)))
            self.numbers.update((number, i) for i, number in enumerate(self.ids, 1))
        return self.ids[:n]

    def _order(
        self, rows: list[list[str]], lines: list[str], at: int
    ) -> tuple[list[int], tuple[tuple[int, str], ...]]:
        """Rows that are words, and the multiword tokens (3-4) and empty nodes (3.1) between."""
        places: list[int] = []
        extras: list[tuple[int, str]] = []
        span_end = empty = 0  # last word of the open range; number of the last empty node
        for i, row in enumerate(rows):
            word = len(places)
            if row[0] == str(word + 1):
                places.append(i)
                empty = 0
                continue
            try:
                value = parse_id_value(row[0])
            except (ParseException, ValueError):  # ValueError: thousands of digits
                value = None
            if value is None or isinstance(value, int):
                self._bad_id(row[0], value, word, at + i)
            elif value[1] == ".":
                if value[::2] != (word, empty + 1) or row[0] != f"{word}.{empty + 1}":
                    expected = f"the next empty node here is {word}.{empty + 1}"
                    self._fail(at + i, f"empty node {row[0]} is out of order; {expected}")
                empty += 1
            else:
                if value[0] != word + 1:
                    cure = f"put it on the line before word {value[0]}"
                    self._fail(at + i, f"multiword token {row[0]} is out of place; {cure}")
                if value[0] <= span_end:
                    cure = "let each word be part of one token"
                    self._fail(at + i, f"multiword token {row[0]} overlaps another; {cure}")
                span_end, span_line = value[2], at + i
            extras.append((word, lines[i]))
        if not places:
            self._fail(at, "no word in the sentence; give it a line with ID 1, or remove it")
        if span_end > len(places):
            token = f"multiword token up to word {span_end}"
            self._fail(span_line, f"{token}, but the sentence has {len(places)}; mend its range")
        return places, tuple(extras)

    def _bad_id(self, found: str, value: int | None, word: int, line: int) -> NoReturn:
        self._visible("ID", found, line)
        if value is None and "-" in found:
            self._fail(line, f"ID {found} is no range of words; write it as FIRST-LAST, as in 3-4")
        if value == 1 and word:
            self._fail(line, "ID 1 inside a sentence; put a blank line between two sentences")
        if value is not None and 0 < value <= word:
            self._fail(line, f"ID {found} twice; number words 1, 2, 3, ... (here {word + 1})")
        self._fail(line, f"ID is {found!r}, expected {word + 1}; number words 1, 2, 3, ...")

    def _heads(self, columns: list[tuple[str, ...]], where: Sequence[int]) -> list[int]:
        column = columns[6]
        self._first_ids(len(column))
        if self.any_trees:
            heads = [self.numbers.get(head, -1) for head in column]
            fault = tree_fault(heads, single_root=self.single_root)
            return [-1] * len(heads) if fault is not None else heads
        try:
            heads = list(map(self.numbers.__getitem__, column))
        except KeyError:
            heads = [self._head(head, i, columns, where[i - 1]) for i, head in enumerate(column, 1)]
            if -1 in heads:
                return heads
        fault = tree_fault(heads, single_root=self.single_root)
        if fault is not None:
            self._fail(where[fault[0] - 1], fault[1])
        return heads

    def _head(self, text: str, word: int, columns: list[tuple[str, ...]], line: int) -> int:
        n = len(columns[0])
        if text == "_":
            if self.need_trees:
                whose = f"word {word} ({columns[1][word - 1]})"
                self._fail(line, f"{whose} has no HEAD, but trees are needed here; annotate it")
            return -1
        try:
            head = parse_int_value(text)
        except (ParseException, ValueError):  # ValueError: thousands of digits
            head = None
        if head is None:
            self._visible(f"HEAD of word {word}", text, line)
            cure = f"write a whole number from 0 to {n}"
            self._fail(line, f"HEAD of word {word} is {text!r}, no whole number; {cure}")
        if not 0 <= head <= n:
            self._fail(line, out_of_range(word, text, n))
        return head

    def _visible(self, what: str, text: str, line: int) -> None:
        """Fail with the names of the characters that make a value wrong and cannot be seen."""
        if unseen := name_invisible(text):
            self._fail(line, f"{what} is {text!r}, which holds {unseen}; remove it")

    def _check_feats(self, columns: list[tuple[str, ...]], where: Sequence[int]) -> None:
        known = self.known_feats
        for word, feats in enumerate(columns[5], 1):
            if feats in known:
                continue
            if not _FEATS.fullmatch(feats):
                whose = f"FEATS of word {word} ({columns[1][word - 1]})"
                self._fail(
                    where[word - 1],
                    f"{whose} is {feats!r}, no list of Name=Value joined by '|'; correct it, or "
                    'write "_"',
                )
            if len(known) >= _POOL_SIZE:
                known.clear()
            known.add(feats)

    def _check_columns_comment(self, comments: tuple[str, ...], start: int) -> None:
        """CoNLL-U Plus declares its columns; with others than the ten nothing would fit."""
        for line, comment in enumerate(comments, start):
            if comment.startswith("# global.columns") and comment.split()[3:] != list(_NAMES):
                self._fail(line, "columns other than CoNLL-U's ten; convert it to plain CoNLL-U")
