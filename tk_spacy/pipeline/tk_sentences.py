"""The spaCy component `tk_sentences`: finds the sentences of ready words, as the tokenizer would.

`nlp(text)` goes through the tokenizer, which sets sentence starts; a Doc that somebody made of
words does not, and would be parsed as one sentence.  The tokenizer's module imports this one, so
that the component is known wherever such a tokenizer is loaded.

Annotations are not postponed: spaCy builds its config schemas from them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from tk_spacy.pipeline.homes import Homes, calling_pipeline

FACTORY = "tk_sentences"
FINAL = frozenset(".!?\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u037e") | {"...", "?!"}
"""Tokens that end a sentence."""
NO_SPACE_BEFORE = FINAL | frozenset(",;:)]}»\u201d\u2019")
NO_SPACE_AFTER = frozenset("([{«\u201c\u2018")


@Language.factory(
    FACTORY,
    assigns=["token.is_sent_start", "doc.sents"],
    default_config={"known_spaces": False},
)
def make_tk_sentences(nlp: Language, name: str, known_spaces: bool) -> "TkSentences":
    """Make the component; its config is described at `TkSentences`."""
    return TkSentences(nlp, name, known_spaces=known_spaces)


class TkSentences:
    """Sets the sentence starts of Docs without any, where the pipeline's tokenizer can find them.

    known_spaces: also those of Docs that say where spaces stand, `Doc(words=..., spaces=...)`.
        Such are left alone by default: spaCy's `--gold-preproc` hands over each gold sentence so.

    A Doc with any sentence start is never touched, nor one of a single word.  The words' text goes
    through the tokenizer's splitter, with usual spaces around punctuation where spaces are not
    known; a sentence that begins inside a word begins at the next one.
    Does nothing where the tokenizer has no such splitter, as spaCy's own have not.
    """

    def __init__(self, nlp: Language, name: str = FACTORY, *, known_spaces: bool = False) -> None:
        self._homes = Homes(nlp)
        self._name = name
        self.known_spaces = known_spaces

    @property
    def name(self) -> str:
        """Its name in the pipeline."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        # By `add_pipe(source=...)`: the tokenizer is that of the pipeline that it joins.
        nlp = calling_pipeline()
        if nlp is not None:
            self._homes.add(nlp)
        self._name = value

    def __call__(self, doc: Doc) -> Doc:
        """Set a Doc's sentence starts, in place."""
        if len(doc) < 2 or doc.has_annotation("SENT_START"):
            return doc
        if not (doc.has_unknown_spaces or self.known_spaces):
            return doc
        tokenizer: Any = self._homes.of(self, doc).tokenizer
        split = getattr(tokenizer, "sentence_starts", None)
        if split is None:
            return doc
        text, offsets = text_of_words(doc)
        starts = {bisect_left(offsets, place) for place in split(text)} | {0}
        for token in doc:
            token.is_sent_start = token.i in starts
        return doc


def text_of_words(doc: Doc) -> tuple[str, list[int]]:
    """The text of a Doc's words, and where in it each token begins.

    It is `doc.text` where spaces are known; else there is none before closing punctuation or after
    an opening bracket or quote.
    """
    if not doc.has_unknown_spaces:
        return doc.text, [token.idx for token in doc]
    words = [token.text for token in doc]
    text, offsets = "", []
    for before, word in zip(["", *words], words, strict=False):
        if before and before not in NO_SPACE_AFTER and word not in NO_SPACE_BEFORE:
            text += " "
        offsets.append(len(text))
        text += word
    return text, offsets


def inner_end(words: Sequence[str]) -> str | None:
    """The first word that ends a sentence though others with letters follow; None for none."""
    last = max((i for i, word in enumerate(words) if word.isalpha()), default=0)
    return next((word for word in words[:last] if word in FINAL), None)
