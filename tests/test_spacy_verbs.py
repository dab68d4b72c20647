"""spaCy's own verbs on our models: train on, initialize, evaluate, package, check a config."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import spacy
from pipelines import LISTENER, OWN_TOK2VEC, K, new_docs, parser_config, trained_model, trees
from spacy.cli._util import debug_cli
from spacy.cli.convert import convert
from spacy.cli.debug_config import debug_config
from spacy.cli.debug_data import debug_data
from spacy.cli.evaluate import evaluate
from spacy.cli.init_config import fill_config
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config, load_config_from_str, load_model_from_config, registry
from spacy.vectors import Vectors
from test_component_training import QUICK, SMALL
from trainings import options, parser_training, sampling_options, sampling_training, treebank
from typer.testing import CliRunner

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import FINAL
from tk_spacy.parsers.spacy_transition.training import load_spacy_config
from tk_spacy.pipeline.from_examples import fold_config, suitable_steps
from tk_spacy.pipeline.model_meta import describe
from tk_spacy.pipeline.tk_columns import TkColumns
from tk_spacy.pipeline.tk_reranker import add_reranker
from tk_spacy.spacy_io.conversion import doc_from_sentence
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.tagging.spacy_tagger.config import config_text
from tk_spacy.treebank.conllu import write_conllu
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.train.pipeline import train_pipeline

CONFIGS = Path(__file__).parent.parent / "configs"


def corpus(part: str, nlp: Language):
    return list(registry.readers.get("tk_spacy.ConlluCorpus.v1")(str(treebank()[part]))(nlp))


# Training on


@pytest.mark.parametrize("training", [parser_training, sampling_training])
def test_verbs_a_model_can_be_trained_on(training):
    nlp = spacy.load(training()[0])
    assert nlp.resume_training() is not None
    assert nlp.create_optimizer() is not None
    nlp = spacy.load(training()[0])
    assert nlp.update(corpus("dev", nlp)[:4]).keys() >= {"tk_reranker"}  # makes its own optimizer


def test_verbs_a_model_saved_with_variables_can_be_trained_on(tmp_path):
    shutil.copytree(parser_training()[0], tmp_path / "old")
    config = load_config(tmp_path / "old" / "config.cfg", interpolate=False)
    steps = config["training"]["optimizer"]["learn_rate"]["total_steps"]
    assert steps == config["training"]["max_steps"] == 15
    config["training"]["optimizer"]["learn_rate"]["total_steps"] = "${training.max_steps}"
    config.to_disk(tmp_path / "old" / "config.cfg", interpolate=False)
    nlp = spacy.load(tmp_path / "old")
    assert nlp.resume_training() is not None
    assert nlp.config["training"]["optimizer"]["learn_rate"]["total_steps"] == 15
    again = spacy.blank("xx").from_config(load_config(tmp_path / "old" / "config.cfg"))
    assert again.from_bytes(nlp.to_bytes()).resume_training() is not None


def test_verbs_a_parser_trained_by_our_config_can_be_trained_on(tmp_path):
    changes = {
        "components.parser.model.tok2vec.encode.width": 16,
        "components.parser.model.tok2vec.encode.depth": 1,
        "components.parser.model.hidden_width": 16,
        "training.max_steps": 2,
        "training.eval_frequency": 1,
        "paths.train": str(treebank()["dev"]),
        "paths.dev": str(treebank()["dev"]),
    }
    spacy_train(CONFIGS / "parser.cfg", tmp_path, overrides=changes)
    assert spacy.load(tmp_path / "model-last").resume_training() is not None


def test_verbs_initialize_a_model_again():
    nlp = spacy.load(sampling_training()[0])
    before = nlp.get_pipe("tk_parser").to_bytes()
    nlp.config["initialize"]["components"]["tk_reranker"] = {"settings": QUICK}
    nlp.initialize(lambda: list(read_examples(generate(20, seed=5), nlp)))
    assert nlp.get_pipe("tk_parser").to_bytes() != before
    assert all(doc._.tk_reranker for doc in nlp.pipe(new_docs(nlp, 3)))


def test_verbs_initialize_trains_parsers_as_long_as_it_helps():
    nlp = spacy.load(parser_training()[0])
    assert nlp.config["training"]["batcher"]["size"] == 300
    assert suitable_steps(nlp, 280) == 50  # passes over a single batch
    assert suitable_steps(nlp, 301) == 100
    assert suitable_steps(nlp, 100_000) == 1000
    found = spacy.util.load_config_from_str(fold_config(nlp, "parser", max_steps=50))
    assert found["training"]["optimizer"]["learn_rate"]["total_steps"] == 50


# What a model says of itself


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    path = tmp_path_factory.mktemp("named") / "model"
    report = train_pipeline(sampling_options(path, name="my_model", licence="CC BY 4.0"))
    return path, report


def test_verbs_meta_has_the_pipeline_s_own_scores(named):
    path, report = named
    nlp = spacy.load(path)
    found = nlp.evaluate(corpus("dev", nlp))
    found.pop("speed")
    stated = nlp.meta["performance"]
    by_label, found_by_label = stated.pop("dep_las_per_type"), found.pop("dep_las_per_type")
    assert by_label.keys() == found_by_label.keys()
    for label, scores in by_label.items():
        assert scores == pytest.approx(found_by_label[label])
    assert stated.keys() == {"dep_uas", "dep_las", "dep_uas_with_punct", "dep_las_with_punct"}
    assert stated == pytest.approx({key: found[key] for key in stated})
    final = report.parts["dev"].scores[FINAL]
    assert 100 * stated["dep_uas_with_punct"] == pytest.approx(final.uas)
    assert 100 * stated["dep_las_with_punct"] == pytest.approx(final.las)


def test_verbs_meta_has_no_scores_of_a_parser_that_came_along():
    nlp = spacy.load(parser_training()[0])
    stated, final = nlp.meta["performance"], parser_training()[1].parts["dev"].scores[FINAL]
    assert 100 * stated["dep_las_with_punct"] == pytest.approx(final.las)
    assert "parser_loss" not in stated


def test_verbs_meta_says_what_the_model_is(named, tmp_path):
    meta = json.loads((named[0] / "meta.json").read_text(encoding="utf-8"))
    assert (meta["name"], meta["version"], meta["license"]) == ("my_model", "0.1.0", "CC BY 4.0")
    assert meta["sources"] == [{"name": "UD_Synthetic", "license": ""}]
    assert "trained on UD_Synthetic" in meta["description"]
    plain = json.loads((sampling_training()[0] / "meta.json").read_text(encoding="utf-8"))
    assert (plain["name"], plain["version"]) == ("ud_synthetic", "0.1.0")
    # In a process of its own: spaCy leaves files open, and warnings are errors here.
    command = [sys.executable, "-m", "spacy", "package", named[0], tmp_path, "--build", "none"]
    subprocess.run(command, capture_output=True, check=True)
    readme = (tmp_path / "xx_my_model-0.1.0" / "README.md").read_text(encoding="utf-8")
    assert "| **License** | `CC BY 4.0` |" in readme
    assert f"| `DEP_LAS` | {100 * meta['performance']['dep_las']:.2f} |" in readme


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "a b"}, "name is 'a b'; it must be ASCII letters.* as in 'a_b'"),
        ({"name": "1x"}, "name is '1x'; .* as in 'model_1x'"),
        ({"version": "new"}, "version is 'new'; it must be one such as '0.1.0'"),
        ({"licence": "  "}, "licence is '  '; it must be one line of text"),
        ({"licence": "a\nb"}, "licence is 'a.nb'; it must be one line of text"),
    ],
)
def test_verbs_meta_of_wrong_values(given, message, tmp_path):
    with pytest.raises(UserError, match=message):
        sampling_options(tmp_path / "model", **given)


def test_verbs_name_of_a_model_without_parser(tmp_path):
    with pytest.raises(UserError, match="licence would have no effect"):
        replace(options(tmp_path / "model"), licence="MIT")


@pytest.mark.parametrize(
    ("own", "stated", "expected"),
    [
        ("", ["CC BY 4.0"], "CC BY 4.0"),
        ("", ["CC BY 4.0", "LGPL-LR", "CC BY 4.0"], "CC BY 4.0, LGPL-LR"),
        ("", ["CC BY 4.0", ""], ""),
        ("MIT", ["CC BY 4.0"], "MIT"),
    ],
)
def test_verbs_a_model_has_its_treebank_s_licence(own, stated, expected):
    nlp = spacy.blank("xx")
    licences = {f"T{number}": licence for number, licence in enumerate(stated)}
    describe(
        nlp, name="m", version="0.1.0", licence=own, treebank="T", licences=licences,
        how="the trees of a", performance={},
    )  # fmt: skip
    assert nlp.meta["license"] == expected
    assert [source["license"] for source in nlp.meta["sources"]] == stated


def test_verbs_a_model_tells_whose_tags_it_has():
    def told(nlp, **more):
        describe(
            nlp, name="m", version="0.1.0", licence="", treebank="T", licences={},
            how="the trees of a", performance={}, **more,
        )  # fmt: skip
        return nlp.meta["description"].partition("trees of a. ")[2]

    nlp = spacy.blank("xx")
    assert told(nlp) == (
        "It reads tags, features and lemmas and does not predict them; the scores are those with "
        "the gold ones, on dev."
    )
    nlp.add_pipe("tk_bilstm_tagger")
    assert told(nlp, own_tags=True, scored_on="cross-validation") == (
        "It predicts tags, features and lemmas; the scores are those with its own, on "
        "cross-validation."
    )
    nlp = spacy.blank("xx")
    nlp.add_pipe("tagger")
    nlp.add_pipe("morphologizer")
    assert told(nlp) == (
        "Its tags, features and lemmas are those of tagger, morphologizer, which came with spaCy's "
        "parser; the scores are those with the gold ones, on dev."
    )


# Evaluation


def test_verbs_evaluate_gives_the_report_s_scores(named, tmp_path):
    path, report = named
    final = report.parts["test"].scores[FINAL]
    convert(
        treebank()["test"], tmp_path, file_type="spacy", n_sents=4, silent=True, converter="conllu"
    )
    nlp = spacy.load(path)
    by_reader = nlp.evaluate(corpus("test", nlp))
    nlp.add_pipe("tk_columns", first=True, config={"path": str(treebank()["test"])})
    nlp.to_disk(tmp_path / "model")
    evaluate(
        str(tmp_path / "model"),
        (tmp_path / treebank()["test"].name).with_suffix(".spacy"),
        tmp_path / "s.json",
        gold_preproc=True,
    )
    by_command = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    for found in (by_reader, by_command):
        assert 100 * found["dep_uas_with_punct"] == pytest.approx(final.uas)
        assert 100 * found["dep_las_with_punct"] == pytest.approx(final.las)


def test_verbs_columns_of_a_file(tmp_path):
    first, second = generate(2, seed=3)
    twin = replace(first, lemmas=tuple(f"{lemma}x" for lemma in first.lemmas))
    path = tmp_path / "some.conllu"
    write_conllu(path, [first, second, twin])
    nlp = spacy.blank("xx")
    found = nlp.add_pipe("tk_columns", config={"path": str(path)})
    assert isinstance(found, TkColumns)
    for expected in (first, twin, first, second):
        doc = nlp(Doc(nlp.vocab, words=list(expected.forms)))
        given = doc_from_sentence(nlp.vocab, expected)
        columns = ["TAG", "POS", "MORPH", "LEMMA", "SENT_START"]
        assert doc.to_array(columns).tolist() == given.to_array(columns).tolist()
    with pytest.warns(UserWarning, match="some.conllu has no sentence 'other words': its words"):
        doc = nlp(Doc(nlp.vocab, words=["other", "words"]))
    assert not doc.has_annotation("TAG")
    nlp(Doc(nlp.vocab, words=["other", "words"]))  # said once
    with pytest.raises(UserError, match="tk_columns: path is not set"):
        TkColumns(nlp, path=None)(doc)


# Configs


def listening_pipeline(folder: Path, *, with_vectors: bool = False) -> str:
    """A French pipeline whose parser and tagger share a tok2vec, which may read word vectors."""
    nlp = spacy.blank("fr")
    embed = OWN_TOK2VEC["embed"]
    if with_vectors:
        words = sorted({form for sentence in generate(30, seed=5) for form in sentence.forms})
        values = np.random.default_rng(1).normal(size=(len(words), 8)).astype("float32")
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=values, keys=words)
        embed = {**embed, "include_static_vectors": True}
    nlp.add_pipe("tok2vec", config={"model": {**OWN_TOK2VEC, "embed": embed}})
    tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
    nlp.add_pipe("tagger", config={"model": tagger})
    nlp.add_pipe("parser", config=parser_config(LISTENER))
    nlp.initialize(lambda: list(read_examples(generate(30, seed=5), nlp)))
    nlp.to_disk(folder)
    return str(folder)


OF_SPACY = sorted(path for path in CONFIGS.glob("*.cfg") if path.stem != "paper")  # which is ours


@pytest.mark.parametrize("path", OF_SPACY, ids=lambda path: path.stem)
def test_verbs_configs_are_accepted(path, tmp_path):
    debug_config(path)  # as it is shipped
    fill_config(tmp_path / "shipped.cfg", path, silent=True)
    debug_config(tmp_path / "shipped.cfg")
    changes = {"paths.train": str(treebank()["dev"]), "paths.dev": str(treebank()["dev"])}
    if "upstream = null" in (text := path.read_text(encoding="utf-8")):
        spacy_pipeline = listening_pipeline(tmp_path / "fr")
        changes |= {"paths.upstream": spacy_pipeline, "nlp.lang": "fr"}
        text = text.replace("upstream = null", f"upstream = {json.dumps(spacy_pipeline)}")
        text = text.replace('lang = "xx"', 'lang = "fr"')
    debug_config(path, overrides=changes)
    (tmp_path / "some.cfg").write_text(text, encoding="utf-8")
    fill_config(tmp_path / "filled.cfg", tmp_path / "some.cfg", silent=True)
    debug_config(tmp_path / "filled.cfg", overrides=changes)


@pytest.mark.parametrize("name", ["biaffine", "parser", "small", "tagger"])
def test_verbs_configs_make_their_optimizer(name):
    """Where it is not handed to them, as by `spacy debug model` and `debug data`."""
    config = load_config(CONFIGS / f"{name}.cfg", interpolate=False)
    nlp = load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: corpus("dev", nlp)[:5])
    rate = nlp.config["training"]["optimizer"]["learn_rate"]
    assert rate["total_steps"] == config["training"]["max_steps"]
    assert nlp.create_optimizer() is not None


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    """Options with a file as train and dev that has as many sentences as `debug data` asks for."""
    path = tmp_path_factory.mktemp("hundred") / "some.conllu"
    write_conllu(path, generate(100, seed=5))
    return {"paths.train": str(path), "paths.dev": str(path)}


def debug_model(config: Path, component: str, changes: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of `spacy debug model`; what it does not catch is raised."""
    given = [f"--{name}={value}" for name, value in changes.items()]
    command = ["model", str(config), component, *given]
    found = CliRunner().invoke(debug_cli, command, catch_exceptions=False)
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("name", "component"),
    [("biaffine", "tk_biaffine"), ("small", "parser"), ("tagger", "tagging_tok2vec")],
)
def test_verbs_models_of_configs_can_be_debugged(name, component, hundred):
    code, output = debug_model(CONFIGS / f"{name}.cfg", component, hundred)
    assert "Initialized the model with the training corpus" in output
    assert (code, "model looks good" in output) == (0, True)


