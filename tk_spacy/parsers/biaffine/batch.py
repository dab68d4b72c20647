"""What the parser's model reads: sentences, where their words stand in Docs, and their trees."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import spacy
from numpy.typing import NDArray
from spacy.tokens import Doc

from tk_spacy.parsers.biaffine.targets import Targets
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_of_tokens
from tk_spacy.spacy_io.sentence_spans import sentence_spans, words_of_spans
from tk_spacy.treebank.conllu import Sentence

if TYPE_CHECKING:
    from spacy.vocab import Vocab

Int = NDArray[np.integer[Any]]

UNKNOWN = -1
"""Of a head or label that is not known, from which nothing is learnt."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sentences that a model reads at a time.

    docs: the Docs they are in; None where they stand alone.
    places: of each sentence the number of its Doc, and the tokens of its words there, int[n].
    vectors: of the words of each sentence [n, width], where they have been computed already.
    heads, labels: int[words], places of heads in the sentence and ids of labels, UNKNOWN where they
        are not known; None where there are no trees.
    targets: what is learnt in the place of the trees; None for the trees.
    encoded: what readers of words have found of the sentences, by the readers' ids, each beside its
        reader; networks that share one look it up here.
    """

    sentences: Sequence[Sentence]
    docs: Sequence[Doc] | None = None
    places: Sequence[tuple[int, Int]] | None = None
    vectors: Sequence[Any] | None = None
    heads: Int | None = None
    labels: Int | None = None
    targets: Targets | None = None
    encoded: dict[int, tuple[Any, Any]] = field(init=False, repr=False, default_factory=dict)

    @property
    def lengths(self) -> list[int]:
        """Rows of each sentence: its words and the root."""
        return [len(sentence) + 1 for sentence in self.sentences]

    def located(self) -> tuple[Sequence[Doc], Sequence[tuple[int, Int]]]:
        """Docs and places; sentences that stand alone become Docs of one sentence.

        Raises UserError where a sentence has tags that no Doc can hold.
        """
        if self.docs is not None and self.places is not None:
            return self.docs, self.places
        docs = [doc_from_sentence(_vocab(), sentence) for sentence in self.sentences]
        return docs, [(i, np.arange(len(doc))) for i, doc in enumerate(docs)]


Input: TypeAlias = Batch | Sequence[Doc]
"""What the parser's model takes."""


@functools.cache
def _vocab() -> Vocab:
    return spacy.blank("xx").vocab


def make_batch(sentences: Sequence[Sentence], *, labels: Sequence[str] | None = None) -> Batch:
    """Sentences that stand alone.  labels: those of the parser, where trees are wanted."""
    if labels is None:
        return Batch(sentences)
    ids = {name: i for i, name in enumerate(labels)}
    return Batch(
        sentences,
        heads=np.concatenate([sentence.heads for sentence in sentences]),
        labels=np.array([ids[label] for s in sentences for label in s.deprels]),
    )


def batch_of_docs(docs: Sequence[Doc]) -> Batch:
    """The sentences of Docs, by their sentence starts; a Doc without them is one sentence.

    White space is no word.
    """
    sentences, places = [], []
    for i, doc in enumerate(docs):
        for words in words_of_spans(doc, sentence_spans(doc)):
            if len(words):
                sentences.append(sentence_of_tokens([doc[j] for j in words.tolist()]))
                places.append((i, words))
    return Batch(sentences, docs, places)
