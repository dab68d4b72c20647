"""A trained UDPipe tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tk_spacy.errors import UserError
from tk_spacy.parsers.udpipe.library import udpipe
from tk_spacy.parsers.udpipe.stored import UdpipeModel
from tk_spacy.tokenizing.paragraphs import clean, paragraphs
from tk_spacy.tokenizing.settings import TokenizerSettings
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import Breaks, SurfaceToken, TextSentence, sentence_of_tokens
from tk_spacy.utils.serialization import META

WEIGHTS = "tokenizer.udpipe"
FORMAT = "tk-spacy UDPipe tokenizer"

LONGEST = 1 << 18
"""Characters after which a sentence without an end is cut."""

_Placed = tuple[int, list[SurfaceToken]]
"""A sentence, and where in its text it begins."""


@dataclass(frozen=True, eq=False, kw_only=True)
class UdpipeTokenizer(UdpipeModel):
    """A trained UDPipe tokenizer: a `Tokenizer`; see `UdpipeModel`."""

    FORMAT, WHAT = FORMAT, "tokenizer"
    FILES = (META, WEIGHTS)

    settings: TokenizerSettings

    def split(self, pieces: Iterable[str]) -> Iterator[TextSentence]:
        """The sentences of one document, whose text comes in pieces.

        Memory does not grow with the text.  What a text is split into does not depend on where its
        pieces end, unless a paragraph is longer than `paragraphs.MOST` characters.
        Raises UserError where UDPipe is not installed.
        """
        rest, wanted = "", 0
        breaks = Breaks(document=True, paragraph=True)
        for text, ends in paragraphs(pieces):
            rest += text
            if not ends and len(rest) < wanted:
                continue
            found = self._sentences_of(rest)
            if not ends and len(found) == 1 and len(rest) < LONGEST:
                # It may go on; it is not looked at again before it is twice as long.
                wanted = min(2 * len(rest), LONGEST)
                continue
            wanted = 0
            kept = ""
            if not ends and len(found) > 1:
                start, _ = found.pop()
                kept = rest[start:]
            for _, tokens in found:
                yield TextSentence(tuple(tokens), breaks)
                breaks = Breaks()
            rest = kept
            if ends:
                # A text that holds nothing begins no document.
                breaks = Breaks(breaks.document, paragraph=True)

    def sentences(self, pieces: Iterable[str], *, path: str = "") -> Iterator[Sentence]:
        """The same as sentences without tags and tree, numbered from 1."""
        for number, (tokens, breaks) in enumerate(self.split(pieces), start=1):
            yield sentence_of_tokens(tokens, sent_id=str(number), breaks=breaks, path=path)

    def sentence_starts(self, text: str) -> list[int]:
        """Where in a text its sentences begin, in characters, in order; none where it is blank.

        Raises UserError where UDPipe is not installed.
        """
        return [start for start, _ in self._sentences_of(clean(text))]

    def _sentences_of(self, text: str) -> list[_Placed]:
        """The sentences of one paragraph, or of a part of it."""
        if not text or text.isspace():
            return []
        library = udpipe()
        tokenizer = self._loaded.newTokenizer("ranges")
        if not tokenizer:
            raise UserError("UDPipe cannot tokenize with this model: it is damaged; train it again")
        tokenizer.setText(f"{text}\n")  # whatever ends here, white space follows
        error, own = library.ProcessingError(), library.Sentence()
        found = []
        while tokenizer.nextSentence(own, error):
            if tokens := _tokens(own):
                found.append(tokens)
        if error.occurred():
            raise UserError(f"UDPipe cannot tokenize this text: {error.message}")
        return found

    # Storage

    @classmethod
    def _read_meta(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "settings": TokenizerSettings(**meta["settings"]),
            "about": cls._about(meta),
        }


def _tokens(own: Any) -> _Placed | None:
    """The tokens of a sentence of UDPipe's, and where it begins; None where it has none."""
    words = list(own.words)[1:]
    if not words:
        return None
    ranges = {token.idFirst: token for token in own.multiwordTokens}
    first = ranges.get(1, words[0])
    tokens = []
    at = 1
    while at <= len(words):
        token = ranges.get(at, words[at - 1])
        end = token.idLast if at in ranges else at
        forms = tuple(_form(word.form) for word in words[at - 1 : end])
        tokens.append(SurfaceToken(_form(token.form), forms, token.getSpaceAfter()))
        at = end + 1
    return first.getTokenRangeStart(), tokens


def _form(text: str) -> str:
    # A token may hold spaces where the treebank has such, but no line end.
    return text.replace("\n", " ") or "_"
