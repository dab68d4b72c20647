"""MISC attributes as properties of a Doc's words: `token._.tk_misc`."""

from __future__ import annotations

import warnings

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Token
from spacy.training import Example
from test_sampling_extras import told_by_misc
from trainings import QUICK_SAMPLING

from tk_spacy.errors import UserError
from tk_spacy.parsers.sampling.settings import SamplingSettings
from tk_spacy.parsers.sampling.training import train_sampling_parser
from tk_spacy.pipeline.tk_parser import add_parser
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.spacy_io.doc_trees import read_sentences
from tk_spacy.spacy_io.extensions import MISC_EXTENSION, register_misc
from tk_spacy.treebank.conllu import Sentence

MISC = ("Gloss=x", "SpaceAfter=No", "_", "Gloss=y|SpaceAfter=No", "SpaceAfter=No|Top=Yes")


def right(docs, sentences):
    return sum(
        sentence_from_doc(doc).heads.tolist() == s.heads.tolist()
        for doc, s in zip(docs, sentences, strict=True)
    )


@pytest.fixture(scope="module")
def nlp():
    """A pipeline whose parser goes by a MISC attribute."""
    settings = SamplingSettings(**QUICK_SAMPLING, extra=("misc:Top",))
    nlp = spacy.blank("xx")
    add_parser(nlp, train_sampling_parser(told_by_misc(30), settings=settings, n_threads=1))
    return nlp


def test_doc_misc_survives_a_doc():
    sentence = Sentence.from_columns(
        forms="abcde", misc=MISC, heads=[0, 1, 1, 1, 1], deprels=["root", *["x"] * 4]
    )
    doc = doc_from_sentence(spacy.blank("xx").vocab, sentence, with_tree=True)
    assert [token._.tk_misc for token in doc] == [MISC[0], "_", "_", MISC[3], MISC[4]]
    assert sentence_from_doc(doc).misc == MISC
    assert read_sentences(doc)[0].as_sentence().misc == MISC


def test_doc_misc_tells_no_space_where_its_text_does_not():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"], spaces=[False, True])
    register_misc()
    doc[0]._.tk_misc = "Gloss=x"
    doc[1]._.tk_misc = "Gloss=a\tb"
    assert sentence_from_doc(doc).misc == ("Gloss=x|SpaceAfter=No", "Gloss=a b")


def test_doc_misc_comes_from_the_predicted_doc_with_its_tags():
    sentence = Sentence.from_columns(
        forms=["a"], upos=["X"], misc=["Top=Yes"], heads=[0], deprels=["root"]
    )
    nlp = spacy.blank("xx")
    gold = doc_from_sentence(nlp.vocab, sentence, with_tree=True)
    tagged = doc_from_sentence(nlp.vocab, sentence)
    tagged[0]._.tk_misc = "Top=No"
    (found,) = read_sentences(gold)
    assert found.as_sentence().misc == ("Top=Yes",)
    assert found.as_sentence(tags_from=tagged).misc == ("Top=No",)


def test_doc_misc_is_what_a_parser_goes_by(nlp):
    new = told_by_misc(9)
    docs = [doc_from_sentence(nlp.vocab, sentence) for sentence in new]
    assert right(nlp.pipe(docs), new) == 9
    stored = DocBin(store_user_data=True)
    for sentence in new:
        stored.add(doc_from_sentence(nlp.vocab, sentence))
    again = DocBin(store_user_data=True).from_bytes(stored.to_bytes()).get_docs(nlp.vocab)
    assert right(nlp.pipe(again), new) == 9


def test_doc_misc_that_is_missing_is_warned_of(nlp):
    component = nlp.get_pipe("tk_parser")
    new = told_by_misc(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp(doc_from_sentence(nlp.vocab, new[0]))
    doc = Doc(nlp.vocab, words=["w"] * 3, pos=["NOUN"] * 3)
    with pytest.warns(UserWarning, match=r"uses token\._\.tk_misc, which a Doc lacks"):
        component(doc)


def test_doc_misc_is_learnt_from_examples():
    nlp = spacy.blank("xx")
    settings = {**QUICK_SAMPLING, "extra": ["misc:Top"]}
    nlp.add_pipe("tk_parser", config={"settings": settings, "n_threads": 1})
    train, new = told_by_misc(30), told_by_misc(9)
    nlp.initialize(lambda: read_examples(train, nlp))
    assert right(nlp.pipe(doc_from_sentence(nlp.vocab, s) for s in new), new) == 9


def test_doc_misc_that_no_example_has_is_refused():
    nlp = spacy.blank("xx")
    settings = {**QUICK_SAMPLING, "extra": ["misc:Gloss"]}
    nlp.add_pipe("tk_parser", config={"settings": settings, "n_threads": 1})
    with pytest.raises(
        UserError, match=r"tk_parser: the training examples: property misc:Gloss .*there are: Top"
    ):
        nlp.initialize(lambda: list(read_examples(told_by_misc(4), nlp)))


def test_doc_misc_that_other_code_has_declared_is_refused():
    old = Token.get_extension(MISC_EXTENSION) if Token.has_extension(MISC_EXTENSION) else None
    Token.set_extension(MISC_EXTENSION, getter=lambda token: "x", force=True)
    try:
        with pytest.raises(UserError, match=r"token\._\.tk_misc is declared as a method"):
            register_misc()
    finally:
        Token.remove_extension(MISC_EXTENSION)
        if old is not None:
            Token.set_extension(MISC_EXTENSION, default=old[0])


def test_doc_misc_does_not_disturb_examples():
    nlp = spacy.blank("xx")
    example = next(read_examples(told_by_misc(1), nlp))
    assert isinstance(example, Example)
    assert example.get_aligned_parse()[0] == [0, 0, 0]
