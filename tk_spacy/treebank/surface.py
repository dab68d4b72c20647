"""Tokens as they stand in a text, and the words that they are made of.

A multiword token (French "du") is one token of the text and several words of the sentence ("de",
"le").  CoNLL-U has a line for it with the range of its words (3-4), and says on that line, or on a
word's own, whether a space follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tk_spacy.treebank.sentence import Layout, Sentence, find_sent_id

NO_SPACE = "SpaceAfter=No"
NEW_DOCUMENT, NEW_PARAGRAPH = "# newdoc", "# newpar"

_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
_NEW_PARAGRAPH = re.compile(r"#\s*newpar\b")
_TEXT = re.compile(r"#\s*text\s*=\s?(.*)")


class SurfaceToken(NamedTuple):
    """A token of a text.

    form: as it stands there.  words: one, or several of a multiword token.  space: whether white
    space follows.  misc: of a multiword token's line beside SpaceAfter, "_" for nothing.
    """

    form: str
    words: tuple[str, ...]
    space: bool = True
    misc: str = "_"

    @property
    def is_multiword(self) -> bool:
        """Whether it has a line of its own: several words, or one that is spelt otherwise."""
        return self.words != (self.form,)

    def line(self, first: int) -> str:
        """The line of a multiword token whose first word has this number."""
        items = [] if self.misc == "_" else [self.misc]
        misc = "|".join(items if self.space else [*items, NO_SPACE]) or "_"
        empty = "\t_" * 7
        return f"{first}-{first + len(self.words) - 1}\t{self.form}{empty}\t{misc}"


class Breaks(NamedTuple):
    """Whether a sentence begins a document, and a paragraph."""

    document: bool = False
    paragraph: bool = False


class TextSentence(NamedTuple):
    """A sentence of a text.  breaks: whether it begins a document, and a paragraph."""

    tokens: tuple[SurfaceToken, ...]
    breaks: Breaks


def surface_tokens(sentence: Sentence) -> list[SurfaceToken]:
    """The tokens of a sentence.

    Where a space follows its `# text` tells, else (where that fits the tokens nowhere) MISC.
    """
    ranges: dict[int, tuple[int, str, str]] = {}
    for before, line in sentence.layout.extras:
        number, form, *rest = line.split("\t")
        first, dash, last = number.partition("-")
        if dash and first.isdecimal() and last.isdecimal():
            ranges[before] = int(last), form, rest[-1]
    tokens, at = [], 0
    while at < len(sentence):
        end, form, misc = ranges.get(at, (at + 1, sentence.forms[at], sentence.misc[at]))
        items = misc.split("|")
        others = "|".join(item for item in items if item not in (NO_SPACE, "_")) or "_"
        own = others if at in ranges else "_"
        tokens.append(SurfaceToken(form, sentence.forms[at:end], NO_SPACE not in items, own))
        at = end
    text = text_comment(sentence)
    spaces = None if text is None else _spaces_in(text, [token.form for token in tokens])
    if spaces is not None:
        last_one = tokens[-1].space
        spaces[-1] = last_one  # what follows a sentence its text does not tell
        tokens = [t._replace(space=space) for t, space in zip(tokens, spaces, strict=True)]
    return tokens


def text_comment(sentence: Sentence) -> str | None:
    """What `# text` says, None where there is none."""
    for comment in sentence.comments:
        if (match := _TEXT.match(comment)) is not None:
            return match[1]
    return None


def text_of(tokens: Iterable[SurfaceToken]) -> str:
    """The text of one sentence, as `# text` has it."""
    return "".join(token.form + " " * token.space for token in tokens).strip()


def breaks_of(sentence: Sentence) -> Breaks:
    """What the comments newdoc and newpar say."""
    document = any(_NEW_DOCUMENT.match(comment) for comment in sentence.comments)
    paragraph = any(_NEW_PARAGRAPH.match(comment) for comment in sentence.comments)
    return Breaks(document, paragraph)


def sentence_of_tokens(
    tokens: Sequence[SurfaceToken],
    *,
    sent_id: str | None = None,
    breaks: Breaks = Breaks(),  # noqa: B008  (it cannot be changed)
    path: str = "",
) -> Sentence:
    """A sentence without tags and tree.  Raises ValueError where there is no token."""
    forms: list[str] = []
    misc: list[str] = []
    for token in tokens:
        forms += token.words
        plain = "_" if token.space else NO_SPACE
        misc += ["_"] * len(token.words) if token.is_multiword else [plain]
    sentence = Sentence.from_columns(forms=forms, misc=misc)
    return with_surface(sentence, tokens, sent_id=sent_id, breaks=breaks, path=path)


def with_surface(
    sentence: Sentence,
    tokens: Sequence[SurfaceToken],
    *,
    sent_id: str | None,
    breaks: Breaks,
    path: str = "",
) -> Sentence:
    """A sentence with comments (newdoc, newpar, sent_id, text) and lines of multiword tokens."""
    comments = [NEW_DOCUMENT] * breaks.document + [NEW_PARAGRAPH] * breaks.paragraph
    if sent_id is not None:
        comments.append(f"# sent_id = {sent_id}")
    comments.append(f"# text = {text_of(tokens)}")
    lines, at = [], 0
    for token in tokens:
        if token.is_multiword:
            lines.append((at, token.line(at + 1)))
        at += len(token.words)
    layout = Layout(extras=tuple(lines))
    return replace(
        sentence,
        comments=tuple(comments),
        sent_id=find_sent_id(comments),
        layout=layout,
        path=path or sentence.path,
    )


def _spaces_in(text: str, forms: Sequence[str]) -> list[bool] | None:
    """Whether white space follows each form in a text; None where they do not fit together."""
    spaces, at = [], 0
    for form in forms:
        while at < len(text) and text[at].isspace() and not text.startswith(form, at):
            at += 1
        if not text.startswith(form, at):
            return None
        at += len(form)
        spaces.append(at < len(text) and text[at].isspace())
    return None if text[at:].strip() else spaces
