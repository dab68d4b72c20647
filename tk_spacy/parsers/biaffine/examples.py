"""spaCy's training Examples as batches with trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tk_spacy.parsers.biaffine.batch import UNKNOWN, Batch
from tk_spacy.spacy_io.conversion import sentence_of_tokens, to_ud_label
from tk_spacy.spacy_io.sentence_spans import spans_of_starts, words_of_spans

if TYPE_CHECKING:
    from spacy.tokens import Doc
    from spacy.training import Example

TAGS = ("TAG", "POS", "MORPH")


def batch_of_examples(examples: Sequence[Example], labels: Sequence[str]) -> Batch:
    """The predicted Docs, cut into sentences as the references are, with the references' trees.

    labels: those that the parser can give.
    Tags are those of the predicted Doc where it has some, else the reference's if it has the same
    tokens.  Nothing is learnt from a word whose head or label the reference does not say: where its
    tokens are others, or the label is not among `labels`.  White space is no word.
    """
    ids = {name: i for i, name in enumerate(labels)}
    sentences, places = [], []
    heads: list[int] = []
    found: list[int] = []
    for number, example in enumerate(examples):
        doc, tagged = example.predicted, _tagged(example)
        above, names = example.get_aligned_parse(projectivize=False)
        spans = spans_of_starts(example.get_aligned_sent_starts())
        for own in words_of_spans(doc, spans):
            if not len(own):
                continue
            places.append((number, own))
            words = own.tolist()
            sentences.append(sentence_of_tokens([tagged[i] for i in words]))
            rows = {word: row for row, word in enumerate(words, start=1)}
            for i in words:
                known = above[i] is not None and bool(names[i])
                row = 0 if above[i] == i else rows.get(above[i], UNKNOWN)
                heads.append(row if known else UNKNOWN)
                found.append(ids.get(to_ud_label(names[i]), UNKNOWN) if known else UNKNOWN)
    return Batch(
        sentences,
        docs=[example.predicted for example in examples],
        places=places,
        heads=np.array(heads, dtype=np.int64),
        labels=np.array(found, dtype=np.int64),
    )


def _tagged(example: Example) -> Doc:
    """The Doc of an Example whose tags count."""
    predicted, reference = example.predicted, example.reference
    if any(predicted.has_annotation(name) for name in TAGS):
        return predicted
    same = [token.text for token in predicted] == [token.text for token in reference]
    return reference if same else predicted
