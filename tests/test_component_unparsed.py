"""What `tk_reranker` says where its Docs have no parse, or not that of its first parser."""

import warnings

import pytest
from pipelines import component, new_docs, predictions, trained_pipeline

PARSE = "tk_reranker: a Doc has no parse to rerank, and is left as it is: "


def unparsed(nlp, message):
    """The first Doc is warned of, the second is not (warnings are errors here)."""
    first, second = new_docs(nlp, 2)
    with pytest.warns(UserWarning, match=message):
        nlp(first)
    nlp(second)
    for doc in (first, second):
        assert not doc.has_annotation("DEP")
        assert doc._.tk_reranker is None


def test_unparsed_where_the_parser_is_disabled():
    nlp = trained_pipeline()
    nlp.disable_pipe("parser")
    unparsed(nlp, PARSE + r"'parser' is disabled; enable it by nlp.enable_pipe\('parser'\)")
    nlp.enable_pipe("parser")
    assert nlp(new_docs(nlp, 1)[0])._.tk_reranker


def test_unparsed_within_select_pipes():
    nlp = trained_pipeline()
    with nlp.select_pipes(enable=["tk_reranker"]):
        unparsed(nlp, PARSE + "'parser' is disabled")


def test_unparsed_where_the_parser_comes_too_late():
    nlp = trained_pipeline()
    found = component(nlp)
    nlp.add_pipe("tk_reranker", source=nlp, name="early", first=True)
    nlp.remove_pipe("tk_reranker")
    assert found.name == "early"
    (doc,) = new_docs(nlp, 1)
    with pytest.warns(UserWarning, match="'parser' stands behind 'early'; put it before"):
        nlp(doc)


def test_unparsed_where_the_component_is_called_alone():
    nlp = trained_pipeline()
    with pytest.warns(UserWarning, match=r"apply 'parser' before, as nlp\(doc\) does"):
        component(nlp)(new_docs(nlp, 1)[0])


def test_unparsed_says_nothing_of_empty_docs():
    nlp = trained_pipeline()
    nlp.disable_pipe("parser")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nlp("")._.tk_reranker is None


def test_unparsed_warns_of_a_further_parser_that_is_enabled():
    nlp = trained_pipeline()
    parsed = predictions(map(nlp, new_docs(nlp, 2)))
    nlp.add_pipe("parser", source=trained_pipeline(), name="parser_backward", after="parser")
    component(nlp).reranker = component(trained_pipeline()).reranker
    with pytest.warns(UserWarning, match=r"'parser_backward' replaces the trees of 'parser'"):
        nlp(new_docs(nlp, 1)[0])
    nlp.remove_pipe("parser_backward")
    assert predictions(map(nlp, new_docs(nlp, 2))) == parsed
