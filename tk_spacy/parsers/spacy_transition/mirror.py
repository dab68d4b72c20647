"""Sentences, Docs and trees in reverse order, for a parser that reads right to left.

The two directions err at different places: what lies ahead of one lies behind the other.  Source of
the idea: Sagae and Lavie 2006, "Parser combination by reparsing", who vote between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import LEMMA, MORPH, NORM, POS, TAG
from spacy.tokens import Doc

from tk_spacy.treebank.conllu import Sentence

# What an embedding may read beside the lexeme.
_ATTRIBUTES: list[Any] = [NORM, TAG, POS, MORPH, LEMMA]


def mirrored_heads(heads: NDArray[np.int32]) -> NDArray[np.int32]:
    """HEAD arrays int32[..., n] of the same trees over the words in reverse order."""
    turned = heads[..., ::-1]
    return np.where(turned == 0, 0, heads.shape[-1] + 1 - turned).astype(np.int32)


def mirrored_sentence(sentence: Sentence) -> Sentence:
    """The words in reverse order with their columns and tree; comments and MISC are left out."""
    has_tree = sentence.has_tree
    return Sentence.from_columns(
        forms=reversed(sentence.forms),
        lemmas=reversed(sentence.lemmas),
        upos=reversed(sentence.upos),
        xpos=reversed(sentence.xpos),
        feats=reversed(sentence.feats),
        heads=mirrored_heads(sentence.heads) if has_tree else None,
        deprels=reversed(sentence.deprels) if has_tree else None,
        sent_id=sentence.sent_id,
    )


def mirrored_doc(doc: Doc) -> Doc:
    """A Doc of the tokens in reverse order with their tags, as one sentence, without a parse."""
    turned = Doc(
        doc.vocab,
        words=[token.text for token in doc][::-1],
        spaces=[bool(token.whitespace_) for token in doc][::-1],
        sent_starts=[i == 0 for i in range(len(doc))],
    )
    values: Any = np.ascontiguousarray(doc.to_array(_ATTRIBUTES)[::-1])
    return turned.from_array(_ATTRIBUTES, values)
