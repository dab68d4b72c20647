"""What a tokenizer learns from: a treebank's tokens, spaces, sentences and paragraphs, no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, repeat

from tk_spacy.treebank.sentence import Sentence
from tk_spacy.treebank.surface import NEW_PARAGRAPH, SurfaceToken, breaks_of, surface_tokens


def has_text(sentences: Iterable[Sentence]) -> bool:
    """Whether it is known where words stand together: somewhere no space follows a token."""
    return any(not token.space for s in sentences for token in surface_tokens(s)[:-1])


def training_text(sentences: Iterable[Sentence]) -> Iterator[str]:
    """Each sentence as CoNLL-U that says how it is written and nothing else.

    Tags and trees are left out, so that a tokenizer does not depend on them.  Null characters,
    which no text keeps and which would end the text for UDPipe, are U+FFFD.
    """
    for sentence in sentences:
        breaks = breaks_of(sentence)
        lines = [NEW_PARAGRAPH] if any(breaks) else []
        number = 1
        for token in surface_tokens(sentence):
            own = "_" if token.space else "SpaceAfter=No"
            inside: Iterable[str] = repeat(own, 1)
            if token.is_multiword:
                lines.append(token._replace(misc="_").line(number))
                inside = repeat("_")
            for word, misc in zip(token.words, inside, strict=False):
                lines.append(_line(number, word, misc))
                number += 1
        yield "\n".join([*lines, "", ""]).replace("\0", "\ufffd")


def multiword_tokens(sentences: Iterable[Sentence]) -> Counter[SurfaceToken]:
    """How often each multiword token occurs, in lower case and whatever follows it."""
    tokens = chain.from_iterable(map(surface_tokens, sentences))
    return Counter(
        SurfaceToken(token.form.lower(), tuple(word.lower() for word in token.words))
        for token in tokens
        if token.is_multiword
    )


def _line(number: int, word: str, misc: str) -> str:
    head = "0\troot" if number == 1 else "1\tdep"
    return f"{number}\t{word}\t_\t_\t_\t_\t{head}\t_\t{misc}"
