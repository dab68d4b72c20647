"""The spaCy component at work: what it changes in a Doc, what it leaves, what it says."""

import copy
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import spacy
from pipelines import (
    K,
    component,
    new_docs,
    new_sentences,
    predictions,
    trained_model,
    trained_parser,
    trained_pipeline,
    trees,
)
from spacy.tokens import Doc, Span
from tiny_spacy import tiny_config

from tk_spacy.errors import UserError
from tk_spacy.parsers.spacy_transition.source import SpacySource, train_spacy_parser
from tk_spacy.pipeline.tk_reranker import TkReranker, add_reranker
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.treebank.conllu import Sentence, check_tree

UNTOUCHED = ["ORTH", "SPACY", "TAG", "POS", "MORPH", "LEMMA", "NORM", "SENT_START", "ENT_IOB"]
UNTOUCHED += ["ENT_TYPE", "ENT_KB_ID"]


def parse(nlp, doc):
    return nlp.get_pipe("parser")(doc)


@pytest.fixture(scope="module")
def nlp():
    return trained_pipeline()


def test_component_chooses_what_the_reranker_chooses(nlp):
    sentences = new_sentences(40)
    source = SpacySource(trained_parser())
    model = trained_model()
    changed = 0
    for sentence, found in zip(sentences, source.candidates(sentences, k=K), strict=True):
        best = model.decide(sentence, found, n_threads=1).row
        doc = nlp(doc_from_sentence(nlp.vocab, sentence))
        reranked = sentence_from_doc(doc)
        np.testing.assert_array_equal(reranked.heads, found.heads[best])
        assert reranked.deprels == found.deprels(best)
        (record,) = doc._.tk_reranker
        assert record["n_candidates"] == len(found)
        assert record["changed"] == (best != found.base)
        changed += record["changed"]
    assert 3 < changed < 37  # neither never nor always, or this test shows little


def test_component_confidence_is_the_softmax_at_the_chosen_tree(nlp):
    (sentence,) = new_sentences(1)
    doc = nlp(doc_from_sentence(nlp.vocab, sentence))
    (found,) = SpacySource(trained_parser()).candidates([sentence], k=K)
    final = np.sort(trained_model().final_scores(sentence, found, n_threads=1))
    (record,) = doc._.tk_reranker
    assert record["confidence"] == pytest.approx(np.exp(final[-1]) / np.exp(final).sum())
    assert record["margin"] == pytest.approx(final[-1] - final[-2])
    assert 0 < record["confidence"] <= 1


def test_component_works_per_sentence_and_changes_only_trees(nlp):
    docs = new_docs(nlp, 8, sentences_each=4)
    any_changed = False
    for doc in docs:
        parse(nlp, doc)
        doc.ents = [Span(doc, 0, 2, label="X"), Span(doc, 5, 6, label="Y", kb_id="Q1")]
        doc.spans["some"] = [doc[1:4]]
        doc.user_data["key"] = "value"
        doc.tensor = np.ones((len(doc), 2), dtype="f")
        before = copy.deepcopy(doc)
        component(nlp)(doc)
        np.testing.assert_array_equal(doc.to_array(UNTOUCHED), before.to_array(UNTOUCHED))
        assert [span.text for span in doc.spans["some"]] == [before[1:4].text]
        assert doc.user_data["key"] == "value"
        assert (doc.tensor == 1).all()
        records = doc._.tk_reranker
        assert [(r["start"], r["end"]) for r in records] == [(s.start, s.end) for s in before.sents]
        assert [s.start for s in doc.sents] == [s.start for s in before.sents]
        for record, old in zip(records, before.sents, strict=True):
            new = doc[record["start"] : record["end"]]
            assert check_tree(sentence_from_doc(new).heads) is None  # rows stay in the sentence
            same = trees([new]) == trees([old])
            assert same == (not record["changed"])
            any_changed |= record["changed"]
    assert any_changed


