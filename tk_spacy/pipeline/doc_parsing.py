"""Parsing the sentences of Docs with a parser of our own, and writing the trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, HEAD, SENT_START
from spacy.tokens import Doc

from tk_spacy.spacy_io.conversion import sentence_of_tokens, to_spacy_label
from tk_spacy.spacy_io.sentence_spans import sentence_spans, words_of_spans
from tk_spacy.treebank.conllu import Sentence

SPACE_LABEL = "dep"
"""The relation of white space to the word that it hangs on."""


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSentence:
    """One sentence of a Doc, tokens start to end, with a tree over its words.

    words: intp[m], places of the tokens that are no white space, counted from start.
    heads: int32[m], 1..m, 0 the root; deprels: m UD labels.
    """

    start: int
    end: int
    words: NDArray[np.intp]
    heads: NDArray[np.int32]
    deprels: tuple[str, ...]


class Parses(Protocol):
    """What gives the best tree of each sentence, as `parsers.base.StoredParser` does."""

    def parse(
        self, sentences: Sequence[Sentence], *, n_threads: int | None = None
    ) -> Iterator[tuple[NDArray[np.int32], tuple[str, ...]]]:
        """Heads int32[n], and DEPREL values."""
        ...


def parse_docs(
    parser: Parses,
    docs: Sequence[Doc],
    *,
    n_threads: int | None = None,
) -> list[list[ParsedSentence]]:
    """The trees of all sentences of all Docs, in one batch."""
    spans = [sentence_spans(doc) for doc in docs]
    words = [words_of_spans(doc, own) for doc, own in zip(docs, spans, strict=True)]
    sentences = [
        sentence_of_tokens([doc[i] for i in places.tolist()])
        for doc, of_doc in zip(docs, words, strict=True)
        for places in of_doc
        if len(places)
    ]
    found = iter(parser.parse(sentences, n_threads=n_threads))
    none: tuple[Any, tuple[str, ...]] = (np.empty(0, np.int32), ())
    return [
        [
            ParsedSentence(start, end, places - start, *(next(found) if len(places) else none))
            for (start, end), places in zip(own, of_doc, strict=True)
        ]
        for own, of_doc in zip(spans, words, strict=True)
    ]


def write_parse(doc: Doc, parsed: Iterable[ParsedSentence]) -> None:
    """Write heads, labels and sentence starts of a whole Doc."""
    if not len(doc):
        return
    offsets = np.zeros(len(doc), dtype=np.int64)
    labels: list[str] = [""] * len(doc)
    starts = np.full(len(doc), -1, dtype=np.int64)
    for sentence in parsed:
        starts[sentence.start] = 1
        words = sentence.words + sentence.start
        above = np.append(words, -1)
        for word, head, deprel in zip(
            words.tolist(), sentence.heads.tolist(), sentence.deprels, strict=True
        ):
            offsets[word] = above[head - 1] - word if head else 0
            labels[word] = to_spacy_label(deprel, head)
        _attach_spaces(sentence, offsets, labels)
    rows = np.empty((len(doc), 3), dtype=np.uint64)
    # spaCy stores negative numbers as two's complement.
    rows[:, 0] = offsets.view(np.uint64)
    rows[:, 1] = [doc.vocab.strings.add(label) for label in labels]
    rows[:, 2] = starts.view(np.uint64)
    attributes: list[Any] = [HEAD, DEP]
    doc.from_array(attributes, np.ascontiguousarray(rows[:, :2]))  # type: ignore[arg-type]
    # Derived from the heads by spaCy, which gives up early in deeply crossing trees.
    boundaries: list[Any] = [SENT_START]
    doc.from_array(boundaries, np.ascontiguousarray(rows[:, 2:]))  # type: ignore[arg-type]


def _attach_spaces(sentence: ParsedSentence, offsets: NDArray[np.int64], labels: list[str]) -> None:
    """Hang white space on the word before it, at the start on the first; alone it is the root."""
    words = sentence.words + sentence.start
    for token in range(sentence.start, sentence.end):
        if labels[token]:
            continue
        before = int(np.searchsorted(words, token)) - 1
        if len(words):
            offsets[token] = int(words[max(before, 0)]) - token
            labels[token] = SPACE_LABEL
        else:
            offsets[token] = sentence.start - token
            labels[token] = to_spacy_label(SPACE_LABEL, token - sentence.start)
