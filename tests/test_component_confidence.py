"""How sure the component is: records, attributes of tokens, and the best trees of a Doc."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pipelines import K, component, new_docs, trained_model, trained_parser
from spacy.tokens import Doc, DocBin, Token

from tk_spacy.errors import UserError
from tk_spacy.pipeline.tk_reranker import TkReranker, add_reranker
from tk_spacy.reranker.calibration import Calibration, Confidence
from tk_spacy.spacy_io.extensions import register_extension

SHARES = ("final 0.1", "final 0.3", "final 1", "parsers", "votes")


def made_up_calibration(source: str) -> Calibration:
    """One by hand, which needs no fitting."""
    word = {"bias": 0.25, "weights": dict(zip(SHARES, (0.1, 0.2, 0.3, 0.1, 0.05), strict=True))}
    tree = {"bias": -0.5, "weights": word["weights"] | {"heads": 0.1, "labels": 0.2}}
    return Calibration.from_dict(
        {
            "scales": {source: 2.0},
            "final_scale": 1.5,
            "head": word,
            "label": word | {"bias": 0.5},
            "tree": tree,
            "others_temperature": 1.0,
            "others_share": 0.5,
        }
    )


def sure_pipeline(**config):
    """A pipeline whose reranker is calibrated."""
    model = trained_model()
    (source,) = model.combination.betas
    nlp = trained_parser()
    add_reranker(
        nlp, replace(model, calibration=made_up_calibration(source)),
        **{"k": K, "n_threads": 1, **config},
    )  # fmt: skip
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return sure_pipeline(candidates=3)


def test_component_writes_calibrated_probabilities(nlp):
    plain = sure_pipeline()
    reranker = component(plain).reranker
    component(plain).reranker = replace(reranker, calibration=None)
    for doc, other in zip(
        nlp.pipe(new_docs(nlp, 6, sentences_each=2)),
        plain.pipe(new_docs(plain, 6, sentences_each=2)),
        strict=True,
    ):
        assert [(t.head.i, t.dep_) for t in doc] == [(t.head.i, t.dep_) for t in other]
        for record, before in zip(doc._.tk_reranker, other._.tk_reranker, strict=True):
            assert record["calibrated"] is True
            assert before["calibrated"] is False
            assert before["head_probs"] is before["label_probs"] is None
            assert (record["margin"], record["changed"]) == (before["margin"], before["changed"])
            tokens = doc[record["start"] : record["end"]]
            assert record["head_probs"] == tuple(t._.tk_head_prob for t in tokens)
            assert record["label_probs"] == tuple(t._.tk_label_prob for t in tokens)
            assert all(0 < p < 1 for p in (*record["head_probs"], *record["label_probs"]))
        assert {t._.tk_head_prob for t in other} == {None}
        assert other._.tk_candidates is None


def test_component_confidence_is_the_rerankers(nlp):
    (doc,) = nlp.pipe(new_docs(nlp, 1))
    reranker = component(nlp).reranker
    source = component(nlp).find_sources(reranker)[0]
    from tk_spacy.spacy_io.doc_trees import read_sentences

    fresh = nlp.get_pipe("parser")(new_docs(nlp, 1)[0])
    (sentence,) = read_sentences(fresh)
    (trees,) = source.candidates([sentence.plain], k=K)
    final = reranker.final_scores(sentence.plain, trees, n_threads=1)
    expected = reranker.confidence(trees, final)
    (record,) = doc._.tk_reranker
    assert record["confidence"] == pytest.approx(expected.tree)
    assert record["head_probs"] == pytest.approx(expected.heads.tolist())
    assert record["label_probs"] == pytest.approx(expected.labels.tolist())
    (shown,) = doc._.tk_candidates
    order = np.argsort(-final)[:3]
    assert [item["score"] for item in shown] == pytest.approx(final[order].tolist())
    assert [item["probability"] for item in shown] == pytest.approx(expected.trees[order].tolist())
    for item, row in zip(shown, order.tolist(), strict=True):
        ud = [0 if h == i else h + 1 for i, h in enumerate(item["heads"])]
        assert ud == trees.heads[row].tolist()
    assert shown[0]["heads"] == [t.head.i for t in doc]
    assert shown[0]["labels"] == [t.dep_ for t in doc]


def test_component_passes_over_white_space(nlp):
    (given,) = new_docs(nlp, 1)
    words = [t.text for t in given]
    doc = Doc(
        nlp.vocab,
        words=[*words[:2], "\n", *words[2:]],
        tags=[*(t.tag_ for t in given[:2]), "_SP", *(t.tag_ for t in given[2:])],
        pos=[*(t.pos_ for t in given[:2]), "SPACE", *(t.pos_ for t in given[2:])],
        morphs=[*(str(t.morph) for t in given[:2]), "", *(str(t.morph) for t in given[2:])],
    )
    doc = nlp(doc)
    (record,) = doc._.tk_reranker
    if record["confidence"] is None:
        pytest.skip("the parser's tree cannot be used")
    assert doc[2]._.tk_head_prob is None
    assert all(t._.tk_head_prob is not None for t in doc if not t.is_space)
    (shown,) = doc._.tk_candidates
    assert [item["heads"][2] for item in shown] == [None] * len(shown)
    assert [h for i, h in enumerate(shown[0]["heads"]) if i != 2] == [
        t.head.i for t in doc if not t.is_space
    ]


def test_component_single_words_are_sure(nlp):
    doc = nlp(Doc(nlp.vocab, words=["ba"], tags=["N"], pos=["NOUN"], morphs=["Case=Nom"]))
    assert doc[0]._.tk_head_prob == doc[0]._.tk_label_prob == 1.0
    ((tree,),) = doc._.tk_candidates
    assert (tree["heads"], tree["probability"], tree["score"]) == ([0], 1.0, None)


def test_probabilities_survive_docbin_and_bytes(nlp):
    (doc,) = nlp.pipe(new_docs(nlp, 1))
    expected = [t._.tk_head_prob for t in doc], [t._.tk_label_prob for t in doc]
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (stored,) = DocBin().from_bytes(data).get_docs(nlp.vocab)
    for copy in (stored, Doc(nlp.vocab).from_bytes(doc.to_bytes())):
        assert ([t._.tk_head_prob for t in copy], [t._.tk_label_prob for t in copy]) == expected
        assert copy._.tk_candidates[0][0]["probability"] == doc._.tk_candidates[0][0]["probability"]


def test_pieces_of_a_long_sentence_are_joined():
    pieces = [
        Confidence(0.5, np.array([0.5, 0.75]), np.array([1.0, 0.5]), np.array([0.5, 0.25])),
        Confidence(0.25, np.array([0.125]), np.array([0.0]), np.array([0.25])),
    ]
    found = Confidence.joined(pieces)
    assert found.tree == 0.125
    assert found.heads.tolist() == [0.5, 0.75, 0.125]
    assert found.labels.tolist() == [1.0, 0.5, 0.0]
    assert found.trees.tolist() == [0.125]
    assert Confidence.joined(pieces[:1]) is pieces[0]


def test_component_refuses_a_number_of_candidates_that_is_none(nlp):
    with pytest.raises(UserError, match="candidates is -1; it must be 0 or more"):
        TkReranker(nlp, candidates=-1)


def test_extensions_of_others_are_refused():
    register_extension()
    old = Token.get_extension("tk_head_prob")
    try:
        Token.remove_extension("tk_head_prob")
        Token.set_extension("tk_head_prob", default=0.0)
        with pytest.raises(UserError, match=r"token\._\.tk_head_prob is declared by other code"):
            register_extension()
    finally:
        Token.set_extension("tk_head_prob", getter=old[2], force=True)