def test_component_uses_the_vectors_of_a_shared_tok2vec():
    nlp = trained_pipeline(shared_tok2vec=True)
    docs = list(nlp.pipe(new_docs(nlp, 20)))
    assert any(doc._.tk_reranker[0]["changed"] for doc in docs)
    # The parser's own tree is among the candidates, so the search saw what the parser saw.
    source = SpacySource(nlp)
    for doc, unparsed in zip(docs, new_docs(nlp, 20), strict=True):
        own = sentence_from_doc(parse(nlp, nlp.get_pipe("tok2vec")(unparsed)))
        (found,) = source.candidates_from_docs(new_docs_of(nlp, own), k=K)
        np.testing.assert_array_equal(found.heads[found.base], own.heads)
        assert doc._.tk_reranker[0]["n_candidates"] == len(found)


def test_component_uses_a_backward_twin_unless_the_model_learnt_without(tmp_path):
    config = tiny_config(tmp_path / "tiny.cfg", training__max_steps=6)
    nlp = train_spacy_parser(new_sentences(30), config=config, backward=True)
    found = add_reranker(nlp, k=K, n_threads=1)
    sentences = new_sentences(12)
    outcomes = []
    for backward, model in (
        (True, trained_model()),
        (False, replace(trained_model(), about={"backward": False})),
    ):
        found.reranker = model
        # The model is one of the time when both scores had one name.
        source = SpacySource(nlp, backward=backward, names=("spacy",))
        for sentence, trees_ in zip(sentences, source.candidates(sentences, k=K), strict=True):
            best = model.decide(sentence, trees_, n_threads=1).row
            doc = nlp(doc_from_sentence(nlp.vocab, sentence))
            np.testing.assert_array_equal(sentence_from_doc(doc).heads, trees_.heads[best])
            outcomes.append(predictions([doc]))
    assert outcomes[:12] != outcomes[12:]


def new_docs_of(nlp, sentence: Sentence) -> list[Doc]:
    return [doc_from_sentence(nlp.vocab, sentence)]


def test_component_compares_the_doc_s_own_tree_whatever_it_is(nlp):
    (doc,) = new_docs(nlp, 1)
    n = len(doc)
    chain = Doc(
        nlp.vocab,
        words=[t.text for t in doc],
        tags=[t.tag_ for t in doc],
        pos=[t.pos_ for t in doc],
        morphs=[str(t.morph) for t in doc],
        heads=[0, *range(n - 1)],
        deps=["root", *["strange"] * (n - 1)],
    )
    predicted = component(nlp).predict([chain])[0][0]
    assert predicted.n_candidates == K
    assert predicted.tree is not None
    component(nlp)(chain)
    assert "strange" not in {token.dep_ for token in chain}
    assert [t.dep_ for t in chain if t.head.i == t.i] == ["root"]  # as the Doc names its root

    alone = trained_pipeline(k=1)
    kept = component(alone)(parse(alone, new_docs(alone, 1)[0]))
    assert kept._.tk_reranker[0] | {"end": n} == {
        "start": 0,
        "end": n,
        "changed": False,
        "confidence": 1.0,
        "margin": None,
        "n_candidates": 1,
        "calibrated": False,
        "head_probs": None,
        "label_probs": None,
    }


def with_tree(nlp, heads, deps):
    tags = [{"tag": t.tag_, "pos": t.pos_} for t in new_docs(nlp, 1)[0]][: len(heads)]
    return Doc(
        nlp.vocab,
        words=["ba", "be", "bi", "bo"][: len(heads)],
        tags=[t["tag"] for t in tags],
        pos=[t["pos"] for t in tags],
        morphs=["Case=Nom"] * len(heads),
        heads=heads,
        deps=deps,
        sent_starts=None,
    )


