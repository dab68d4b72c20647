"""Sentences of Docs that are too long to be searched whole, and their pieces.

See `tk_spacy.kbest.long_sentences` for the rule.  White space stays in the piece of the word before
it.
"""

from __future__ import annotations

import numpy as np
from spacy.tokens import Doc

from tk_spacy.kbest.long_sentences import PIECE_WORDS, ROOT, WHOLE_WORDS, piece_ranges, project
from tk_spacy.spacy_io.conversion import SPACY_ROOT
from tk_spacy.spacy_io.doc_trees import DocSentence
from tk_spacy.treebank.conllu import Sentence

LONG_ADVICE = (
    f"it is parsed as one sentence, beyond {WHOLE_WORDS} words in pieces, and worse than sentences "
    "are; put a component that sets bounds (senter, sentencizer) before it in the pipeline"
)
"""What to say of Docs that are too long for a sentence."""


def unbounded_words(doc: Doc) -> int:
    """How many words a Doc has that are too many for a sentence, and are one without bounds.

    0 where there are sentence bounds, or the Doc is no longer than sentences are.
    """
    if len(doc) <= PIECE_WORDS or doc.has_annotation("SENT_START"):
        return 0
    words = sum(not token.is_space for token in doc)
    return words if words > PIECE_WORDS else 0


def long_words(sentence: DocSentence) -> int:
    """How many words a sentence has that are too many for one, else 0."""
    return len(sentence.words) if len(sentence.words) > PIECE_WORDS else 0


def cut_sentence(sentence: DocSentence) -> list[DocSentence]:
    """The pieces of a sentence that has a tree; a short one is its own only piece."""
    if len(sentence.words) <= WHOLE_WORDS or sentence.heads is None:
        return [sentence]
    whole = sentence.plain
    ranges = piece_ranges(whole.forms)
    # A piece's tokens: up to the first word of the next.
    starts = [0, *(int(sentence.words[own.start]) for own in ranges[1:])]
    ends = [*starts[1:], sentence.end - sentence.start]
    pieces = []
    for words, start, end in zip(ranges, starts, ends, strict=True):
        token_heads = project(sentence.token_heads[None], range(start, end))[0]
        heads = project(sentence.heads[None], words)[0]
        labels = list(sentence.token_labels[start:end])
        top = int(np.argmin(token_heads))
        if labels[top].lower() != ROOT:
            labels[top] = SPACY_ROOT
        piece = DocSentence(
            doc=sentence.doc,
            start=sentence.start + start,
            end=sentence.start + end,
            words=sentence.words[words.start : words.stop] - start,
            token_heads=token_heads,
            token_labels=tuple(labels),
            heads=heads,
        )
        piece.take_plain(
            Sentence.from_columns(
                forms=whole.forms[words.start : words.stop],
                lemmas=whole.lemmas[words.start : words.stop],
                upos=whole.upos[words.start : words.stop],
                xpos=whole.xpos[words.start : words.stop],
                feats=whole.feats[words.start : words.stop],
                misc=whole.misc[words.start : words.stop],
                heads=heads,
                deprels=piece.deprels,
            )
        )
        pieces.append(piece)
    return pieces
