"""The biaffine parser inside spaCy: any encoder, trained by `nlp.update`, shared, stored, old."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from biaffine_parsers import NEW, SENTENCES, trained
from pipelines import trees
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Optimizer

from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers.biaffine.examples import batch_of_examples
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.pipeline.sources import pipeline_sources
from tk_spacy.pipeline.tk_biaffine import TkBiaffine, add_biaffine
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import write_conllu

TREEBANK: dict[str, Any] = {
    "@architectures": "tk_spacy.BiLSTM.v1", "width": 16, "depth": 1, "dropout": 0.1,
    "embed": {"@architectures": "tk_spacy.TreebankEmbed.v1", "word_width": 16, "tag_width": 16},
}  # fmt: skip
HASHED: dict[str, Any] = {
    **TREEBANK,
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2", "width": 32, "rows": [500, 100, 500],
        "attrs": ["NORM", "POS", "MORPH"], "include_static_vectors": False,
    },
}  # fmt: skip
CNN: dict[str, Any] = {
    "@architectures": "spacy.HashEmbedCNN.v2", "width": 32, "depth": 1, "embed_size": 500,
    "window_size": 1, "maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None,
}  # fmt: skip
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}


def pipeline(tok2vec: dict[str, Any], shared: dict[str, Any] | None = None) -> Language:
    nlp = spacy.blank("xx")
    if shared is not None:
        nlp.add_pipe("tok2vec", config={"model": shared})
    model = {
        "@architectures": "tk_spacy.BiaffineParser.v1", "tok2vec": tok2vec, "arc_width": 16,
        "label_width": 8, "dropout": 0.1,
    }  # fmt: skip
    nlp.add_pipe("tk_biaffine", config={"model": model})
    return nlp


def learn(nlp: Language, steps: int = 40) -> list[float]:
    """Initialize and update a pipeline; the losses."""
    np.random.seed(3)  # noqa: NPY002
    examples = list(read_examples(SENTENCES, nlp))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    return update(nlp, optimizer, examples, steps)


def update(nlp: Language, optimizer: Optimizer, examples: list[Example], steps: int) -> list[float]:
    chance = random.Random(1)
    found = []
    for _ in range(steps):
        losses: dict[str, float] = {}
        nlp.update(chance.sample(examples, 20), sgd=optimizer, losses=losses, drop=0.1)
        found.append(losses["tk_biaffine"])
    return found


def component(nlp: Language) -> TkBiaffine:
    found = nlp.get_pipe("tk_biaffine")
    assert isinstance(found, TkBiaffine)
    return found


def parsed(nlp: Language) -> list[Any]:
    return trees(nlp.pipe([doc_from_sentence(nlp.vocab, sentence) for sentence in NEW]))


def weights(nlp: Language, name: str = "tk_biaffine") -> bytes:
    return nlp.get_pipe(name).model.to_bytes()


@pytest.mark.parametrize(
    ("tok2vec", "shared", "least"),
    [(TREEBANK, None, 0.5), (HASHED, None, 0.4), (CNN, None, 0.2), (LISTENER, HASHED, 0.4)],
)
def test_parser_learns_with_any_encoder_and_travels(
    tok2vec: dict[str, Any], shared: dict[str, Any] | None, least: float, tmp_path: Path
) -> None:
    nlp = pipeline(tok2vec, shared)
    losses = learn(nlp)
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    scores = nlp.evaluate(list(read_examples(NEW, nlp)))
    assert least < scores["dep_las"] <= scores["dep_uas"] <= 1
    expected = parsed(nlp)
    nlp.to_disk(tmp_path / "a")
    assert parsed(spacy.load(tmp_path / "a")) == expected
    again = spacy.load(tmp_path / "a").from_bytes(nlp.to_bytes())
    assert parsed(again) == expected
    assert weights(again) == weights(nlp)
    if shared is not None:
        # What it listened to becomes a part of it, be that one of our own layers.
        nlp.replace_listeners("tok2vec", "tk_biaffine", ["model.tok2vec"])
        nlp.remove_pipe("tok2vec")
        assert parsed(nlp) == expected
        nlp.to_disk(tmp_path / "b")
        assert parsed(spacy.load(tmp_path / "b")) == expected
    assert parsed(pickle.loads(pickle.dumps(nlp))) == expected


def test_same_seed_trains_the_same_bytes_and_the_listened_tok2vec() -> None:
    first, again = pipeline(LISTENER, CNN), pipeline(LISTENER, CNN)
    before = None
    for nlp in (first, again):
        learn(nlp, 0)
        before = weights(nlp, "tok2vec")
        learn(nlp, 3)
    assert weights(first) == weights(again)
    assert weights(first, "tok2vec") == weights(again, "tok2vec") != before


@pytest.mark.parametrize(("tok2vec", "shared"), [(CNN, None), (LISTENER, CNN)])
def test_sources_read_sentences_alone(
    tok2vec: dict[str, Any], shared: dict[str, Any] | None
) -> None:
    nlp = pipeline(tok2vec, shared)
    learn(nlp, 20)
    docs = list(nlp.pipe([doc_from_sentence(nlp.vocab, sentence) for sentence in NEW]))
    (source,) = pipeline_sources(nlp, ["tk_biaffine"], inventory=LabelInventory())
    lists = list(source.candidates(NEW, k=3))
    for doc, found, (scores,) in zip(docs, lists, zip(source.score(NEW, lists)), strict=True):
        heads = [0 if token.head == token else token.head.i + 1 for token in doc]
        assert found.heads[0].tolist() == heads
        np.testing.assert_allclose(scores, found.scores, atol=1e-4)
    if shared is not None:
        nlp.remove_pipe("tok2vec")
        with pytest.raises(UserError, match=r"listens to '\*', which the pipeline lacks"):
            pipeline_sources(nlp, ["tk_biaffine"], inventory=LabelInventory())


def test_sentences_of_a_doc_are_parsed_where_they_stand() -> None:
    nlp = pipeline(HASHED)
    learn(nlp)
    alone = [doc_from_sentence(nlp.vocab, sentence) for sentence in NEW[:4]]
    words = [token.text for doc in alone for token in doc]
    starts = [token.i == 0 for doc in alone for token in doc]
    tags = [token.pos_ for doc in alone for token in doc]
    morphs = [str(token.morph) for doc in alone for token in doc]
    # White space between the second sentence and the third.
    place = len(alone[0]) + len(alone[1])
    together = Doc(
        nlp.vocab,
        words=[*words[:place], "\n", *words[place:]],
        spaces=[True] * (len(words) + 1),
        sent_starts=[*starts[:place], False, *starts[place:]],
        pos=[*tags[:place], "", *tags[place:]],
        morphs=[*morphs[:place], "", *morphs[place:]],
    )  # fmt: skip
    nlp(together)
    expected = [(token.head.i - token.i, token.dep_) for doc in nlp.pipe(alone) for token in doc]
    found = [(t.head.i - t.i, t.dep_) for t in together if not t.is_space]
    assert found == expected
    assert together[place].head.i == place - 1


def test_frozen_parser_stays_as_it_is() -> None:
    nlp = pipeline(LISTENER, CNN)
    learn(nlp, 2)
    before = weights(nlp)
    examples = list(read_examples(SENTENCES[:20], nlp))
    nlp.update(examples, sgd=nlp.create_optimizer(), exclude=["tk_biaffine"])
    assert weights(nlp) == before
    shared = weights(nlp, "tok2vec")
    nlp.update(examples, sgd=nlp.create_optimizer(), exclude=["tok2vec"], annotates=["tok2vec"])
    assert weights(nlp) != before
    assert weights(nlp, "tok2vec") == shared


def test_gradients_of_several_batches_add_up() -> None:
    nlp = pipeline(TREEBANK)
    learn(nlp, 1)
    examples = list(read_examples(SENTENCES[:8], nlp))
    parser = component(nlp)
    before = weights(nlp)
    for half in (examples[:4], examples[4:]):
        parser.update(half, drop=0.1)
    assert weights(nlp) == before
    parser.finish_update(Optimizer(0.01, grad_clip=0.0, use_averages=False))
    assert weights(nlp) != before


def test_averaged_weights_are_used_and_given_back() -> None:
    nlp = pipeline(TREEBANK)
    examples = list(read_examples(SENTENCES, nlp))
    nlp.initialize(lambda: examples)
    optimizer = Optimizer(0.02, use_averages=True)
    update(nlp, optimizer, examples, 3)
    before = weights(nlp)
    with nlp.use_params(optimizer.averages):
        averaged = weights(nlp)
    assert averaged != before
    assert weights(nlp) == before


def test_loaded_parser_can_be_trained_further(tmp_path: Path) -> None:
    nlp = spacy.blank("xx")
    add_biaffine(nlp, trained()).to_disk(tmp_path / "p")
    nlp = spacy.blank("xx")
    nlp.add_pipe("tk_biaffine").from_disk(tmp_path / "p")
    examples = list(read_examples(SENTENCES, nlp))
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.002
    losses = update(nlp, optimizer, examples, 10)
    assert max(losses) < 1.5  # it knows the language already
    assert weights(nlp) != trained().model.to_bytes()


def test_parser_that_initialize_has_trained_is_left_alone() -> None:
    nlp = spacy.blank("xx")
    settings = {"epochs": 1, "width": 8, "word_width": 8, "tag_width": 8, "arc_width": 8}
    nlp.add_pipe("tk_biaffine", config={"settings": settings})
    examples = list(read_examples(SENTENCES[:20], nlp))
    optimizer = nlp.initialize(lambda: examples)
    before = weights(nlp)
    assert update(nlp, optimizer, examples, 2) == [0, 0]
    assert weights(nlp) == before


def test_labels_may_be_given() -> None:
    nlp = pipeline(TREEBANK)
    labels = [*sorted({label for s in SENTENCES for label in s.deprels}), "zz"]
    nlp.config["initialize"]["components"]["tk_biaffine"] = {"labels": labels}
    nlp.initialize(lambda: read_examples(SENTENCES, nlp))
    assert component(nlp).label_data == tuple(labels)
    settings = spacy.blank("xx")
    settings.add_pipe("tk_biaffine")
    settings.config["initialize"]["components"]["tk_biaffine"] = {"labels": labels}
    with pytest.raises(UserError, match=r"labels can be given where .*tk_biaffine.model\] is"):
        settings.initialize(lambda: read_examples(SENTENCES, settings))


# Examples


def test_examples_whose_tokens_differ_teach_what_is_known() -> None:
    nlp = spacy.blank("xx")
    gold = Doc(
        nlp.vocab, words=["a", "b", "c", "d", "e"], spaces=[True, False, True, True, False],
        heads=[1, 3, 1, 3, 3], deps=["case", "nsubj", "amod", "ROOT", "odd"],
        sent_starts=[True, False, False, False, False],
    )  # fmt: skip
    predicted = Doc(
        nlp.vocab, words=["a", "bc", "\n", "d", "e"], spaces=[True, True, False, True, False]
    )
    found = batch_of_examples([Example(predicted, gold)], ["case", "nsubj", "root"])
    assert found.heads is not None
    assert found.labels is not None
    (sentence,) = found.sentences
    assert sentence.forms == ("a", "bc", "d", "e")
    # "bc" is two words of the reference's, with two heads; "odd" is no label of the parser's.
    assert found.heads.tolist() == [2, -1, 0, 3]
    assert found.labels.tolist() == [0, -1, 2, -1]
    assert found.places is not None
    assert found.places[0][1].tolist() == [0, 1, 3, 4]


def test_examples_without_trees_are_refused() -> None:
    nlp = pipeline(TREEBANK)
    bare = [Example(nlp.make_doc("a b"), nlp.make_doc("a b"))]
    with pytest.raises(UserError, match="hold no dependency tree"):
        nlp.initialize(lambda: bare)


def test_jackknife_of_an_encoder_of_one_s_own_is_refused() -> None:
    nlp = pipeline(CNN)
    with pytest.raises(UserError, match=r"trained by \[settings\] alone; leave out its \[model\]"):
        component(nlp).spec(seed=1)


# The config


def test_biaffine_config_trains_a_pipeline(tmp_path: Path) -> None:
    write_conllu(tmp_path / "train.conllu", SENTENCES[:100])
    write_conllu(tmp_path / "dev.conllu", NEW)
    config = Path(spacy.util.get_package_path("tk_spacy")) / "configs" / "biaffine.cfg"
    model = "components.tk_biaffine.model"
    changes = {
        "paths.train": str(tmp_path / "train.conllu"), "paths.dev": str(tmp_path / "dev.conllu"),
        f"{model}.arc_width": 16, f"{model}.label_width": 8, f"{model}.tok2vec.width": 16,
        f"{model}.tok2vec.depth": 1, "training.batcher.size": 200, "training.dropout": 0.1,
        "training.max_steps": 60, "training.eval_frequency": 30,
        "training.optimizer.learn_rate.warmup_steps": 5,
        "training.optimizer.learn_rate.initial_rate": 0.02,
    }  # fmt: skip
    spacy_train(config, tmp_path / "out", overrides=changes)
    nlp = spacy.load(tmp_path / "out" / "model-last")
    scores = nlp.evaluate(list(read_examples(NEW, nlp)))
    assert scores["dep_las"] > 0.5
    assert nlp.meta["performance"]["dep_las"] == pytest.approx(scores["dep_las"])
    rates = [node.attrs.get("dropout_rate") for node in component(nlp).model.walk()]
    assert {rate for rate in rates if rate is not None} == {0.1}
    assert nlp.resume_training().learn_rate == 0


# Before there was a thinc model


def test_parser_of_format_1_gives_the_trees_that_it_gave() -> None:
    folder = Path(__file__).parent / "biaffine_format_1"
    parser = BiaffineParser.from_disk(folder)
    expected = json.loads((folder / "trees.json").read_text())
    sentences = NEW[: len(expected)]
    found = list(parser.parse(sentences))
    assert [heads.tolist() for heads, _ in found] == [tree["heads"] for tree in expected]
    assert [list(labels) for _, labels in found] == [tree["labels"] for tree in expected]
    lists = parser.kbest(sentences, k=3, inventory=LabelInventory())
    for own, tree in zip(lists, expected, strict=True):
        np.testing.assert_allclose(own.scores[:, 0], tree["scores"], atol=1e-3)
    again = BiaffineParser.from_bytes(parser.to_bytes())
    assert again.to_files().keys() == {"meta.json", "model"}
    assert json.loads(again.to_files()["meta.json"])["format_version"] == 2
    assert again.about == parser.about == {"sentences": 150, "words": 2110}
