"""One sentence as columns and arrays, and back to the very bytes it was read from.

A Sentence keeps each column of its words once (equal strings shared between sentences by the
reader) and, instead of the raw text, only what the columns do not tell: comments, lines of
multiword tokens and empty nodes, line ends, blank lines.  The raw text follows from these, since
the reader accepts ID and HEAD in their one canonical spelling only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from conllu.parser import parse_comment_line, parse_dict_value
from numpy.typing import ArrayLike, NDArray

from tk_spacy.trees.validity import check_tree


class Layout(NamedTuple):
    """What a sentence's text holds besides its comments and its words' columns."""

    before: str = ""  # a byte-order mark and blank lines before the first line
    eols: tuple[str, ...] = ("\n",)  # line end after each line but the last; one for all if equal
    after: str = "\n\n"  # the last line's own line end and the blank lines that follow
    extras: tuple[tuple[int, str], ...] = ()  # (words before it, raw line): 3-4 and 3.1


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A sentence of n >= 1 words with the tree that its columns HEAD and DEPREL hold.

    Columns are tuples of n raw column texts ("_" stays "_").  ``heads`` is a read-only int32[n]
    with values 0..n, 0 being the artificial root, and -1 where HEAD is "_".  Equality is identity.
    Made by the readers of ``treebank.conllu`` or by ``from_columns``; the constructor itself
    trusts its arguments.
    """

    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    feats: tuple[str, ...]
    heads: NDArray[np.int32]
    deprels: tuple[str, ...]
    deps: tuple[str, ...]
    misc: tuple[str, ...]
    comments: tuple[str, ...] = ()
    sent_id: str | None = None
    path: str = ""
    line: int = 0
    layout: Layout = field(default_factory=Layout)

    def __len__(self) -> int:
        return len(self.forms)

    def __getstate__(self) -> list[Any]:
        return [getattr(self, item.name) for item in fields(self)]

    def __setstate__(self, state: list[Any]) -> None:
        for item, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, item.name, value)
        self.heads.setflags(write=False)  # a pickled array comes back writable

    @property
    def has_tree(self) -> bool:
        """True if every word has a HEAD."""
        return int(self.heads.min()) >= 0

    @classmethod
    def from_columns(
        cls,
        *,
        forms: Iterable[str],
        lemmas: Iterable[str] | None = None,
        upos: Iterable[str] | None = None,
        xpos: Iterable[str] | None = None,
        feats: Iterable[str] | None = None,
        heads: ArrayLike | None = None,
        deprels: Iterable[str] | None = None,
        misc: Iterable[str] | None = None,
        sent_id: str | None = None,
        single_root: bool = True,
    ) -> Sentence:
        """A sentence that was not read from a file; columns left out are filled with "_".

        Raises ValueError for columns of unequal length, for text that a CoNLL-U column cannot
        hold, and for heads that are no tree (heads are -1 where there are none).
        """
        words = _column("forms", forms, None)
        n = len(words)
        if not n:
            raise ValueError("a sentence needs at least one word, got no forms")
        array = np.full(n, -1, np.int32) if heads is None else _head_array(heads, n)
        if int(array.min()) >= 0:
            _require_tree(array, single_root)
        elif int(array.min()) < -1 or int(array.max()) > n:
            raise ValueError(f"heads must lie in -1..{n}, got {array.tolist()}")
        comments = () if sent_id is None else _comments([f"# sent_id = {sent_id}"])
        return cls(
            forms=words,
            lemmas=_column("lemmas", lemmas, n),
            upos=_column("upos", upos, n),
            xpos=_column("xpos", xpos, n),
            feats=_column("feats", feats, n),
            heads=array,
            deprels=_column("deprels", deprels, n),
            deps=("_",) * n,
            misc=_column("misc", misc, n),
            comments=comments,
            sent_id=find_sent_id(comments),
        )

    def with_tree(
        self, heads: ArrayLike, deprels: Iterable[str], *, single_root: bool = True
    ) -> Sentence:
        """The same sentence with another tree: only HEAD and DEPREL differ when written.

        heads: int[n], 0..n.  deprels: n labels.  Raises ValueError if they are no tree.
        """
        array = _head_array(heads, len(self))
        _require_tree(array, single_root)
        return replace(self, heads=array, deprels=_column("deprels", deprels, len(self)))

    def with_comments(self, comments: Iterable[str]) -> Sentence:
        """The same sentence under other comment lines (each starts with "#", no line end)."""
        new = _comments(comments)
        layout = self.layout
        if len(layout.eols) > 1:  # mixed: comments keep theirs by place, more take the first one
            old, rest = layout.eols[: len(self.comments)], layout.eols[len(self.comments) :]
            more = layout.eols[:1] * (len(new) - len(old))
            layout = layout._replace(eols=old[: len(new)] + more + rest or layout.eols[:1])
        return replace(self, comments=new, sent_id=find_sent_id(new), layout=layout)

    def to_conllu(self) -> str:
        """The CoNLL-U text: what was read, byte for byte, but for what ``with_...`` replaced."""
        n = len(self)
        heads = ["_" if head < 0 else str(head) for head in self.heads.tolist()]
        ids = map(str, range(1, n + 1))
        columns = (self.forms, self.lemmas, self.upos, self.xpos, self.feats)
        rows = zip(ids, *columns, heads, self.deprels, self.deps, self.misc, strict=True)
        lines = ["\t".join(row) for row in rows]
        before, eols, after, extras = self.layout
        for position, line in reversed(extras):
            lines.insert(position, line)
        lines[:0] = self.comments
        if len(eols) == 1:
            return before + eols[0].join(lines) + after
        mixed = (line + end for line, end in zip(lines, (*eols, ""), strict=True))
        return before + "".join(mixed) + after