@pytest.mark.parametrize("component", ["tagger", "morphologizer", "trainable_lemmatizer"])
def test_verbs_models_that_listen_can_be_debugged_by_spacy_s_name(component, hundred, tmp_path):
    """The command knows what a model listens to by no other name than tok2vec."""
    text = (CONFIGS / "tagger.cfg").read_text(encoding="utf-8")
    path = tmp_path / "renamed.cfg"
    path.write_text(text.replace("tagging_tok2vec", "tok2vec"), encoding="utf-8")
    code, output = debug_model(path, component, hundred)
    assert "Initialized the model with the training corpus" in output
    assert (code, "model looks good" in output) == (0, True)


def test_verbs_components_without_a_thinc_model_cannot_be_debugged(hundred):
    code, output = debug_model(CONFIGS / "sampling.cfg", "tk_parser", hundred)
    assert (code, "does not specify an object that holds a Model" in output) == (1, True)


@pytest.mark.parametrize("name", ["biaffine", "small", "tagger", "sampling", "rerank_pipeline"])
def test_verbs_data_of_configs_can_be_debugged(name, hundred, tmp_path):
    changes = dict(hundred)
    if name == "sampling":
        changes |= {
            "components.tk_parser.settings.order": 1,
            "components.tk_parser.settings.epochs": 2,
            **SMALL,
        }
    if name == "rerank_pipeline":
        changes = {**rerank_changes(listening_pipeline(tmp_path / "fr")), **changes}
    debug_data(CONFIGS / f"{name}.cfg", config_overrides=changes)  # exits where it finds an error


