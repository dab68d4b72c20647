"""A whole pipeline as spaCy's users handle it: one config, and spaCy's verbs on a model of ours."""

from __future__ import annotations

import functools
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config, load_model_from_config, registry
from test_own_tags import QUICK, own_tags_training
from text_treebank import files, part, raw
from text_treebank import model as text_model
from text_treebank import tokenizer as text_tokenizer
from trainings import folder
from udpipe_parsers import needs_udpipe

from tk_spacy.errors import UserError
from tk_spacy.pipeline.scorer import score_dependencies, score_tagging
from tk_spacy.pipeline.switching import create_switch
from tk_spacy.pipeline.tk_udpipe_tokenizer import TkUdpipeTokenizer
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence, write_conllu

pytestmark = needs_udpipe

CONFIG = Path(__file__).parent.parent / "configs" / "pipeline.cfg"
TAGGER = {"epochs": 4, "steps": 60, "form_width": 8, "affix_width": 16, "width": 16}
TEXT = "Ana viene du mar al lago, Ole.\n\nIda  sale al rio."
TEXTS = ["the old owl sees a mouse", "a fox", "this owl and that owl", "the mouse"]
KINDS = ("confidence", "margin", "head_probs", "label_probs")
"""The rest of a record depends on nothing but the trees."""


# One config


@functools.cache
def by_config() -> Path:
    """What `spacy train configs/pipeline.cfg` made of a treebank with a text, quick parts all."""
    place = folder() / "pipeline-cfg"
    quick: dict[str, Any] = {
        "paths.train": str(files()["train"]),
        "paths.dev": str(files()["dev"]),
        "components.tk_bilstm_tagger.settings": TAGGER,
        "corpora.train.tagger": ":".join(["bilstm", *(f"{k}={v}" for k, v in TAGGER.items())]),
        "corpora.train.folds": 2,
        "initialize.tokenizer.settings": {"epochs": 1, "dimension": 16},
        "initialize.components.tk_reranker.folds": 2,
        "components.tk_biaffine.settings": {"epochs": 2, "steps": 0},
        "components.tk_parser.settings": {"order": 1, "epochs": 2},
    }
    spacy_train(CONFIG, place, overrides=quick)
    return place / "model-last"


