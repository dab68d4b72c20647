"""Candidate lists from trained spaCy parsers, and from a parser with its right-to-left twin."""

import numpy as np
import pytest
import spacy
from tiny_spacy import (
    assert_usable,
    base_trees,
    listening_config,
    nonprojective_tree,
    own_trees,
    tiny_config,
    tiny_nlp,
)

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import CandidateList, LabelInventory
from tk_spacy.parsers.spacy_transition import training
from tk_spacy.parsers.spacy_transition.loading import load_pipeline
from tk_spacy.parsers.spacy_transition.mirror import mirrored_doc, mirrored_heads, mirrored_sentence
from tk_spacy.parsers.spacy_transition.source import SpacySource, train_spacy_parser
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.treebank.conllu import Sentence, check_tree
from tk_spacy.treebank.synthetic import generate


@pytest.fixture(scope="module")
def sentences():
    return list(generate(60, seed=5))


@pytest.fixture(scope="module")
def nlp():
    return tiny_nlp()


@pytest.fixture(scope="module")
def twin_nlp():
    return tiny_nlp(backward=True)


@pytest.fixture(scope="module")
def listening_nlp(tmp_path_factory):
    path = tmp_path_factory.mktemp("upstream") / "tiny.cfg"
    return train_spacy_parser(
        list(generate(60, seed=3)), config=listening_config(path, max_steps=15)
    )


# Candidate lists


@pytest.mark.parametrize("search", ["discrepancy", "beam", "both"])
def test_spacy_source_lists_are_trees_with_the_parsers_own_marked(nlp, sentences, search):
    lists = list(SpacySource(nlp, search=search).candidates(sentences, k=10))
    assert_usable(lists, 10)
    assert base_trees(lists) == own_trees(nlp, sentences)


def test_spacy_source_discrepancies_come_close_to_the_gold_tree(nlp, sentences):
    lists = list(SpacySource(nlp).candidates(sentences, k=10))
    right = {
        row: sum(
            int((trees.heads[pick] == s.heads).sum())
            for trees, s in zip(lists, sentences, strict=True)
            for pick in [trees.base if row == "base" else trees.oracle(s)]
        )
        for row in ("base", "oracle")
    }
    assert right["oracle"] > 1.1 * right["base"]
    assert sum(map(len, lists)) > 9 * len(lists)


def test_spacy_source_k_1_is_the_parser_itself(nlp, sentences):
    lists = list(SpacySource(nlp).candidates(sentences[:20], k=1))
    assert [len(trees) for trees in lists] == [1] * 20
    assert base_trees(lists) == own_trees(nlp, sentences[:20])


def test_spacy_source_batches_change_nothing(nlp, sentences):
    large = SpacySource(nlp).candidates(sentences, k=5)
    small = SpacySource(nlp, batch_words=1).candidates(sentences, k=5)
    for a, b in zip(large, small, strict=True):
        assert base_trees([a]) == base_trees([b])
        np.testing.assert_allclose(a.scores[0], b.scores[0], atol=1e-3)


def test_spacy_source_serves_a_parser_that_listens(listening_nlp, sentences):
    for search in ("discrepancy", "beam"):
        lists = list(SpacySource(listening_nlp, search=search).candidates(sentences, k=5))
        assert_usable(lists, 5)
        assert base_trees(lists) == own_trees(listening_nlp, sentences)


def test_spacy_source_serves_a_beam_parser(tmp_path, sentences):
    config = training.load_spacy_config(tiny_config(tmp_path / "tiny.cfg", training__max_steps=10))
    config["components"]["parser"].update(
        {"factory": "beam_parser", "beam_width": 4, "beam_update_prob": 0.5}
    )
    beam_nlp = train_spacy_parser(list(generate(40, seed=3)), config=config)
    lists = list(SpacySource(beam_nlp).candidates(sentences[:20], k=8))
    assert_usable(lists, 8)
    assert base_trees(lists) == own_trees(beam_nlp, sentences[:20])


def test_spacy_source_docs_may_have_stray_sentence_starts(nlp, sentences):
    (expected,) = SpacySource(nlp).candidates(sentences[:1], k=5)
    doc = doc_from_sentence(nlp.vocab, sentences[0])
    doc[2].is_sent_start = True
    (found,) = SpacySource(nlp).candidates_from_docs([doc], k=5)
    np.testing.assert_array_equal(found.heads, expected.heads)


def test_spacy_source_single_words_have_one_tree(nlp):
    (trees,) = SpacySource(nlp, search="both").candidates(
        [Sentence.from_columns(forms=["Halt"])], k=9
    )
    assert trees.heads.tolist() == [[0]]
    assert trees.deprels(0) == ("root",)


def test_spacy_source_names_what_the_pipeline_has(nlp):
    with pytest.raises(UserError, match="no component 'ner'; it has: parser"):
        SpacySource(nlp, component="ner")
    other = spacy.blank("xx")
    other.add_pipe("sentencizer")
    with pytest.raises(UserError, match="'sentencizer' is a Sentencizer"):
        SpacySource(other, component="sentencizer")


