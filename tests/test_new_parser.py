"""A parser of another package, with a line in the registry and a spaCy entry point: all works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import catalogue
import numpy as np
import pytest
import spacy
from test_cli import invoke
from throwaway_parser.component import TkPrevious
from throwaway_parser.kind import KIND
from throwaway_parser.parser import PreviousParser, PreviousSettings
from trainings import QUICK_SAMPLING, folder, sampling_options, treebank

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parsers import kinds
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.spacy_io.conversion import doc_from_sentence, sentence_from_doc
from tk_spacy.spacy_io.corpus import read_examples
from tk_spacy.treebank.conllu import Sentence, load_treebank
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.model import open_model, open_parsers
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

PARSERS = ("previous", "sampling", "previous:back=2")


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    kinds.parsers.register("previous", func=KIND)
    yield
    del catalogue.REGISTRY["tk_spacy", "parsers", "previous"]


def sentence(*upos: str) -> Sentence:
    n = len(upos)
    return Sentence.from_columns(
        forms=[f"w{i}" for i in range(n)], upos=upos, heads=range(n), deprels=["root"] * n
    )


@pytest.fixture(scope="module")
def training() -> tuple[Path, TrainReport]:
    path = folder() / "previous-model"
    return path, train_pipeline(sampling_options(path, parsers=PARSERS, test=None))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("alone") / "parser"
    PreviousParser.train(load_treebank(treebank()["train"]), PreviousSettings()).to_disk(path)
    return path


# The registry


def test_all_kinds_are_known_by_name() -> None:
    assert kinds.parser_names() == (
        "sampling",
        "spacy",
        "biaffine",
        "udpipe",
        "transition",
        "projective",
        "previous",
    )
    assert kinds.kind_of_parser("previous-back2") is KIND
    assert kinds.kind_of_parser("gone-order2") is None
    assert "previous (each word hangs on one before it)" in kinds.parsers_help()
    with pytest.raises(
        UserError, match=r"unknown parser 'turbo'; choose from sampling, .*previous"
    ):
        kinds.get_kind("turbo")


@pytest.mark.parametrize("name", ["tk-x", "X", "a:b", ""])
def test_a_kind_has_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="the name of a kind of parsers is"):
        kinds.ParserKind(name=name, summary="", spec="", line=str)


def test_asking_for_all_kinds_imports_no_parser() -> None:
    code = (
        "import sys\n"
        "from tk_spacy.parsers.kinds import parsers_help\n"
        "parsers_help()\n"
        "print([m for m in sys.modules if m == 'spacy' or m.startswith('tk_spacy.parsers.')])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(shown.stdout.replace("'", '"'))
    assert [name for name in loaded if name.endswith((".spec", ".parser", "spacy"))] == []


def test_every_kind_says_which_settings_there_are() -> None:
    found = {name: kind.settings_class() for name, kind in kinds.all_kinds().items()}
    assert found.pop("spacy") is None
    assert [field.name for field in fields(found["previous"])] == ["back", "seed"]
    for name, settings in found.items():
        assert is_dataclass(settings), name
        plain = settings()
        assert settings.from_dict(plain.to_dict()) == plain, name


def test_settings_of_a_kind_and_of_one_parser() -> None:
    first, second = make_parsers(
        ["previous", "previous:back=2"], seed=3, settings={"previous": {"back": 4}}
    )
    assert (first.name, second.name) == ("previous", "previous-back2")
    assert first.about() == {"back": 4, "seed": 3}
    assert second.about() == {"back": 2, "seed": 3}
    for text, message in (
        ("previous:back=0", "parser 'previous:back=0': back is 0; it must be from 1 to 9"),
        ("previous:depth=2", "unknown settings: depth; choose from back, seed"),
    ):
        with pytest.raises(UserError, match=message):
            make_parsers([text])


def test_settings_of_a_kind_that_is_not_asked_for() -> None:
    files = treebank()
    with pytest.raises(UserError, match=r"previous\.back concerns the previous parser only"):
        TrainOptions(
            train=files["train"], dev=files["dev"], output=Path("m"), parsers=("sampling",),
            parser_settings={"previous": {"back": 2}},
        )  # fmt: skip


# In an ensemble


def test_it_is_trained_in_an_ensemble_and_saved(training: Any) -> None:
    path, report = training
    assert list(report.betas)[:3] == ["previous", "sampling", "previous-back2"]
    assert set(report.run_time.parsers) == {"previous", "sampling", "previous-back2"}
    nlp = spacy.load(path)
    assert nlp.component_names == [
        "tk_previous", "tk_parser", "tk_previous_back2", "tk_reranker",
    ]  # fmt: skip
    assert nlp.pipe_names == ["tk_previous", "tk_reranker"]
    first, second = nlp.get_pipe("tk_previous"), nlp.get_pipe("tk_previous_back2")
    assert isinstance(first, TkPrevious)
    assert (first.parser.settings.back, second.parser.settings.back) == (1, 2)


def test_the_base_row_is_what_the_parser_gives(training: Any) -> None:
    gold = load_treebank(treebank()["dev"])
    chains = [s.with_tree(range(len(s)), s.deprels) for s in gold]
    assert training[1].parts["dev"].scores["base parser"].uas == evaluate(gold, chains).uas


def test_files_and_docs_get_the_trees_of_the_report(training: Any, tmp_path: Path) -> None:
    path, report = training
    wanted = report.parts["dev"].scores["final system"]
    rerank_files(path, [treebank()["dev"]], tmp_path / "out.conllu", n_threads=1)
    gold = load_treebank(treebank()["dev"])
    assert evaluate(gold, load_treebank(tmp_path / "out.conllu")) == wanted
    nlp = spacy.load(path)
    again = spacy.blank("xx").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for pipeline in (nlp, again):
        docs = pipeline.pipe(doc_from_sentence(pipeline.vocab, s) for s in gold)
        assert evaluate(gold, [sentence_from_doc(doc) for doc in docs]) == wanted


def test_info_kbest_parse_and_compress_know_it(training: Any, tmp_path: Path) -> None:
    path, _ = training
    shown = invoke("info", path)
    assert shown.exit_code == 0, shown.output
    assert "previous parser" in shown.stdout
    assert "trained, 1 back, 2 folds" in shown.stdout
    assert "trained, 2 back, 2 folds" in shown.stdout
    dev = treebank()["dev"]
    made = invoke("kbest", path, dev, "-o", tmp_path / "k.conllu", "--k", 4, "--json", "-q")
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["trees_per_sentence"] > 3
    assert invoke("rerank", path, tmp_path / "k.conllu", "-o", tmp_path / "r.conllu").exit_code == 0
    parsed = invoke("parse", path, dev, "-o", tmp_path / "p.conllu")
    assert parsed.exit_code == 0, parsed.output
    assert len(load_treebank(tmp_path / "p.conllu")) == len(load_treebank(dev))
    smaller = invoke("compress", path, "-o", tmp_path / "small", "--keep", 50)
    assert smaller.exit_code == 0, smaller.output
    assert set(open_model(tmp_path / "small").reranker.provenance.parsers or {}) == {
        "previous", "sampling", "previous-back2",
    }  # fmt: skip
    again = invoke("rerank", tmp_path / "small", dev, "-o", tmp_path / "s.conllu")
    assert again.exit_code == 0, again.output


def test_a_pipeline_of_its_own_is_trained_by_spacy_examples(tmp_path: Path) -> None:
    nlp = spacy.blank("xx")
    for name, settings in (("tk_previous", {}), ("second", {"back": 2})):
        nlp.add_pipe("tk_previous", name=name, config={"settings": settings})
    nlp.add_pipe("tk_reranker", config={"source": ["tk_previous", "second"], "k": 4})
    nlp.config["initialize"]["components"]["tk_reranker"] = {"folds": 2}
    examples = list(read_examples(load_treebank(treebank()["train"]), nlp))
    nlp.initialize(lambda: examples)
    made = nlp.get_pipe("tk_reranker").reranker.provenance
    assert made.sources == ("previous", "previous-second")
    nlp.to_disk(tmp_path / "nlp")
    opened = open_parsers(tmp_path / "nlp", LabelInventory())
    assert [source.names for source in opened.sources] == [("previous",), ("previous-second",)]
    assert opened.k == 4


# Alone in a directory


def test_a_parser_alone_is_told_about_and_parses(alone: Path, tmp_path: Path) -> None:
    shown = invoke("info", alone)
    assert shown.exit_code == 0, shown.output
    assert "previous parser alone" in shown.stdout
    for command, more in (("parse", ()), ("kbest", ("--k", 3))):
        out = tmp_path / f"{command}.conllu"
        result = invoke(command, alone, treebank()["dev"], "-o", out, *more)
        assert result.exit_code == 0, result.output
        for found in load_treebank(out):
            assert np.array_equal(found.heads, np.arange(len(found)))
    refused = invoke("rerank", alone, treebank()["dev"], "-o", tmp_path / "r.conllu")
    assert refused.exit_code == 1
    assert "a previous parser without a reranker" in refused.stderr


def test_most_frequent_labels_are_learnt() -> None:
    known = sentence("NOUN", "VERB", "NOUN").with_tree([2, 0, 2], ["nsubj", "root", "obj"])
    more = sentence("VERB", "NOUN").with_tree([0, 1], ["root", "obj"])
    parser = PreviousParser.train([known, more], PreviousSettings())
    ((heads, deprels),) = parser.parse([sentence("VERB", "NOUN", "ADP")])
    assert heads.tolist() == [0, 1, 2]
    assert deprels == ("root", "obj", "dep")


# As an installed package


@pytest.mark.slow
def test_an_installed_package_needs_two_entry_points_only(tmp_path: Path) -> None:
    own = Path(__file__).parent / "throwaway_parser"
    shutil.copytree(own, tmp_path / own.name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = tmp_path / "throwaway_parser-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: throwaway-parser\nVersion: 1\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[tk_spacy_parsers]\nprevious = throwaway_parser.kind:KIND\n\n"
        "[spacy_factories]\ntk_previous = throwaway_parser.component:make_previous\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def command(*arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tk_spacy", *map(str, arguments)],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    files = treebank()
    model = tmp_path / "model"
    quick = ("--epochs", QUICK_SAMPLING["epochs"], "--order", 1, "--folds", 2, "--tags", "gold")
    parsers = "previous,sampling,previous:back=2"
    command(
        "train", files["train"], "--dev", files["dev"], "-o", model, "--parsers", parsers, *quick
    )
    assert "trained, 2 back, 2 folds" in command("info", model)
    command("rerank", model, files["test"], "-o", tmp_path / "out.conllu")
    assert len(load_treebank(tmp_path / "out.conllu")) == len(load_treebank(files["test"]))
    assert "previous (each word hangs" in " ".join(
        command("train", "--help").replace("│", " ").split()
    )