@pytest.mark.parametrize(
    ("heads", "deps", "n_candidates"),
    [
        pytest.param([0], ["ROOT"], 1, id="one word"),
        pytest.param([0, 0, 1], ["ROOT", "nsubj||obj", "det"], 0, id="decorated label"),
        pytest.param([0, 0, 1], ["ROOT", "", "det"], 0, id="missing label"),
        pytest.param([0, 2, 1], ["ROOT", "nsubj", "det"], 0, id="cycle"),
    ],
)
def test_component_leaves_what_it_cannot_use(nlp, heads, deps, n_candidates):
    doc = with_tree(nlp, heads, deps)
    before = trees([doc])
    assert trees([component(nlp)(doc)]) == before
    (record,) = doc._.tk_reranker
    assert (record["changed"], record["n_candidates"]) == (False, n_candidates)
    assert record["confidence"] == (1.0 if n_candidates else None)


def test_component_leaves_a_sentence_with_several_roots(nlp):
    doc = with_tree(nlp, [0, 0, 2, 2], ["ROOT", "obj", "ROOT", "obj"])
    doc.from_array(["SENT_START"], np.array([1, 0, 0, 0], dtype=np.uint64))
    before = trees([doc])
    assert trees([component(nlp)(doc)]) == before
    assert [record["n_candidates"] for record in doc._.tk_reranker] == [0]


def test_component_leaves_a_doc_without_a_parse():
    nlp = trained_pipeline()
    (doc,) = new_docs(nlp, 1)
    with pytest.warns(UserWarning, match="a Doc has no parse to rerank"):
        assert component(nlp)(doc)._.tk_reranker is None
    assert not doc.has_annotation("DEP")
    assert nlp("")._.tk_reranker is None


def test_component_pipe_is_the_same_for_all_batch_sizes(nlp):
    one_by_one = predictions(nlp(doc) for doc in new_docs(nlp, 12, sentences_each=2))
    for size in (1, 5, 100):
        docs = nlp.pipe(new_docs(nlp, 12, sentences_each=2), batch_size=size)
        assert trees(docs) == [tree for tree, _ in one_by_one]


@pytest.mark.parametrize("search", ["beam", "both"])
def test_component_searches_otherwise(search):
    nlp = trained_pipeline(search=search)
    for doc in nlp.pipe(new_docs(nlp, 10)):
        assert check_tree(sentence_from_doc(doc).heads) is None
        assert doc._.tk_reranker[0]["n_candidates"] >= 1


def test_component_warns_once_of_missing_tags(nlp):
    nlp = trained_pipeline()
    docs = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in new_docs(nlp, 3)]
    with pytest.warns(UserWarning, match="tk_reranker: the model uses .*MORPH, which a Doc lacks"):
        nlp(docs[0])
    for doc in docs[1:]:
        assert nlp(doc)._.tk_reranker  # warnings are errors here


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"k": 0}, "tk_reranker: k is 0; it must be 1 or more"),
        ({"k": 10**6}, "tk_reranker: k is 1000000; it must be 10000 or less"),
        ({"n_threads": 0}, "tk_reranker: n_threads is 0; it must be 1 or more"),
        ({"search": "wide"}, "tk_reranker: search is 'wide'; choose discrepancy or beam or both"),
        ({"source": ""}, "tk_reranker: source is ''; it must name the pipeline's parser"),
        ({"source": []}, "tk_reranker: source is ''; it must name the pipeline's parser"),
        ({"source": ["a", "b", "a"]}, "source is 'a'; it must name the .*several different"),
        ({"source": "tk_reranker"}, "must name the pipeline's parser"),
    ],
)
def test_component_wrong_config(config, message):
    with pytest.raises(UserError, match=message):
        spacy.blank("xx").add_pipe("tk_reranker", config=config)


@pytest.mark.parametrize("config", [{"k": "many"}, {"source": 3}, {"unknown": 1}])
def test_component_config_of_a_wrong_type(config):
    (name,) = config
    with pytest.raises(ValueError, match=f"tk_reranker -> {name}"):
        spacy.blank("xx").add_pipe("tk_reranker", config=config)