def test_verbs_default_config_is_the_one_that_work_directories_know():
    keys = load_spacy_config(None)
    assert "tokenizer" not in keys["nlp"]
    assert keys["initialize"] == {}
    assert keys["training"]["before_to_disk"] is None
    assert load_spacy_config(CONFIGS / "small.cfg")["initialize"]["before_init"] is None
    taggers = load_config_from_str(config_text(), interpolate=False)
    assert taggers["initialize"]["before_init"] is None


def rerank_changes(spacy_pipeline: str):
    return {
        "paths.upstream": spacy_pipeline,
        "nlp.lang": "fr",
        "paths.train": str(treebank()["train"]),
        "paths.dev": str(treebank()["dev"]),
        **SMALL,
        "initialize.components.tk_reranker.max_steps": 2,
    }


@pytest.mark.parametrize("with_vectors", [False, True], ids=["plain", "vectors"])
@pytest.mark.parametrize("filled", [False, True], ids=["shipped", "filled"])
def test_verbs_rerank_a_pipeline_with_a_shared_tok2vec(filled, with_vectors, tmp_path):
    spacy_pipeline = listening_pipeline(tmp_path / "fr", with_vectors=with_vectors)
    config = CONFIGS / "rerank_pipeline.cfg"
    if filled:
        fill_config(tmp_path / "filled.cfg", config, silent=True)
        config = tmp_path / "filled.cfg"
    spacy_train(config, tmp_path / "out", overrides=rerank_changes(spacy_pipeline))
    made = spacy.load(tmp_path / "out" / "model-last")
    assert made.pipe_names == ["parser", "tk_reranker"]
    assert made.resume_training() is not None
    assert made.config["initialize"]["before_init"] is None  # it is whole by itself
    whole = spacy.load(spacy_pipeline)
    parsed = trees(whole.pipe(new_docs(whole, 4)))
    assert trees(made.get_pipe("parser").pipe(new_docs(made, 4))) == parsed  # as it was
    whole.add_pipe("tk_reranker", source=made)
    whole.to_disk(tmp_path / "whole")
    again = spacy.load(tmp_path / "whole")
    assert all(doc._.tk_reranker for doc in whole.pipe(new_docs(whole, 4)))
    assert trees(again.pipe(new_docs(again, 4))) == trees(whole.pipe(new_docs(whole, 4)))
    assert add_reranker(spacy.load(spacy_pipeline), trained_model(), k=K).sources == ("parser",)


