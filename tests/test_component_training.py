"""Initializing the spaCy component: from folds, from a file, from a model, under `spacy train`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from named_pipes import pipe
from pipelines import (
    K,
    blank_parser,
    component,
    new_docs,
    new_sentences,
    predictions,
    trained_model,
    trained_parser,
    trained_pipeline,
    trees,
)
from spacy.cli.train import train as spacy_train
from spacy.tokens import Doc
from spacy.training import Example
from tiny_spacy import tiny_config

from tk_spacy.errors import CandidateError, UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.parsers.spacy_transition.source import SpacySource, train_spacy_parser
from tk_spacy.pipeline.from_examples import fold_config, gold_sentences, lists_from_file
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.treebank.synthetic import generate

CONFIGS = Path(__file__).parent.parent / "configs"
QUICK = {"bits": 12, "iterations": 2}


def initialized(nlp, **settings):
    """A new component, initialized on a few sentences."""
    found = nlp.add_pipe("tk_reranker", config={"k": K, "n_threads": 1})
    found.initialize(lambda: list(read_examples(generate(40, seed=5), nlp)), nlp=nlp, **settings)
    return found


def test_training_from_folds_needs_no_trained_parser(tmp_path):
    def run():
        nlp = blank_parser()
        nlp.config["training"]["batcher"]["size"] = {"@schedules": "constant.v1", "rate": 300}
        folds = {"folds": 2, "max_steps": 3, "workdir": str(tmp_path / "folds")}
        return initialized(nlp, settings=QUICK, **folds)

    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = run()
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    assert first.reranker.settings.bits == 12
    assert list(first.reranker.combination.betas) == ["spacy"]
    assert first.reranker.about["backward"] is False
    written = (tmp_path / "folds" / "fold-01.conllu").stat().st_mtime_ns
    again = run()
    assert again.to_bytes() == first.to_bytes()
    assert (tmp_path / "folds" / "fold-01.conllu").stat().st_mtime_ns == written


def test_training_keeps_the_sentences_that_support_parts_came_from(tmp_path):
    def made(**more):
        nlp = blank_parser()
        nlp.config["training"]["batcher"]["size"] = {"@schedules": "constant.v1", "rate": 300}
        folds = {"folds": 2, "max_steps": 3, "workdir": str(tmp_path / "folds")}
        return initialized(nlp, settings=QUICK, **folds, **more).reranker

    kept, without = made(), made(examples=False)
    assert without.examples is None
    assert len(kept.examples) > 5
    assert {e.forms for e in kept.examples.sentences.values()} <= {
        s.forms for s in generate(40, seed=5)
    }
    assert replace(kept, examples=None).to_bytes() == without.to_bytes()


def test_training_from_folds_with_backward_twins_where_the_pipeline_has_one(tmp_path):
    nlp = train_spacy_parser(
        new_sentences(10),
        config=tiny_config(tmp_path / "tiny.cfg", training__max_steps=2),
        backward=True,
    )
    found = initialized(nlp, settings=QUICK, folds=2, max_steps=2)
    assert found.reranker.about["backward"] is True
    found.from_bytes(found.to_bytes())
    assert found.reranker.about["backward"] is True
    assert all(doc._.tk_reranker for doc in nlp.pipe(new_docs(nlp, 3)))


def test_training_fold_config_holds_the_parser_and_what_it_listens_to():
    nlp = trained_pipeline(shared_tok2vec=True)
    nlp.add_pipe("sentencizer", first=True)
    nlp.config["initialize"]["components"]["tk_reranker"] = {"folds": 7}
    config = spacy.util.load_config_from_str(fold_config(nlp, "parser", max_steps=17))
    assert config["nlp"]["pipeline"] == list(config["components"]) == ["tok2vec", "parser"]
    assert config["initialize"]["components"] == {}
    assert config["training"]["max_steps"] == 17
    own = spacy.util.load_config_from_str(fold_config(trained_parser(), "parser", max_steps=1))
    assert own["nlp"]["pipeline"] == ["parser"]


@pytest.fixture(scope="module")
def kbest(tmp_path_factory):
    path = tmp_path_factory.mktemp("kbest") / "train.kbest.conllu"
    sentences = list(generate(40, seed=5))
    lists = SpacySource(trained_parser()).candidates(sentences, k=K)
    write_kbest(path, reversed(list(zip(sentences, lists, strict=True))))  # order is no matter
    return path


def test_training_from_a_candidate_file(kbest):
    nlp = trained_parser()
    nlp.config["initialize"]["components"]["tk_reranker"] = {
        "candidates": str(kbest),
        "settings": QUICK,
    }
    nlp.add_pipe("tk_reranker", config={"k": K, "n_threads": 1})
    with nlp.select_pipes(disable=["parser"]):
        nlp.initialize(lambda: list(read_examples(generate(40, seed=5), nlp)))
    assert component(nlp).reranker.settings.iterations == 2
    docs = list(nlp.pipe(new_docs(nlp, 10)))
    assert any(doc._.tk_reranker[0]["changed"] for doc in docs)


def test_training_from_a_candidate_file_that_does_not_fit(kbest, tmp_path):
    nlp = trained_parser()
    found = nlp.add_pipe("tk_reranker", config={"k": K})
    more = list(read_examples(generate(41, seed=5), nlp))
    with pytest.raises(CandidateError, match="no candidates for training sentence 41: "):
        found.initialize(lambda: more, nlp=nlp, candidates=kbest)
    other = tmp_path / "other.conllu"
    other.write_text(kbest.read_text(encoding="utf-8").replace("spacy:", "sampling:"), "utf-8")
    with pytest.raises(CandidateError, match=r"other.conllu:\d+: candidates scored by sampling, "):
        found.initialize(lambda: more, nlp=nlp, candidates=other)


def test_training_lists_may_come_from_a_pipe(kbest, tmp_path):
    sentences = list(generate(40, seed=5))
    expected = {s.forms: t for s, t in read_kbest(kbest, inventory=LabelInventory())}
    with pipe(tmp_path / "pipe", kbest.read_bytes()) as path:
        lists = lists_from_file(path, sentences, sources=["spacy"], inventory=LabelInventory(), k=K)
    for sentence, found in zip(sentences, lists, strict=True):
        assert found.scores.tolist() == expected[sentence.forms].scores.tolist()


def test_training_loads_a_model(tmp_path):
    trained_model().to_disk(tmp_path / "model")
    trained_pipeline().to_disk(tmp_path / "pipeline")
    expected = predictions(map(trained_pipeline(), new_docs(trained_parser(), 5)))
    for path in (tmp_path / "model", tmp_path / "pipeline"):
        nlp = trained_parser()
        initialized(nlp, model=path)
        assert predictions(map(nlp, new_docs(nlp, 5))) == expected
    trained_parser().to_disk(tmp_path / "parser")
    with pytest.raises(UserError, match=r"'tk_reranker', or any other with a tk-spacy reranker"):
        initialized(trained_parser(), model=tmp_path / "parser")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"folds": 1}, "tk_reranker: folds is 1; it must be 2 or more"),
        ({"max_steps": 0}, "tk_reranker: max_steps is 0"),
        ({"processes": 0}, "tk_reranker: processes is 0"),
        ({"settings": {"speed": 1}}, "unknown settings: speed"),
        ({"settings": {"iterations": 0}}, "iterations is 0; it must be at least 1"),
        ({"model": "some", "candidates": "file"}, "a model is loaded as it is"),
        ({"model": "missing"}, "missing: no tk-spacy reranker here"),
        ({"candidates": "missing.conllu"}, "missing.conllu"),
        ({"folds": 50}, "40 sentences cannot make 50 folds"),
    ],
)
def test_training_wrong_values(values, message):
    with pytest.raises(UserError, match=message):
        initialized(trained_parser(), **values)


def test_training_unknown_value_in_the_config():
    nlp = trained_parser()
    nlp.add_pipe("tk_reranker")
    nlp.config["initialize"]["components"]["tk_reranker"] = {"fold": 3}
    with pytest.raises(ValueError, match=r"tk_reranker -> fold"):
        nlp.initialize(lambda: list(read_examples(generate(5), nlp)))


def test_training_without_trees():
    nlp = trained_parser()
    found = nlp.add_pipe("tk_reranker")
    with pytest.raises(UserError, match="the training examples hold no dependency tree"):
        found.initialize(lambda: [Example.from_dict(nlp.make_doc("ba be"), {})], nlp=nlp)
    with pytest.raises(UserError, match="no component 'parser'"):
        spacy.blank("xx").add_pipe("tk_reranker").initialize(list)


@pytest.mark.parametrize(
    ("label", "fault"),
    [
        ("a\tb", "holds a tab or line break"),
        ("a\nb", "holds a tab or line break"),
        ("a\r", "holds a tab or line break"),
        (" ", "is nothing but white space"),
        ("nsubj||obj", "holds '||', by which spaCy marks arcs"),
    ],
)
@pytest.mark.parametrize("name", ["tk_reranker", "tk_parser"])
def test_training_with_a_label_that_no_tree_can_hold(name, label, fault):
    nlp = trained_parser()
    found = nlp.add_pipe(name)
    examples = list(read_examples(generate(6), nlp))
    reference = examples[3].reference
    next(token for token in reference if token.head != token).dep_ = label
    with pytest.raises(UserError, match=r"training example 4: label .* of token \d") as caught:
        found.initialize(lambda: examples, nlp=nlp)
    assert f"{fault}" in str(caught.value)
    assert str(caught.value).endswith("; rename it")
    assert "\n" not in str(caught.value)


def test_training_with_odd_features_of_words():
    nlp = trained_parser()
    doc = doc_from_sentence(nlp.vocab, next(generate(1)), with_tree=True)
    doc[0].set_morph("Case=a b\tc")
    (sentence,) = gold_sentences([Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc)])
    assert sentence.feats[0] == "Case=a b c"


def test_training_sees_the_tags_of_the_predicted_doc():
    nlp = trained_parser()
    (sentence,) = generate(1)
    gold = doc_from_sentence(nlp.vocab, sentence, with_tree=True)
    predicted = Doc(nlp.vocab, words=[t.text for t in gold], pos=["X"] * len(gold))
    bare = Doc(nlp.vocab, words=[t.text for t in gold])
    assert set(gold_sentences([Example(predicted, gold)])[0].upos) == {"X"}
    assert gold_sentences([Example(bare, gold)])[0].upos == sentence.upos


def test_training_update_does_nothing():
    nlp = trained_pipeline()
    before = component(nlp).to_bytes()
    losses = component(nlp).update([], losses={"parser": 1.0})
    assert losses == {"parser": 1.0, "tk_reranker": 0.0}
    assert component(nlp).to_bytes() == before


def test_training_score_counts_with_and_without_punctuation():
    nlp = trained_pipeline()
    examples = list(read_examples(new_sentences(20), nlp))
    found = nlp.evaluate(examples)
    for label, ignored in (("", {"punct"}), ("_with_punct", set())):
        right_head = right_both = total = predicted = 0
        for example, doc in zip(examples, nlp.pipe(new_docs(nlp, 20)), strict=True):
            total += sum(token.dep_ not in ignored for token in example.reference)
            predicted += sum(token.dep_ not in ignored for token in doc)
            for gold, token in zip(example.reference, doc, strict=True):
                if gold.dep_ not in ignored and token.dep_ not in ignored:
                    right_head += gold.head.i == token.head.i
                    right_both += (gold.head.i, gold.dep_) == (token.head.i, token.dep_)
        # F scores, as spaCy counts: a label decides whether a word counts as punctuation.
        assert found[f"dep_uas{label}"] == pytest.approx(2 * right_head / (total + predicted))
        assert found[f"dep_las{label}"] == pytest.approx(2 * right_both / (total + predicted))
    assert "nsubj" in found["dep_las_per_type"]


SMALL = {
    "components.tk_reranker.k": 4,
    "components.tk_reranker.n_threads": 1,
    "initialize.components.tk_reranker.folds": 2,
    "initialize.components.tk_reranker.processes": 1,
    "initialize.components.tk_reranker.settings": QUICK,
}
SMALL_PARSER = {
    "components.parser.model.tok2vec.encode.width": 16,
    "components.parser.model.tok2vec.encode.depth": 1,
    "components.parser.model.hidden_width": 16,
    "training.max_steps": 4,
    "training.eval_frequency": 2,
}


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebank")
    write_conllu(folder / "train.conllu", generate(30, seed=5))
    write_conllu(folder / "dev.conllu", generate(8, seed=6))
    return {f"paths.{part}": str(folder / f"{part}.conllu") for part in ("train", "dev")}


def check_output(path, capsys):
    assert "DEP_LAS" in capsys.readouterr().out
    nlp = spacy.load(path)
    assert nlp.pipe_names == ["parser", "tk_reranker"]
    docs = list(nlp.pipe(new_docs(nlp, 3)))
    assert all(doc._.tk_reranker for doc in docs)
    return nlp


def test_training_config_for_parser_and_reranker(treebank, tmp_path, capsys):
    spacy_train(CONFIGS / "reranker.cfg", tmp_path, overrides={**treebank, **SMALL, **SMALL_PARSER})
    check_output(tmp_path / "model-best", capsys)


def test_training_config_for_a_trained_parser(treebank, tmp_path, capsys):
    spacy_pipeline = trained_parser()
    spacy_pipeline.to_disk(tmp_path / "upstream")
    steps = {"initialize.components.tk_reranker.max_steps": 2}
    paths = {**treebank, "paths.upstream": str(tmp_path / "upstream")}
    config = CONFIGS / "rerank_pipeline.cfg"
    spacy_train(config, tmp_path / "new", overrides={**paths, **SMALL, **steps})
    nlp = check_output(tmp_path / "new" / "model-last", capsys)
    parsed = [
        pipeline.get_pipe("parser").pipe(new_docs(pipeline, 9))
        for pipeline in (nlp, spacy_pipeline)
    ]
    assert trees(parsed[0]) == trees(parsed[1])  # the parser stayed as it was

    model = str(tmp_path / "new" / "model-last")
    spacy_train(
        config, tmp_path / "other", overrides={**paths, "paths.model": model, "system.seed": 2}
    )
    other = check_output(tmp_path / "other" / "model-last", capsys)
    assert component(other).to_bytes() == component(nlp).to_bytes()