def test_pipeline_config_makes_a_model_for_text() -> None:
    nlp = spacy.load(by_config())
    assert nlp.pipe_names == ["tk_sentences", "tk_bilstm_tagger", "tk_parser", "tk_reranker"]
    assert nlp.disabled == ["tk_biaffine"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = nlp(TEXT)
    assert [t.text for t in doc[:4]] == ["Ana", "viene", "de", "lo"]
    assert [t.text for t in doc._.tk_surface][:4] == ["Ana", "viene", "du", "mar"]
    assert [t.pos_ for t in doc[:5]] == ["PROPN", "VERB", "ADP", "DET", "NOUN"]
    assert len(list(doc.sents)) == len(doc._.tk_reranker)
    assert max(record["n_candidates"] for record in doc._.tk_reranker) > 1
    assert all(sum(t.head.i == t.i for t in sent) == 1 for sent in doc.sents)


def test_pipeline_config_writes_the_scores_with_its_own_tags() -> None:
    nlp = spacy.load(by_config())
    found = nlp.evaluate(list(read_examples(part("dev"), nlp, gold_tags=False)))
    said = nlp.meta["performance"]
    for name in ("pos_acc", "lemma_acc", "dep_uas", "dep_las"):
        assert said[name] == pytest.approx(found[name]), name
    assert found["dep_las"] > 0.8  # a treebank of a few patterns
    assert nlp.analyze_pipes()["problems"] == {name: [] for name in nlp.pipe_names}


def test_pipeline_components_to_be_switched_off_must_be_there() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_parser")
    with pytest.raises(
        UserError, match=r"no component 'tk_udpipe' to be switched off; .* tk_parser"
    ):
        create_switch(["tk_udpipe"])(nlp)
    assert create_switch(["tk_parser"])(nlp).disabled == ["tk_parser"]


# The tokenizer's training


def test_pipeline_tokenizer_is_loaded_or_stays(tmp_path: Path) -> None:
    nlp = spacy.blank("xx")
    trained = text_tokenizer()
    trained.to_disk(tmp_path / "own")
    nlp.tokenizer = TkUdpipeTokenizer(nlp.vocab)
    nlp.config["nlp"]["tokenizer"] = {"@tokenizers": "tk_spacy.UdpipeTokenizer.v1"}
    nlp.config["initialize"]["tokenizer"] = {"model": str(tmp_path / "own")}
    nlp.initialize()
    assert nlp.tokenizer.tokenizer.model == trained.model
    nlp.to_disk(tmp_path / "nlp")
    whole = TkUdpipeTokenizer(nlp.vocab)
    whole.initialize(list, model=tmp_path / "nlp")
    assert whole.tokenizer is not None
    assert whole.tokenizer.model == trained.model
    nlp.config["initialize"]["tokenizer"] = {}
    nlp.initialize()  # what is there stays
    assert nlp.tokenizer.tokenizer.model == trained.model


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {},
            r"has nothing to learn from: name a CoNLL-U file as train in \[initialize.tokenizer\]",
        ),
        ({"settings": {"epochs": 3}}, "dev and settings are for a training"),
        ({"dev": "d"}, "dev and settings are for a training"),
        ({"train": "t", "model": "m"}, "a model is loaded as it is: give no more than model"),
        ({"train": "t", "settings": {"epoch": 3}}, "settings.: unknown settings: epoch; choose"),
        ({"train": "t", "settings": {"epochs": 0}}, "settings.: epochs is 0"),
        ({"train": "t"}, "t: the treebank does not tell where words stand together"),
    ],
)
def test_pipeline_tokenizer_that_cannot_be_trained(
    given: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    apart = Sentence.from_columns(forms=["a", "b"]).with_tree([0, 1], ["root", "x"])
    write_conllu("t", [apart])
    with pytest.raises(UserError, match=message):
        TkUdpipeTokenizer(spacy.blank("xx").vocab).initialize(list, **given)


# spaCy's verbs


def seen(doc: Doc) -> Any:
    """What a model said of a Doc, but for floats, whose last digits go by how Docs are batched."""
    words = [
        (t.text, t.pos_, t.tag_, str(t.morph), t.lemma_, t.dep_, t.head.i, t.is_sent_start)
        for t in doc
    ]
    records = [{k: v for k, v in dict(r).items() if k not in KINDS} for r in doc._.tk_reranker]
    return words, records


def a_model() -> Language:
    return spacy.load(own_tags_training(QUICK)[0])


def test_pipeline_is_analyzed_without_problems() -> None:
    nlp = a_model()
    found = nlp.analyze_pipes()
    assert found["problems"] == {"tk_udpipe_tagger": [], "tk_parser": [], "tk_reranker": []}
    assert found["attrs"]["token.pos"] == {"assigns": ["tk_udpipe_tagger"], "requires": []}
    assert found["attrs"]["token.head"]["requires"] == ["tk_reranker"]
    alone = spacy.blank("xx")
    alone.add_pipe("tk_reranker")
    found = alone.analyze_pipes()["problems"]
    assert sorted(found["tk_reranker"]) == ["doc.sents", "token.dep", "token.head"]
    alone.add_pipe("tk_columns", first=True)
    assert sorted(alone.analyze_pipes()["problems"]["tk_reranker"]) == ["token.dep", "token.head"]


def test_pipeline_parts_can_be_selected() -> None:
    nlp = a_model()
    whole = seen(nlp(TEXTS[0]))
    with nlp.select_pipes(enable="tk_udpipe_tagger"):
        doc = nlp(TEXTS[0])
        assert [t.pos_ for t in doc] == [row[1] for row in whole[0]]
        assert not doc.has_annotation("DEP")
    with nlp.select_pipes(disable=["tk_reranker"]):
        doc = nlp(TEXTS[0])
        assert doc.has_annotation("DEP")
        assert doc._.tk_reranker is None
    assert seen(nlp(TEXTS[0])) == whole


def test_pipeline_in_two_processes_says_the_same() -> None:
    nlp = a_model()
    expected = [seen(nlp(text)) for text in TEXTS]
    given = [(text, {"number": i}) for i, text in enumerate(TEXTS)]
    found = list(nlp.pipe(given, as_tuples=True, n_process=2, batch_size=2))
    assert [seen(doc) for doc, _ in found] == expected
    assert [context["number"] for _, context in found] == [0, 1, 2, 3]


def test_pipeline_goes_anywhere_and_says_the_same(tmp_path: Path) -> None:
    nlp = a_model()
    expected = [seen(doc) for doc in nlp.pipe(TEXTS)]
    nlp.to_disk(tmp_path / "again")
    sourced = spacy.blank("xx")
    for name in nlp.component_names:
        sourced.add_pipe(name, source=nlp)
    by_name = load_model_from_config(
        {
            "nlp": {"lang": "xx", "pipeline": list(nlp.component_names)},
            "components": {
                name: {"source": str(tmp_path / "again")} for name in nlp.component_names
            },
        },
        auto_fill=True,
    )
    for other in (
        spacy.load(tmp_path / "again"),
        spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes()),
        pickle.loads(pickle.dumps(nlp)),
        sourced,
        by_name,
    ):
        assert [seen(doc) for doc in other.pipe(TEXTS)] == expected


def test_pipeline_docs_go_through_a_docbin() -> None:
    nlp = a_model()
    docs = list(nlp.pipe(TEXTS))
    packed = DocBin(docs=docs, store_user_data=True).to_bytes()
    back = list(DocBin().from_bytes(packed).get_docs(spacy.blank("xx").vocab))
    assert [seen(doc) for doc in back] == [seen(doc) for doc in docs]
    bare = DocBin(docs=docs).to_bytes()  # as spaCy does it unless told
    (doc, *_) = DocBin().from_bytes(bare).get_docs(nlp.vocab)
    assert doc._.tk_reranker is None
    assert [t.dep_ for t in doc] == [t.dep_ for t in docs[0]]