def test_spacy_source_scores_trees_of_any_origin(nlp, sentences):
    source = SpacySource(nlp)
    for sentence, trees in zip(sentences[:20], source.candidates(sentences[:20], k=6), strict=True):
        (scores,) = source.score([sentence], [trees])
        # A listed tree has at least the score of the oracle's derivation.
        assert np.all(scores <= trees.scores + 1e-6)
        assert np.all(np.isfinite(scores))
    unknown = CandidateList.build(
        [(nonprojective_tree().heads, ["no-such-label"] * 6, 0.0)],
        inventory=LabelInventory(),
        sources=("file",),
    )
    (scores,) = source.score([nonprojective_tree()], [unknown])
    assert np.isnan(scores).all()


# The right-to-left twin


@pytest.mark.parametrize("format_", ["tk-spacy biaffine parser", "tk-spacy reranker"])
def test_load_pipeline_of_a_part_of_one(tmp_path, format_):
    (tmp_path / "meta.json").write_text(f'{{"format": "{format_}"}}')
    with pytest.raises(UserError, match=r"no spaCy pipeline: config\.cfg is missing; give the dir"):
        load_pipeline(tmp_path)


def test_mirrored_sentences_and_docs_are_their_own_mirror_images():
    for sentence in [nonprojective_tree(), *generate(10, seed=8)]:
        turned = mirrored_sentence(sentence)
        assert check_tree(turned.heads) is None
        assert turned.forms == sentence.forms[::-1]
        again = mirrored_sentence(turned)
        assert again.heads.tolist() == sentence.heads.tolist()
        assert (again.deprels, again.feats) == (sentence.deprels, sentence.feats)
        vocab = spacy.blank("xx").vocab
        by_doc = mirrored_doc(doc_from_sentence(vocab, sentence))
        by_sentence = doc_from_sentence(vocab, turned)
        for attribute in ("text", "norm", "tag_", "pos_", "morph", "lemma_", "is_sent_start"):
            assert [getattr(t, attribute) for t in by_doc] == [
                getattr(t, attribute) for t in by_sentence
            ]


def test_backward_twin_is_kept_with_the_pipeline_and_does_not_run_in_it(twin_nlp, nlp, tmp_path):
    twin_nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    assert again.pipe_names == ["parser"]
    assert again.disabled == ["parser_backward"]
    sentences = list(generate(10, seed=6))
    assert own_trees(again, sentences) == own_trees(nlp, sentences)
    (expected, found) = (
        list(SpacySource(pipeline).candidates(sentences, k=5)) for pipeline in (twin_nlp, again)
    )
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a.heads, b.heads)
        np.testing.assert_array_equal(a.scores, b.scores)


def test_backward_twin_adds_its_score_and_its_trees(twin_nlp, sentences):
    both = SpacySource(twin_nlp)
    assert both.names == ("spacy+backward", "spacy", "spacy-backward")
    assert SpacySource(twin_nlp, backward=False).names == ("spacy",)
    lists = list(both.candidates(sentences, k=10))
    assert_usable(lists, 10)
    assert base_trees(lists) == own_trees(twin_nlp, sentences)
    forward = SpacySource(twin_nlp, backward=False, inventory=both.inventory)
    twin = SpacySource(
        twin_nlp, component="parser_backward", backward=False, inventory=both.inventory
    )
    better = 0
    for sentence, trees, alone in zip(
        sentences, lists, forward.candidates(sentences, k=10), strict=True
    ):
        turned = CandidateList.from_arrays(
            mirrored_heads(trees.heads),
            trees.labels[:, ::-1],
            trees.scores[:, :1],
            inventory=both.inventory,
            sources=("spacy",),
        )
        one, other = (
            forward.score([sentence], [trees])[0][:, 0],
            twin.score([mirrored_sentence(sentence)], [turned])[0][:, 0],
        )
        columns = np.stack([one + other, one, other], axis=1)
        np.testing.assert_allclose(both.score([sentence], [trees])[0], columns, atol=1e-3)
        assert np.all(trees.scores >= columns - 1e-3)
        # The twin's own tree is in the list, as its own.
        (own,) = twin.candidates([mirrored_sentence(sentence)], k=1)
        row = trees.bases["spacy-backward"]
        np.testing.assert_array_equal(trees.heads[row], mirrored_heads(own.heads)[0])
        better += int((trees.heads[0] == sentence.heads).sum())
        better -= int((alone.heads[0] == sentence.heads).sum())
    assert better > 0


def test_backward_twin_of_a_listening_parser_stands_alone(tmp_path):
    config = listening_config(tmp_path / "tiny.cfg", max_steps=3)
    listening = train_spacy_parser(list(generate(30, seed=3)), config=config, backward=True)
    listening.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    sentences = list(generate(5, seed=6))
    lists = list(SpacySource(again).candidates(sentences, k=5))
    assert_usable(lists, 5)
    assert base_trees(lists) == own_trees(listening, sentences)
