"""The component's option `well_formed`, and a model's penalties in it: choices, records, lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pipelines import K, component, new_docs, new_sentences, trained_model, trained_parser
from test_component_confidence import made_up_calibration

from tk_spacy.errors import UserError
from tk_spacy.evaluation.well_formed import count_violations, word_facts
from tk_spacy.kbest.well_formed import list_violations
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.pipeline.tk_reranker import TkReranker, add_reranker
from tk_spacy.reranker.penalties import Penalties
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc

KEPT = 4


@pytest.fixture(scope="module")
def lists():
    sentences = new_sentences(40)
    return list(
        zip(sentences, SpacySource(trained_parser()).candidates(sentences, k=K), strict=True)
    )


@pytest.fixture(scope="module")
def penalties(lists) -> Penalties:
    broken = set().union(*(list_violations(t, word_facts(s)).at for s, t in lists))
    return Penalties(dict.fromkeys(sorted(broken), 1.5))


def pipeline(penalties, *, calibrated=True, **config):
    model = trained_model()
    (source,) = model.combination.betas
    calibration = made_up_calibration(source) if calibrated else None
    nlp = trained_parser()
    add_reranker(
        nlp, replace(model, calibration=calibration, penalties=penalties),
        **{"k": K, "n_threads": 1, "candidates": KEPT, **config},
    )  # fmt: skip
    component(nlp).explains = True
    return nlp


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("penalized", [False, True])
@pytest.mark.parametrize("calibrated", [False, True])
def test_component_chooses_and_shows_what_is_decided(
    lists, penalties, option, penalized, calibrated
):
    own = penalties if penalized else Penalties()
    nlp = pipeline(own, calibrated=calibrated, well_formed=option)
    model = component(nlp).reranker
    repaired = left_out = 0
    for sentence, found in lists:
        if len(found) == 1:
            continue
        decision = model.decide(sentence, found, well_formed=option, n_threads=1)
        rows = decision.order[: decision.eligible.sum()]
        among = decision.candidates
        doc = nlp(doc_from_sentence(nlp.vocab, sentence))
        reranked = sentence_from_doc(doc)
        assert reranked.heads.tolist() == among.heads[rows[0]].tolist()
        assert reranked.deprels == among.deprels(rows[0])
        (record,), (shown,) = doc._.tk_reranker, doc._.tk_candidates
        assert record["n_candidates"] == len(rows)
        margin = float(decision.final[rows[0]] - decision.final[rows[1]]) if rows[1:] else None
        assert record["margin"] == margin
        sure = model.confidence(among, decision.final, rows[0])
        if calibrated:
            assert record["confidence"] == sure.tree
            assert [t._.tk_head_prob for t in doc] == sure.heads.tolist()
            expected = [sure.trees[row] for row in rows]
        else:
            powers = np.exp(decision.final[rows] - decision.final[rows[0]])
            expected = powers / powers.sum()
            assert record["confidence"] == pytest.approx(expected[0])
        assert [item["probability"] for item in shown] == pytest.approx(expected[:KEPT])
        assert [item["score"] for item in shown] == decision.final[rows[:KEPT]].tolist()
        for item, row in zip(shown, rows, strict=False):
            heads = [0 if head == i else head + 1 for i, head in enumerate(item["heads"])]
            assert heads == among.heads[row].tolist()
        (explained,) = doc._.tk_explanation
        assert explained["trees"][0]["heads"] == reranked.heads.tolist()
        assert explained["trees"][0]["score"] == decision.final[rows[0]]
        repaired += len(decision.repairs)
        left_out += len(among) - len(rows)
    assert bool(repaired) == (option or penalized)
    assert bool(left_out) == option


def test_component_leaves_fewer_violations_with_the_option(penalties):
    counts = []
    for option in (False, True):
        nlp = pipeline(Penalties(), well_formed=option)
        docs = nlp.pipe(new_docs(nlp, 40))
        counts.append(sum(count_violations([sentence_from_doc(doc) for doc in docs]).values()))
    assert counts[1] < counts[0] / 2


def test_component_option_is_checked_and_stored(tmp_path):
    import spacy

    nlp = pipeline(Penalties(), well_formed=True)
    nlp.to_disk(tmp_path)
    assert component(spacy.load(tmp_path)).well_formed is True
    with pytest.raises(UserError, match="x: well_formed is 'yes'; it must be true or false"):
        TkReranker(nlp, "x", well_formed="yes")  # type: ignore[arg-type]
