"""The sentences of a Doc: one reading of its sentence starts for all that needs them."""

from __future__ import annotations

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example

from tk_spacy.parsers.biaffine.batch import batch_of_docs
from tk_spacy.parsers.biaffine.examples import batch_of_examples
from tk_spacy.pipeline.doc_parsing import parse_docs
from tk_spacy.spacy_io.conversion import sentences_from_doc
from tk_spacy.spacy_io.doc_trees import read_sentences
from tk_spacy.spacy_io.sentence_spans import sentence_spans, spans_of_starts, words_of_spans

VOCAB = spacy.blank("xx").vocab


def make_doc(words: str, starts: list[bool | None] | None, **columns) -> Doc:
    """A Doc of words, "_" being a line break."""
    texts = ["\n" if word == "_" else word for word in words.split()]
    return Doc(VOCAB, words=texts, sent_starts=starts, **columns)


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        (None, [(0, 4)]),
        ([None, None, None, None], [(0, 4)]),
        ([True, False, False, False], [(0, 4)]),
        ([True, False, True, False], [(0, 2), (2, 4)]),
        # What is not set begins nothing, here as in `doc.sents`.
        ([True, None, True, None], [(0, 2), (2, 4)]),
        ([None, None, None, True], [(0, 3), (3, 4)]),
        # The first token begins a sentence in any case.
        ([False, True, False, False], [(0, 1), (1, 4)]),
        ([False, False, False, False], [(0, 4)]),
        ([True, True, True, True], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_spans_begin_at_the_first_token_and_at_true_starts(starts, expected):
    doc = make_doc("a b c d", starts)
    assert sentence_spans(doc) == expected


def test_spans_of_empty_docs_and_single_tokens():
    assert sentence_spans(Doc(VOCAB)) == []
    assert sentence_spans(Doc(VOCAB, words=["a"])) == [(0, 1)]
    assert sentence_spans(Doc(VOCAB, words=["a"], sent_starts=[False])) == [(0, 1)]


def test_spans_of_a_parse_are_its_trees():
    # No starts are given: spaCy derives them from the heads.
    doc = make_doc("a b c d", None, heads=[1, 1, 3, 3], deps=["dep", "ROOT", "dep", "ROOT"])
    assert sentence_spans(doc) == [(0, 2), (2, 4)]


def test_spans_of_starts_take_the_unknown_for_none():
    assert spans_of_starts([None, None, True, None]) == [(0, 2), (2, 4)]
    assert spans_of_starts(np.array([False, False, True])) == [(0, 2), (2, 3)]
    given = np.zeros(3, dtype=bool)
    assert spans_of_starts(given) == [(0, 3)]
    assert not given.any()  # it is not written to


def test_words_are_places_in_the_doc_without_white_space():
    doc = make_doc("_ a b _ _ c _", [True, False, False, True, True, False, False])
    spans = sentence_spans(doc)
    assert spans == [(0, 3), (3, 4), (4, 7)]
    found = words_of_spans(doc, spans)
    assert [places.tolist() for places in found] == [[1, 2], [], [5]]
    assert all(places.dtype == np.intp for places in found)


@st.composite
def any_docs(draw):
    n = draw(st.integers(1, 9))
    words = draw(st.lists(st.sampled_from(["a", "b", "\n"]), min_size=n, max_size=n))
    marks = st.sampled_from([True, False, None])
    return Doc(VOCAB, words=words, sent_starts=draw(st.lists(marks, min_size=n, max_size=n)))


@given(any_docs())
def test_spans_are_spacys_own_where_it_has_some(doc):
    spans = sentence_spans(doc)
    if doc.has_annotation("SENT_START"):
        assert spans == [(sent.start, sent.end) for sent in doc.sents]
    else:
        assert spans == [(0, len(doc))]
    words = [[t.i for t in doc[start:end] if not t.is_space] for start, end in spans]
    assert [places.tolist() for places in words_of_spans(doc, spans)] == words


class _RootFirst:
    """A parser that hangs all words of a sentence on its first."""

    def parse(self, sentences, *, n_threads=None):
        for s in sentences:
            yield np.arange(len(s), dtype=np.int32).clip(max=1), ("root",) + ("dep",) * (len(s) - 1)


def test_all_that_reads_sentences_reads_the_same():
    starts = [False, None, True, True, None, False, True]
    heads, deps = [0, 0, 2, 3, 3, 3, 6], ["ROOT", "dep", "dep", "ROOT", "dep", "dep", "ROOT"]
    bare = make_doc("a _ _ b c _ d", starts)
    tree = make_doc("a _ _ b c _ d", starts, heads=heads, deps=deps)
    spans, forms = [(0, 2), (2, 3), (3, 6), (6, 7)], [("a",), ("b", "c"), ("d",)]
    assert sentence_spans(bare) == sentence_spans(tree) == spans

    (parsed,) = parse_docs(_RootFirst(), [bare])
    assert [(s.start, s.end, s.words.tolist()) for s in parsed] == [
        (0, 2, [0]), (2, 3, []), (3, 6, [0, 1]), (6, 7, [0]),
    ]  # fmt: skip
    read = read_sentences(tree)
    assert [(s.start, s.end, s.words.tolist()) for s in read] == [
        (0, 2, [0]), (2, 3, []), (3, 6, [0, 1]), (6, 7, [0]),
    ]  # fmt: skip
    assert [len(s) for s in sentences_from_doc(bare)] == [2, 1, 3, 1]
    assert [s.forms for s in batch_of_docs([bare]).sentences] == forms
    batch = batch_of_examples([Example(bare, tree)], ["dep"])
    assert [s.forms for s in batch.sentences] == forms
    assert [places.tolist() for _, places in batch.places] == [[0], [3, 4], [6]]