def test_pipeline_meta_has_the_tags_that_it_gives() -> None:
    model, _ = own_tags_training(QUICK)
    meta = json.loads((model / "meta.json").read_text(encoding="utf-8"))
    from tk_spacy.treebank.conllu import load_treebank

    train = load_treebank(model.parent / "UD_Synthetic" / "train.conllu")
    assert meta["labels"]["tk_udpipe_tagger"] == sorted({tag for s in train for tag in s.upos})
    assert "root" in meta["labels"]["tk_parser"]


# Scorers


def example(words: str, predicted: str = "") -> Example:
    """Right heads 2 0 2 2 (one of four wrong below) of "Owls see mice .", the stop punctuation."""
    vocab = spacy.blank("xx").vocab
    deps, pos = ["nsubj", "ROOT", "obj", "punct"], ["NOUN", "VERB", "NOUN", "PUNCT"]
    right = Doc(vocab, words=words.split(), heads=[1, 1, 1, 1], deps=deps, pos=pos)
    found = Doc(
        vocab,
        words=(predicted or words).split(),
        **({} if predicted else {
            "heads": [1, 1, 1, 0], "deps": ["nsubj", "ROOT", "iobj", "punct"],
            "pos": ["NOUN", "VERB", "NOUN", "X"],
        }),
    )  # fmt: skip
    return Example(found, right)


def test_scorers_are_in_spacy_s_registry() -> None:
    dependencies = registry.scorers.get("tk_spacy.dependency_scorer.v1")()
    found = dependencies([example("Owls see mice .")])
    assert found["dep_uas"] == 1.0
    assert found["dep_las"] == pytest.approx(2 / 3)
    assert (found["dep_uas_with_punct"], found["dep_las_with_punct"]) == (0.75, 0.5)
    assert registry.scorers.get("tk_spacy.tagging_scorer.v1")()([example("Owls see mice .")])[
        "pos_acc"
    ] == pytest.approx(0.75)


def test_scorers_are_a_component_s_choice(tmp_path: Path) -> None:
    nlp = a_model()
    scorers = {name: nlp.get_pipe(name).scorer for name in nlp.pipe_names}
    assert scorers == {
        "tk_udpipe_tagger": score_tagging,
        "tk_parser": score_dependencies,
        "tk_reranker": score_dependencies,
    }
    path = own_tags_training(QUICK)[0]
    config = load_config(path / "config.cfg")
    for name in nlp.pipe_names:
        assert config["components"][name].pop("scorer")
    before = load_model_from_config(config)  # a model from before they could be chosen
    assert before.get_pipe("tk_parser").scorer is score_dependencies
    for name in nlp.pipe_names:
        config["components"][name]["scorer"] = None
    silent = load_model_from_config(config).from_disk(path, exclude=["config"])
    assert silent.evaluate([example("Owls see mice .")]).keys().isdisjoint({"dep_las", "pos_acc"})
    theirs: Any = spacy.blank("xx").add_pipe(
        "parser", config={"scorer": {"@scorers": "tk_spacy.dependency_scorer.v1"}}
    )
    assert theirs.score([example("Owls see mice .")])["dep_las_with_punct"] == 0.5


@pytest.mark.parametrize(
    ("score", "name"), [(score_dependencies, "dep_las"), (score_tagging, "pos_acc")]
)
def test_scorers_leave_out_words_that_cannot_be_matched(score: Any, name: str) -> None:
    right, wrong = example("Owls see mice ."), example("viene de lo mar", "viene du mar")
    with pytest.warns(UserWarning, match=r"2 of 3 examples are not scored: .*udeval") as said:
        found = score([wrong, right, wrong])
    assert len(said) == 1
    assert found[name] == score([right])[name] > 0
    with pytest.warns(UserWarning, match="1 of 1 examples are not scored"):
        assert score([wrong])[name] is None


def test_scorers_give_no_accuracy_of_tags_that_nobody_sets() -> None:
    bare = example("Owls see mice .")
    assert score_tagging([bare]).keys() == {"pos_acc", "lemma_acc", "morph_acc"}
    for doc in (bare.predicted, bare.reference):
        doc[0].tag_ = "N"
    assert score_tagging([bare])["tag_acc"] == 1


def test_pipeline_is_evaluated_on_text_whose_words_it_does_not_find() -> None:
    nlp = spacy.load(text_model())
    pairs = [(raw([sentence]), sentence) for sentence in part("dev")]
    pairs[3] = ("Ana canta.", pairs[3][1])
    examples = [
        Example(nlp.make_doc(text), doc_from_sentence(nlp.vocab, sentence, with_tree=True))
        for text, sentence in pairs
    ]
    with pytest.warns(UserWarning, match="1 of 40 examples are not scored"):
        found = nlp.evaluate(examples)
    assert found["dep_las"] > 0.8
