"""Sentences as Docs and back, the corpus reader, and non-projective trees."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
from spacy.pipeline._parser_internals.nonproj import projectivize
from spacy.tokens import Doc
from spacy.util import registry
from tiny_spacy import nonprojective_tree

from tk_spacy.errors import UserError
from tk_spacy.spacy_io.conversion import (
    check_sentences,
    doc_from_sentence,
    sentence_from_doc,
    sentences_from_doc,
    set_tree,
)
from tk_spacy.spacy_io.corpus import create_conllu_reader
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.trees.spacy_decorations import deprojectivize

# Docs and Sentences


def test_corpus_sentence_to_doc_and_back_keeps_columns_and_tree():
    for sentence in [nonprojective_tree(), *generate(20, seed=8)]:
        doc = doc_from_sentence(spacy.blank("xx").vocab, sentence, with_tree=True)
        back = sentence_from_doc(doc)
        assert back.heads.tolist() == sentence.heads.tolist()
        for column in ("forms", "upos", "xpos", "feats", "deprels"):
            assert getattr(back, column) == getattr(sentence, column)


@pytest.mark.parametrize("feats", ["Case", "Case=", "Case==Nom", "Case=Nom|", "|", "=Nom"])
def test_corpus_feats_that_spacy_cannot_take_are_named(feats):
    sentence = Sentence.from_columns(forms=["a"], feats=[feats], sent_id="s7")
    with pytest.raises(UserError, match=r"sentence 's7': FEATS .* no list of Name=Value"):
        doc_from_sentence(spacy.blank("xx").vocab, sentence)
    assert len(doc_from_sentence(spacy.blank("xx").vocab, sentence, gold_tags=False)) == 1


def test_corpus_docs_keep_spaces():
    sentence = Sentence.from_columns(
        forms=["Nein", ",", "danke"], misc=["SpaceAfter=No", "_", "Gloss=x|SpaceAfter=No"]
    )
    doc = doc_from_sentence(spacy.blank("xx").vocab, sentence)
    assert doc.text == "Nein, danke"
    assert sentence_from_doc(doc).misc == ("SpaceAfter=No", "_", "Gloss=x|SpaceAfter=No")
    assert not sentence_from_doc(doc).has_tree


def test_corpus_sentences_of_a_longer_doc_count_from_their_own_start():
    vocab = spacy.blank("xx").vocab
    doc = Doc(
        vocab,
        words="a b c d e".split(),
        heads=[1, 1, 3, 3, 2],
        deps=["det", "ROOT", "x", "ROOT", "y"],
        sent_starts=[True, False, True, False, False],
    )
    first, second = sentences_from_doc(doc)
    assert (first.heads.tolist(), first.deprels) == ([2, 0], ("det", "root"))
    assert (second.heads.tolist(), second.deprels) == ([2, 0, 1], ("x", "root", "y"))
    with pytest.raises(ValueError, match="2 roots; take the sentences one by one"):
        sentence_from_doc(doc)


def test_corpus_white_space_tokens_become_empty_columns():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "\n\n", "b"])
    assert sentence_from_doc(doc).forms == ("a", "_", "b")


def test_corpus_set_tree_writes_what_was_given():
    doc = Doc(spacy.blank("xx").vocab, words="a b c".split())
    set_tree(doc, np.array([3, 1, 0]), ["x", "y", "ROOT"])
    assert [token.head.i for token in doc] == [2, 0, 2]
    assert [token.dep_ for token in doc] == ["x", "y", "ROOT"]


def test_corpus_names_a_tag_that_spacy_does_not_know():
    sentence = Sentence.from_columns(forms=["a"], upos=["Nn"], sent_id="s7")
    with pytest.raises(UserError, match=r"s7.*'Nn' is no universal part of speech"):
        doc_from_sentence(spacy.blank("xx").vocab, sentence)


@pytest.mark.parametrize(("upos", "feats"), [("Nn", "_"), ("NOUN", "A=|b=c")])
def test_corpus_names_the_line_of_the_word(upos: str, feats: str) -> None:
    sentence = Sentence.from_columns(
        forms=["a", "b", "c"], upos=["X", upos, "X"], feats=["_", feats, "_"], sent_id="s7"
    )
    placed = replace(sentence, path="t.conllu", line=7)
    with pytest.raises(UserError, match=r"t\.conllu:9: "):
        doc_from_sentence(spacy.blank("xx").vocab, placed)


def test_corpus_a_tag_in_the_wrong_column_is_not_known_from_the_right_one() -> None:
    right = Sentence.from_columns(forms=["a"], upos=["NOUN"], feats=["Case=Nom"])
    check_sentences([right, right])
    for columns, said in (
        ({"upos": ["NOUN"], "feats": ["NOUN"]}, "FEATS 'NOUN' is no list of Name=Value"),
        ({"upos": ["Case=Nom"]}, "UPOS 'Case=Nom' is no universal part of speech"),
    ):
        wrong = Sentence.from_columns(forms=["a"], sent_id="s7", **columns)
        with pytest.raises(UserError, match=f"s7.*{said}"):
            check_sentences([right, wrong])


def test_corpus_reader_yields_one_sentence_a_doc(tmp_path):
    path = tmp_path / "some.conllu"
    write_conllu(path, generate(4, seed=1))
    nlp = spacy.blank("xx")
    reader = registry.readers.get("tk_spacy.ConlluCorpus.v1")
    with pytest.raises(UserError, match=r"ConlluCorpus\.v1: limit is -1; it must be 0, for all"):
        reader(path, limit=-1)
    examples = list(reader(path, gold_tags=True, limit=3)(nlp))
    assert len(examples) == 3
    for example, sentence in zip(examples, generate(3, seed=1), strict=True):
        assert [t.is_sent_start for t in example.predicted] == [True] + [False] * (
            len(sentence) - 1
        )
        assert not example.predicted.has_annotation("DEP")
        assert tuple(t.pos_ for t in example.predicted) == sentence.upos
        assert example.reference.has_annotation("DEP")
    (bare, *_) = create_conllu_reader(path, gold_tags=False)(nlp)
    assert not bare.predicted.has_annotation("TAG")
    assert list(create_conllu_reader(None)(nlp)) == []


# Non-projective trees


def spacys_deprojectivize(heads, labels) -> tuple[list[int], list[str]]:
    from spacy.pipeline._parser_internals.nonproj import deprojectivize as spacys

    doc = Doc(spacy.blank("xx").vocab, words=["x"] * len(heads), heads=heads, deps=labels)
    doc = spacys(doc)
    return [token.head.i for token in doc], [token.dep_ for token in doc]


@pytest.mark.parametrize("seed", range(200))
def test_deprojectivize_does_as_spacy_does(seed):
    """Random trees, projectivized, with labels from so few that searches meet the wrong word."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 12))
    order = random.permutation(n)
    heads = [0] * n
    for position, word in enumerate(order):
        heads[word] = int(order[random.integers(position)]) if position else int(word)
    labels = ["ROOT" if heads[i] == i else "ab"[random.integers(2)] for i in range(n)]
    projective, decorated = projectivize(heads, labels)
    expected = spacys_deprojectivize(projective, decorated)
    own = [-1 if head == i else head for i, head in enumerate(projective)]
    deprojectivize(own, decorated)
    assert [i if head < 0 else head for i, head in enumerate(own)] == expected[0]
    assert decorated == expected[1]


def test_deprojectivize_leaves_a_label_whose_head_is_not_found():
    heads, labels = [1, -1], ["x||nowhere", "ROOT"]
    deprojectivize(heads, labels)
    assert (heads, labels) == ([1, -1], ["x", "ROOT"])