def test_component_untrained():
    nlp = trained_parser()
    nlp.add_pipe("tk_reranker")
    with pytest.raises(UserError, match=r"\[E109\].*'tk_reranker'.*Or load a trained model") as e:
        nlp("ba be")
    assert "\n" not in str(e.value)


def test_component_without_its_parser():
    nlp = trained_pipeline()
    nlp.remove_pipe("parser")
    message = r"tk_reranker: the pipeline has no component 'parser' .*it has: tk_reranker"
    with pytest.raises(UserError, match=message):
        nlp("ba be")
    with pytest.raises(UserError, match="no component 'parser'"):
        add_reranker(spacy.blank("xx"), trained_model())
    nlp = trained_parser()
    nlp.add_pipe("sentencizer")
    with pytest.raises(UserError, match="source 'sentencizer' is a Sentencizer, but must be a"):
        add_reranker(nlp, trained_model(), source="sentencizer")


def test_component_warns_of_a_model_that_does_not_know_the_parser_s_scores():
    model = trained_model()
    foreign = copy.deepcopy(model.combination)
    object.__setattr__(foreign, "betas", {"sampling": 1.0})
    object.__setattr__(foreign, "scales", {"sampling": 1.0})
    nlp = trained_pipeline()
    component(nlp).reranker = replace(model, combination=foreign)
    docs = new_docs(nlp, 2)
    with pytest.warns(UserWarning, match="the model knows scores of sampling only"):
        nlp(docs[0])
    nlp(docs[1])


def test_component_accepts_only_a_reranker(nlp):
    with pytest.raises(TypeError, match="reranker is a str, expected a Reranker or None"):
        component(nlp).reranker = "model"


def test_component_error_handler_gets_the_docs_that_fail():
    nlp = trained_parser()
    nlp.add_pipe("tk_reranker")
    failed = []
    component(nlp).set_error_handler(lambda name, _, docs, error: failed.append((name, len(docs))))
    assert list(nlp.pipe(new_docs(nlp, 3), batch_size=2)) == []
    assert failed == [("tk_reranker", 2), ("tk_reranker", 1)]


def test_component_extension_of_other_code_is_not_overwritten():
    old = Doc.remove_extension("tk_reranker") if Doc.has_extension("tk_reranker") else None
    try:
        Doc.set_extension("tk_reranker", getter=len)
        with pytest.raises(UserError, match=r"doc\._\.tk_reranker is declared as a method"):
            TkReranker(spacy.blank("xx"))
        assert Doc.get_extension("tk_reranker")[2] is len
    finally:
        Doc.set_extension("tk_reranker", default=None if old is None else old[0], force=True)


def test_component_declares_what_it_reads_and_sets(nlp):
    analysis = nlp.analyze_pipes(keys=["assigns", "requires"])["summary"]["tk_reranker"]
    assert set(analysis["assigns"]) == {
        "token.dep",
        "token.head",
        "doc._.tk_reranker",
        "doc._.tk_candidates",
        "token._.tk_head_prob",
        "token._.tk_label_prob",
    }
    assert not nlp.analyze_pipes()["problems"]["tk_reranker"]


def test_component_import_is_light():
    code = (
        "import sys, spacy; spacy.blank('xx');"
        "assert 'tk_spacy.pipeline.tk_reranker' in sys.modules;"
        "heavy = ['tk_spacy.kbest.candidates', 'tk_spacy.treebank'];"
        # The names of the speeds alone are light.
        "heavy += [m for m in sys.modules if m.startswith('tk_spacy.reranker.') "
        "and m != 'tk_spacy.reranker.speeds'];"
        "print([m for m in ['conllu', *heavy] if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_component_no_warning_for_tagged_docs(nlp):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp(new_docs(nlp, 1)[0])