def parse_feats(column: str) -> dict[str, str]:
    """The attributes of a FEATS (or MISC) column: {"Case": "Nom"}; "_" gives {}.

    Read by conllu's parser.  An item without "=" gets the value ""; where an attribute is repeated
    or a value holds "=", which that parser would cut, values are kept whole and joined by ",".
    """
    parsed = parse_dict_value(column) or {}
    items = column.split("|") if parsed else []
    if column.count("=") == len(items) == len(parsed):
        return {name: "_" if value is None else value for name, value in parsed.items()}
    result: dict[str, str] = {}
    for item in items:
        name, _, value = item.partition("=")
        result[name] = f"{result[name]},{value}" if name in result else value
    return result


def find_sent_id(comments: Iterable[str]) -> str | None:
    """The value of the first comment ``# sent_id = ...``, if any."""
    for comment in comments:
        if "sent_id" in comment:
            for key, value in parse_comment_line(comment):
                if key == "sent_id":
                    return value
    return None


def _head_array(heads: ArrayLike, n: int) -> NDArray[np.int32]:
    given = np.asarray(heads)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ValueError(f"heads must be {n} integers, got {given.dtype} of shape {given.shape}")
    array = given.astype(np.int32)  # always a copy: the caller's array stays writable
    array.setflags(write=False)
    return array


def _require_tree(heads: NDArray[np.int32], single_root: bool) -> None:
    reason = check_tree(heads, single_root=single_root)
    if reason is not None:
        raise ValueError(f"heads {heads.tolist()} are no tree: {reason}")


def _column(name: str, values: Iterable[str] | None, n: int | None) -> tuple[str, ...]:
    if values is None:
        return ("_",) * (n or 0)
    column = tuple(values)
    if n is not None and len(column) != n:
        raise ValueError(f"{name} has {len(column)} values for {n} words")
    for value in column:
        if not value or "\t" in value or "\n" in value or "\r" in value:
            raise ValueError(f"{name} holds {value!r}: empty or with a tab or line break in it")
    return column


def _comments(comments: Iterable[str]) -> tuple[str, ...]:
    result = tuple(comments)
    for comment in result:
        if not comment.startswith("#") or "\n" in comment or "\r" in comment:
            raise ValueError(f'a comment is one line that starts with "#", got {comment!r}')
    return result
