"""Several spaCy parsers in one model: settings, what they share, components, folds, sourcing."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import catalogue
import pytest
import spacy
from pipelines import blank_parser, new_docs, predictions
from spacy.language import Language
from spacy.util import load_config, load_config_from_str, load_model_from_config
from test_cli import invoke
from test_component_training import QUICK
from test_kinds_together import tiny_options
from tiny_spacy import listening_config, tiny_config
from trainings import folder, treebank

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers import kinds
from tk_spacy.parsers.kinds import get_kind, parser_line
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.parsers.spacy_transition.spec import SpacySpec
from tk_spacy.parsers.specs import parse_specs
from tk_spacy.pipeline.assembly import check_one_pipeline
from tk_spacy.pipeline.from_examples import pipeline_spec
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.treebank.synthetic import generate
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.train.pipeline import train_pipeline


def test_parsers_of_spacy_with_settings_of_their_own(tmp_path: Path) -> None:
    config = tiny_config(tmp_path / "tiny.cfg")
    changed = f"spacy:config={config}:max_steps=5:xpos=false:backward=false"
    first, second, third = make_parsers(["spacy", "spacy:seed=1", changed], seed=3, max_steps=7)
    assert isinstance(first, SpacySpec)
    assert isinstance(second, SpacySpec)
    assert isinstance(third, SpacySpec)
    assert (first.name, second.name) == ("spacy", "spacy-seed1")
    assert second.sources == ("spacy-seed1+backward", "spacy-seed1", "spacy-seed1-backward")
    assert third.sources == (third.name,)
    configs = [load_config_from_str(parser.config) for parser in (first, second, third)]
    assert [found["training"]["seed"] for found in configs] == [3, 1, 3]
    assert [found["training"]["max_steps"] for found in configs] == [7, 7, 5]
    embedded = [
        found["components"]["parser"]["model"]["tok2vec"]["embed"]["attrs"] for found in configs
    ]
    assert ["TAG" in attributes for attributes in embedded] == [True, True, False]
    keys = [json.dumps(parser.training_key()) for parser in (first, second, third)]
    assert len(set(keys)) == 3
    assert [parser_line(parser.name, parser.about()) for parser in (first, second, third)] == [
        "trained, config default, 7 steps, with right-to-left twin",
        "trained, config default, 7 steps, seed 1, with right-to-left twin",
        "trained, config tiny.cfg, 5 steps, without XPOS",
    ]


def test_parsers_beside_a_given_spacy_pipeline() -> None:
    with pytest.raises(UserError, match="parser 'spacy:seed=1': the pipeline fr is given as the"):
        make_parsers(["spacy:seed=1"], spacy_pipeline="fr")


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        (
            "nlp",
            "lang",
            "fr",
            r"\[nlp\] lang is 'xx' in the config of the first and 'fr' in that of ",
        ),
        (
            "initialize",
            "vectors",
            "v",
            r"\[initialize\] vectors is None in the config of the first ",
        ),
    ],
)
def test_parsers_of_spacy_that_cannot_share_a_pipeline(
    section: str, name: str, value: str, message: str, tmp_path: Path
) -> None:
    tiny_config(tmp_path / "a.cfg")
    config = load_config(tmp_path / "a.cfg", interpolate=False)
    config[section][name] = value
    config.to_disk(tmp_path / "b.cfg", interpolate=False)
    parsers = make_parsers(["spacy", f"spacy:config={tmp_path / 'b.cfg'}"])
    with pytest.raises(UserError, match=f"parsers spacy and spacy-config.* {message}"):
        check_one_pipeline(parsers)
    check_one_pipeline(make_parsers(["spacy", f"spacy:config={tmp_path / 'a.cfg'}", "sampling"]))


def test_parsers_of_spacy_whose_components_would_have_one_name(tmp_path: Path) -> None:
    text = tiny_config(tmp_path / "a.cfg").read_text(encoding="utf-8")
    text = text.replace("components.parser", "components.parser_seed1")
    text = text.replace('["parser"]', '["parser_seed1"]')
    (tmp_path / "b.cfg").write_text(text, encoding="utf-8")
    parsers = make_parsers(["spacy", "spacy:seed=1"], config=tmp_path / "b.cfg")
    check_one_pipeline(parsers)  # parser_seed1 and parser_seed1_seed1
    other = replace(make_parsers(["spacy:seed=1"])[0], name="spacy-seed1")
    with pytest.raises(UserError, match="would be called 'parser_seed1', as another one"):
        check_one_pipeline([parsers[0], other])


def test_a_kind_that_a_model_holds_one_parser_of() -> None:
    kinds.parsers.register(
        "single", func=replace(get_kind("biaffine"), name="single", own_settings=False)
    )
    try:
        found = [spec.name for spec in parse_specs(["single", "spacy:seed=1"])]
        assert found == ["single", "spacy-seed1"]
        with pytest.raises(
            UserError, match=r"'single:seed=1': only a sampling, .* has settings of its own"
        ):
            parse_specs(["single:seed=1"])
    finally:
        del catalogue.REGISTRY["tk_spacy", "parsers", "single"]


# Models


@functools.cache
def spacy_training() -> tuple[Path, TrainReport]:
    """A model of three spaCy parsers whose main one has a name of its own; two have a twin."""
    path = folder() / "spacy-model"
    changes = {"workdir": folder() / "spacy-work", "backward": True, "max_steps": 10}
    names = ("spacy:seed=2", "spacy", "spacy:seed=1:backward=false")
    return path, train_pipeline(tiny_options(path, *names, **changes))


SCORES = [
    "spacy-seed2+backward", "spacy-seed2", "spacy-seed2-backward",
    "spacy+backward", "spacy", "spacy-backward",
    "spacy-seed1-backwardFalse",
]  # fmt: skip


def test_spacy_parsers_are_components_of_one_pipeline() -> None:
    path, report = spacy_training()
    nlp = spacy.load(path)
    assert nlp.component_names == [
        "parser_seed2", "parser_seed2_backward", "parser", "parser_backward",
        "parser_seed1_backwardFalse", "tk_reranker",
    ]  # fmt: skip
    assert nlp.pipe_names == ["parser_seed2", "tk_reranker"]
    assert all(nlp.get_pipe(name).name == name for name in nlp.component_names)
    # Each has its own sizes: none looks them up in another one's section.
    assert "${components." not in (path / "config.cfg").read_text(encoding="utf-8")
    assert list(report.betas) == [*SCORES, "combiner"]
    weights = {nlp.get_pipe(name).model.to_bytes() for name in nlp.component_names[:-1]}
    assert len(weights) == 5  # each is another parser


WAYS: dict[str, Callable[[Language, Path], Language]] = {
    "disk": lambda nlp, place: (nlp.to_disk(place / "nlp"), spacy.load(place / "nlp"))[1],
    "bytes": lambda nlp, _: load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
    "pickle": lambda nlp, _: pickle.loads(pickle.dumps(nlp)),
}


@pytest.mark.parametrize("way", WAYS)
def test_spacy_parsers_find_the_report_s_trees(way: str, tmp_path: Path) -> None:
    path, report = spacy_training()
    nlp = WAYS[way](spacy.load(path), tmp_path)
    gold = load_treebank(treebank()["test"])
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    found = evaluate(gold, [sentence_from_doc(doc) for doc in docs])
    assert found == report.parts["test"].scores["final system"]


@pytest.mark.parametrize("threads", [1, 2])
def test_spacy_parsers_rerank_the_same_on_any_number_of_threads(
    threads: int, tmp_path: Path
) -> None:
    path, report = spacy_training()
    rerank_files(path, [treebank()["test"]], tmp_path / "out.conllu", n_threads=threads)
    found = evaluate(load_treebank(treebank()["test"]), load_treebank(tmp_path / "out.conllu"))
    assert found == report.parts["test"].scores["final system"]


def test_spacy_parsers_main_one_parses_alone(tmp_path: Path) -> None:
    path, _ = spacy_training()
    out = tmp_path / "out.conllu"
    parse_files(path, [treebank()["test"]], out, n_threads=1)
    nlp = spacy.load(path, exclude=["tk_reranker"])
    gold = load_treebank(treebank()["test"])
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    assert evaluate(gold, load_treebank(out)) == evaluate(gold, map(sentence_from_doc, docs))


def test_spacy_parsers_are_told_of(tmp_path: Path) -> None:
    path, _ = spacy_training()
    shown = invoke("info", path)
    assert shown.exit_code == 0, shown.output
    told = " ".join(shown.stdout.replace("│", " ").split())
    steps = "parser trained, config tiny.cfg, 10 steps, seed"
    assert f"spacy-seed2 {steps} 2, with right-to-left twin, 2 folds" in told
    assert f"spacy-seed1-backwardFalse {steps} 1, 2 folds" in told
    compressed = invoke("compress", path, "-o", tmp_path / "small", "--keep", 20)
    assert compressed.exit_code == 0, compressed.output
    listed = invoke("kbest", tmp_path / "small", treebank()["dev"], "-o", tmp_path / "k.conllu")
    assert listed.exit_code == 0, listed.output
    for _, trees in read_kbest(tmp_path / "k.conllu", inventory=LabelInventory()):
        assert list(trees.sources) == SCORES


def test_spacy_parsers_that_listen_get_a_tok2vec_of_their_own(tmp_path: Path) -> None:
    listening_config(tmp_path / "a.cfg", max_steps=3).to_disk(tmp_path / "b.cfg", interpolate=False)
    names = ("spacy", "spacy:seed=1:backward=true")
    options = tiny_options(tmp_path / "model", *names, config=tmp_path / "b.cfg", max_steps=3)
    report = train_pipeline(options)
    nlp = spacy.load(tmp_path / "model")
    assert nlp.component_names[:3] == ["tok2vec", "parser", "parser_seed1_backwardTrue"]
    assert nlp.get_pipe("tok2vec").listening_components == ["parser"]
    gold = load_treebank(treebank()["test"])
    docs = nlp.pipe(doc_from_sentence(nlp.vocab, sentence) for sentence in gold)
    found = evaluate(gold, [sentence_from_doc(doc) for doc in docs])
    assert found == report.parts["test"].scores["final system"]


# Components


def test_spacy_parsers_of_a_pipeline_train_its_reranker() -> None:
    """As `spacy train` does: of two parsers that are configured alike each gets another seed."""
    nlp = blank_parser()
    config = nlp.config["components"]["parser"]
    nlp.add_pipe("parser", name="parser2", config={"model": config["model"]})
    nlp.disable_pipe("parser2")
    found: Any = nlp.add_pipe(
        "tk_reranker", config={"source": ["parser", "parser2"], "k": 6, "n_threads": 1}
    )
    examples = list(read_examples(generate(40, seed=5), nlp))
    found.initialize(lambda: examples, nlp=nlp, folds=2, max_steps=3, settings=QUICK)
    assert list(found.reranker.combination.betas) == ["spacy", "spacy-parser2", "combiner"]
    specs: list[Any] = [
        pipeline_spec(nlp, "parser", search="discrepancy", max_steps=3, seed=0, number=number)
        for number in (0, 1)
    ]
    seeds = [load_config_from_str(spec.config)["training"]["seed"] for spec in specs]
    assert seeds[1] == seeds[0] + 1


def test_spacy_parsers_a_lent_reranker_needs_each_twin_that_it_learnt_from() -> None:
    model = spacy.load(spacy_training()[0])
    expected = predictions(model.pipe(new_docs(model, 4)))
    lender = spacy.load(spacy_training()[0])
    nlp = spacy.blank("xx")
    for name in lender.component_names[:-1]:
        if name != "parser_backward":
            nlp.add_pipe(name, source=lender)
    nlp.select_pipes(enable=["parser_seed2"])
    with pytest.raises(UserError, match="right-to-left twin of 'parser' too, but"):
        nlp.add_pipe("tk_reranker", source=lender)
    nlp.add_pipe("parser_backward", source=lender)
    nlp.disable_pipe("parser_backward")
    nlp.add_pipe("tk_reranker", source=lender)
    assert predictions(nlp.pipe(new_docs(nlp, 4))) == expected
