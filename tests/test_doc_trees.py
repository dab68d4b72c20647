"""Doc <-> arrays: sentences with white-space tokens, and writing trees back."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from pipelines import component, new_docs, trained_pipeline
from spacy.tokens import Doc

from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.pipeline.sources import token_trees, word_trees
from tk_spacy.spacy_io.doc_trees import read_sentences, write_trees
from tk_spacy.treebank.conllu import check_tree

VOCAB = spacy.blank("xx").vocab  # a bare Vocab does not know white space


def make_doc(text, heads, deps, **more):
    """A Doc from words ("_" stands for a line break) and heads within the whole Doc."""
    words = ["\n" if word == "_" else word for word in text.split()]
    return Doc(VOCAB, words=words, heads=heads, deps=deps.split(), **more)


@st.composite
def docs_of_random_trees(draw):
    """Docs of one to three sentences over random, mostly crossing trees, with white space."""
    words, heads, deps = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        start, n = len(words), draw(st.integers(1, 7))
        order = draw(st.permutations(range(n)))
        above = {order[0]: order[0]}
        for i, word in enumerate(order[1:], start=1):
            above[word] = order[draw(st.integers(0, i - 1))]
        blank = draw(st.sets(st.integers(0, n - 1)))
        words += ["\n" if i in blank else f"w{i}" for i in range(n)]
        heads += [start + above[i] for i in range(n)]
        deps += ["ROOT" if above[i] == i else draw(st.sampled_from("ab")) for i in range(n)]
    return Doc(VOCAB, words=words, heads=heads, deps=deps)


def random_word_tree(draw, m):
    order = draw(st.permutations(range(1, m + 1)))
    heads = np.zeros(m, dtype=np.int32)
    for i, word in enumerate(order[1:], start=1):
        heads[word - 1] = order[draw(st.integers(0, i - 1))]
    return heads, ["root" if head == 0 else draw(st.sampled_from("abc")) for head in heads]


def plain_contracted(sentence):
    """Heads among the words, by climbing from each; None where the root is white space."""
    number = {place: i for i, place in enumerate(sentence.words.tolist(), start=1)}
    heads = []
    for place in sentence.words.tolist():
        above = int(sentence.token_heads[place])
        while above and above - 1 not in number:
            above = int(sentence.token_heads[above - 1])
        heads.append(number[above - 1] if above else 0)
    root = int(np.argmin(sentence.token_heads))
    return heads if root in number else None


@given(docs_of_random_trees())
def test_doc_trees_read_as_plain_climbing_does(doc):
    sentences = read_sentences(doc)
    assert [(s.start, s.end) for s in sentences] == [(s.start, s.end) for s in doc.sents]
    for sentence in sentences:
        expected = plain_contracted(sentence)
        assert (None if sentence.heads is None else sentence.heads.tolist()) == expected
        if expected:
            assert check_tree(expected) is None
            assert sentence.as_sentence().heads.tolist() == expected


@given(docs_of_random_trees(), st.data())
def test_doc_trees_written_is_read_again(doc, data):
    usable = [s for s in read_sentences(doc) if s.heads is not None]
    new = [random_word_tree(data.draw, len(s.words)) for s in usable]
    starts = doc.to_array(["SENT_START"])
    blank = [(t.head.i, t.dep_) for t in doc if t.is_space]
    others = [s for s in read_sentences(doc) if s.heads is None]
    write_trees(doc, [(s, *tree) for s, tree in zip(usable, new, strict=True)])
    assert (doc.to_array(["SENT_START"]) == starts).all()
    assert [(t.head.i, t.dep_) for t in doc if t.is_space] == blank
    again = {s.start: s for s in read_sentences(doc)}
    for sentence, (heads, deprels) in zip(usable, new, strict=True):
        assert again[sentence.start].heads.tolist() == heads.tolist()
        assert list(again[sentence.start].deprels) == deprels
        assert check_tree(again[sentence.start].token_heads) is None
    for sentence in others:
        assert again[sentence.start].token_labels == sentence.token_labels
        assert (again[sentence.start].token_heads == sentence.token_heads).all()


def test_doc_trees_words_below_white_space_belong_to_the_next_word_above():
    doc = make_doc("owls _ sleep well", [1, 2, 2, 1], "nsubj dep ROOT advmod")
    (sentence,) = read_sentences(doc)
    assert sentence.heads.tolist() == [2, 0, 2]
    assert sentence.as_sentence().forms == ("owls", "sleep", "well")
    assert [token.text for token in sentence.as_doc()] == ["owls", "\n", "sleep", "well"]
    assert not sentence.as_doc().has_annotation("DEP")
    write_trees(doc, [(sentence, np.array([2, 0, 1]), ["nsubj", "root", "advmod"])])
    # Owls keep their white-space head, which still means sleep; white space keeps its own.
    assert [token.head.i for token in doc] == [1, 2, 2, 0]


def test_doc_trees_candidates_that_lose_their_root_are_left_out():
    (sentence,) = read_sentences(make_doc("owls _ sleep", [2, 2, 2], "nsubj dep ROOT"))
    found = CandidateList.build(
        [
            ([3, 3, 0], ["nsubj", "dep", "root"], 0.0),
            ([2, 0, 2], ["nsubj", "root", "dep"], -1.0),  # two words below a white-space root
            ([2, 0, 1], ["nsubj", "root", "obj"], -2.0),  # one
        ],
        inventory=LabelInventory(),
        sources=["spacy"],
    )
    over_words = word_trees(sentence, found)
    heads, labels, scores = over_words.heads, over_words.labels, over_words.scores
    assert heads.tolist() == [[2, 0], [0, 1]]
    assert [found.inventory.decode(row) for row in labels] == [("nsubj", "root"), ("root", "obj")]
    assert scores[:, 0].tolist() == [0.0, -2.0]
    # Back over the tokens, white space hangs where the Doc has it.
    over_tokens = token_trees(sentence, over_words)
    again = word_trees(sentence, over_tokens)
    assert again.heads.tolist() == heads.tolist()
    assert again.base == over_words.base
    blank = np.setdiff1d(np.arange(sentence.end - sentence.start), sentence.words)
    assert (over_tokens.heads[:, blank] == sentence.token_heads[blank]).all()


@pytest.mark.parametrize(
    ("heads", "reason"),
    [
        ([2, 1, 0], "cycle"),
        ([0, 0, 1], "words 1 and 2 have HEAD 0"),
        ([2, 3, 1], "no word has HEAD"),
    ],
)
def test_doc_trees_no_tree_is_never_written(heads, reason):
    doc = make_doc("ba be bi bo", [1, 1, 1, 3], "a ROOT b ROOT")
    before = doc.to_array(["HEAD", "DEP", "SENT_START"])
    first, second = read_sentences(doc)
    good = (second, np.array([0]), ["root"])
    with pytest.raises(ValueError, match=rf"tokens 0 to 2 make no tree: .*{reason}"):
        write_trees(doc, [good, (first, np.array(heads), ["x", "y", "z"])])
    assert (doc.to_array(["HEAD", "DEP", "SENT_START"]) == before).all()


def test_doc_trees_head_outside_the_sentence():
    doc = make_doc("ba be bi bo", [1, 1, 3, 3], "a ROOT b ROOT")
    # spaCy lets heads cross a boundary that is set afterwards.
    doc.from_array(["SENT_START"], np.array([1, 0, 0, 1], dtype=np.uint64))
    assert [s.heads is None for s in read_sentences(doc)] == [True, False]
    doc.from_array(["SENT_START"], np.array([1, 1, 0, 0], dtype=np.uint64))
    assert [s.heads is None for s in read_sentences(doc)] == [True, True]


def test_component_with_white_space_in_the_text():
    nlp = trained_pipeline()
    changed = 0
    for doc in new_docs(nlp, 12):
        words = [w for token in doc for w in (token.text, "\n")]
        spread = Doc(nlp.vocab, words=words)
        for name in ("TAG", "POS", "MORPH", "LEMMA"):
            values = np.zeros(len(words), dtype=np.uint64)
            values[::2] = doc.to_array(name)
            spread.from_array([name], values)
        nlp.get_pipe("parser")(spread)
        before = [(t.head.i, t.dep_) for t in spread]
        starts = [s.start for s in spread.sents]
        component(nlp)(spread)
        after = [(t.head.i, t.dep_) for t in spread]
        assert after[1::2] == before[1::2]
        assert [s.start for s in spread.sents] == starts
        for sentence in read_sentences(spread):
            assert check_tree(sentence.token_heads) is None
        changed += sum(record["changed"] for record in spread._.tk_reranker)
    assert changed
