"""Tokens of the text and the sentences' comments on a Doc of words, and back.

A Doc of our tokenizer has one token a word.  Where several words are one token of the text (French
"du" for "de le"), `token._.tk_surface` of the first of them says so, and `doc._.tk_surface` lists
all tokens of the text.  They are attributes of tokens, so that they go with them to bytes and into
merged Docs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Token

from tk_spacy.errors import UserError
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import Breaks, SurfaceToken, TextSentence, with_surface

if TYPE_CHECKING:
    from spacy.vocab import Vocab

SURFACE_EXTENSION = "tk_surface"
"""`token._.tk_surface` of a multiword token's first word: (form, number of words, MISC, length).

Length, in characters of the Doc's text, tells whether its words are still the same: whoever merges
or splits tokens changes no character.  It is missing in Docs of earlier versions.
"""
SENTENCE_EXTENSION = "tk_sentence"
"""`token._.tk_sentence` of a sentence's first word: its number, begins a document, a paragraph."""


@dataclass(frozen=True, slots=True)
class DocToken:
    """A token of the text that a Doc was made from.

    text: as it stood there.  start, end: its words, `doc[start:end]`.
    """

    text: str
    start: int
    end: int


def register_surface() -> None:
    """Declare the attributes, unless they are.  Raises UserError where they are something else."""
    for name in (SURFACE_EXTENSION, SENTENCE_EXTENSION):
        if not Token.has_extension(name):
            Token.set_extension(name, default=None)
        elif Token.get_extension(name)[1:] != (None, None, None):
            raise UserError(
                f"token._.{name} is declared as a method or property by other code, but must hold "
                "what the tokenizer knows of the text; rename that one"
            )
    if not Doc.has_extension(SURFACE_EXTENSION):
        Doc.set_extension(SURFACE_EXTENSION, getter=doc_tokens)


def doc_tokens(doc: Doc) -> list[DocToken]:
    """The tokens of the text that a Doc was made from, white space left out."""
    return [
        DocToken(surface.form, words[0].i, words[-1].i + 1)
        for surface, words in _grouped([token for token in doc if not token.is_space])
    ]


def doc_from_text(vocab: Vocab, sentences: Iterable[TextSentence], *, ends_in_space: bool) -> Doc:
    """A Doc with one token a word and its sentence starts preset.

    ends_in_space: whether white space follows the last token.

    Words of a multiword token stand together in `doc.text` where they make up its form, with spaces
    between them where they do not; other white space is one space.
    """
    register_surface()
    words: list[str] = []
    spaces: list[bool] = []
    starts: list[bool | int | None] = []
    marks: list[tuple[int, str, list[Any]]] = []
    for number, (tokens, breaks) in enumerate(sentences, start=1):
        marks.append((len(words), SENTENCE_EXTENSION, [number, *map(bool, breaks)]))
        starts += [True] + [False] * (sum(len(token.words) for token in tokens) - 1)
        for token in tokens:
            inside = "".join(token.words) != token.form
            if token.is_multiword:
                n_words = len(token.words)
                length = sum(map(len, token.words)) + inside * (n_words - 1)
                of_token = [token.form, n_words, token.misc, length]
                marks.append((len(words), SURFACE_EXTENSION, of_token))
            words += token.words
            spaces += [inside] * (len(token.words) - 1) + [token.space]
    if spaces:
        spaces[-1] = ends_in_space
    doc = Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
    for place, name, value in marks:
        doc[place]._.set(name, value)
    return doc


def with_doc_surface(sentence: Sentence, tokens: Sequence[Token]) -> Sentence:
    """A sentence that was made of a Doc's words, with the comments and lines of its text.

    As it is where the words come from no text of our tokenizer's.
    """
    known = stored(tokens[0], SENTENCE_EXTENSION)
    surfaces = [surface for surface, _ in _grouped(tokens)]
    if known is None and not any(surface.is_multiword for surface in surfaces):
        return sentence
    number, document, paragraph = known or (None, False, False)
    sent_id = sentence.sent_id or (None if number is None else str(number))
    made = with_surface(sentence, surfaces, sent_id=sent_id, breaks=Breaks(document, paragraph))
    return made if known is not None else replace(made, comments=sentence.comments)


def inside_multiword(tokens: Sequence[Token]) -> Iterator[bool]:
    """Whether each token is a word of a multiword token; of Docs that are no text's, no one is."""
    at = 0
    while at < len(tokens):
        found = _multiword_at(tokens, at)
        if found is None:
            yield False
            at += 1
            continue
        form, number, _ = found
        yield from [number > 1 or form != tokens[at].text] * number
        at += number


def _grouped(tokens: Sequence[Token]) -> list[tuple[SurfaceToken, list[Token]]]:
    """The tokens of the text with their words."""
    found = []
    at = 0
    while at < len(tokens):
        form, number, misc = _multiword_at(tokens, at) or (tokens[at].text, 1, "_")
        words = list(tokens[at : at + number])
        forms = tuple(word.text for word in words)
        found.append((SurfaceToken(form, forms, bool(words[-1].whitespace_), misc), words))
        at += number
    return found


def _multiword_at(tokens: Sequence[Token], at: int) -> tuple[str, int, str] | None:
    """Form, number of words and MISC of the multiword token that begins with a token.

    None where none does, or where its words are cut off, merged or split.
    """
    value = stored(tokens[at], SURFACE_EXTENSION)
    if value is None:
        return None
    form, number, misc, *length = value  # a list, after it was stored
    if at + number > len(tokens):
        return None
    last = tokens[at + number - 1]
    if length and last.idx + len(last) - tokens[at].idx != length[0]:
        return None
    return str(form), int(number), str(misc)


def stored(token: Token, name: str) -> Any:
    """What a token's extension attribute was set to, None where it never was."""
    # Much faster than token._, which is asked for each word of everything that is parsed.
    of_doc: dict[Any, Any] = token.doc.user_data
    return of_doc.get(("._.", name, token.idx, None))
