"""`doc._.tk_explanation`: on request alone, and of the choice that the component made."""

from __future__ import annotations

import json
import math

import numpy as np
from pipelines import K, new_sentences, trained_model, trained_parser, trained_pipeline
from spacy.tokens import Doc, DocBin

from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.spacy_io.conversion import doc_from_sentence


def test_component_explains_its_choices_on_request_alone() -> None:
    nlp = trained_pipeline()
    component = nlp.get_pipe("tk_reranker")
    sentences = new_sentences(6)
    plain = [nlp(doc_from_sentence(nlp.vocab, sentence)) for sentence in sentences]
    assert all(doc._.tk_explanation is None for doc in plain)
    component.explains = True
    try:
        docs = [nlp(doc_from_sentence(nlp.vocab, sentence)) for sentence in sentences]
    finally:
        component.explains = False
    source, model = SpacySource(trained_parser()), trained_model()
    for sentence, found, before, doc in zip(
        sentences, source.candidates(sentences, k=K), plain, docs, strict=True
    ):
        assert [t.head.i for t in doc] == [t.head.i for t in before]
        (explanation,) = doc._.tk_explanation
        (record,) = doc._.tk_reranker
        if len(found) == 1:
            assert explanation is None
            continue
        winner = explanation["trees"][0]
        heads = [0 if t.head.i == t.i else t.head.i + 1 for t in doc]
        assert winner["heads"] == heads
        final = np.sort(model.final_scores(sentence, found, n_threads=1))
        assert winner["score"] == final[-1]
        margin = winner["score"] - explanation["trees"][1]["score"]
        assert math.isclose(margin, record["margin"], abs_tol=1e-9)
        json.dumps(explanation, allow_nan=False)
    kept = DocBin(docs=docs, store_user_data=True)
    again = next(iter(DocBin().from_bytes(kept.to_bytes()).get_docs(nlp.vocab)))
    assert isinstance(again, Doc)
    assert list(again._.tk_explanation[0]["forms"]) == list(sentences[0].forms)