def test_verbs_a_taken_parser_gives_what_a_sourced_one_gives(tmp_path):
    """spaCy's own way, which has to know the pipeline as soon as the config is read."""
    spacy_pipeline = listening_pipeline(tmp_path / "fr")
    sourced = load_config(CONFIGS / "rerank_pipeline.cfg", interpolate=False)
    sourced["initialize"]["before_init"] = None
    sourced["components"]["parser"] = {
        "source": "${paths.upstream}",
        "component": "parser",
        "replace_listeners": ["model.tok2vec"],
    }
    sourced.to_disk(tmp_path / "sourced.cfg", interpolate=False)
    for name, config in (("sourced", tmp_path), ("rerank_pipeline", CONFIGS)):
        changes = rerank_changes(spacy_pipeline)
        spacy_train(config / f"{name}.cfg", tmp_path / name, overrides=changes)
    first, second = (tmp_path / name / "model-last" for name in ("sourced", "rerank_pipeline"))
    made = {p.relative_to(first): p for p in first.rglob("*") if p.is_file()}
    made = {path: file for path, file in made.items() if path.parts[0] in ("parser", "tk_reranker")}
    assert len(made) >= 4
    for path, file in made.items():
        assert file.read_bytes() == (second / path).read_bytes(), path


def test_verbs_initialize_leaves_a_taken_parser_as_it_is(tmp_path):
    """Where nobody has disabled what is frozen, as `spacy debug data` does not."""
    spacy_pipeline = listening_pipeline(tmp_path / "fr")
    changes = rerank_changes(spacy_pipeline)
    config = load_config(CONFIGS / "rerank_pipeline.cfg", overrides=changes)
    nlp = load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: corpus("train", nlp))
    assert nlp.disabled == ["parser"]
    nlp.enable_pipe("parser")
    given = spacy.load(spacy_pipeline)
    expected = trees(given.pipe(new_docs(given, 4)))
    assert trees(nlp.get_pipe("parser").pipe(new_docs(nlp, 4))) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paths.upstream": None}, "no pipeline is named whose 'parser' is to be taken; give "),
        ({"paths.upstream": "no_such_pipeline"}, "no_such_pipeline: neither a directory with a "),
        ({"nlp.lang": "xx"}, "fr: its language is 'fr', but .nlp. lang is 'xx'; give --nlp.lang"),
        ({"training.frozen_components": []}, "'parser' of .* would be trained anew"),
        ({"initialize.before_init.component": "ner"}, "the config has no component 'ner' whose"),
        (
            {
                "initialize.before_init.component": "tk_reranker",
                "training.frozen_components": ["parser", "tk_reranker"],
            },
            "fr: the pipeline has no component 'tk_reranker'; it has: tok2vec, tagger, parser",
        ),
    ],
)  # fmt: skip
def test_verbs_a_parser_that_cannot_be_taken(changes, message, tmp_path):
    overrides = {**rerank_changes(listening_pipeline(tmp_path / "fr")), **changes}
    with pytest.raises(UserError, match=message):
        spacy_train(CONFIGS / "rerank_pipeline.cfg", tmp_path / "out", overrides=overrides)
    assert not (tmp_path / "out" / "model-last").exists()
