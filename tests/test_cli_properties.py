"""Further properties of words on the command line: options, models and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import invoke
from test_cli_train import assert_refused, train
from trainings import treebank

from tk_spacy.parsers.sampling.parser import read_parser
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.model import open_model

QUICK = ("--epochs", 1, "--bits", 12, "--threads", 1, "--quiet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A made-up table: the length of a form, in two digits."""
    forms = {form for sentence in load_treebank(treebank()["train"]) for form in sentence.forms}
    path = tmp_path / "lengths.tsv"
    path.write_text("".join(f"{form}\t{len(form):02}\n" for form in sorted(forms)))
    return path


def properties_of(path: Path) -> list[str]:
    return json.loads(invoke("info", path, "--json").stdout)["properties"]


def test_cli_properties_reach_the_reranker(tmp_path: Path, table: Path) -> None:
    names = f"lemma, suffix3,table:{table}:1"
    result = train(tmp_path / "model", "--properties", names)
    assert result.exit_code == 0, result.output
    settings = open_model(tmp_path / "model").reranker.settings
    assert settings.use_lemma
    assert settings.properties == ("suffix3", f"table:{table}:1")
    found = properties_of(tmp_path / "model")
    assert "lemma" in found
    assert found[-2:] == ["suffix3", "table:lengths.tsv:1"]
    shown = invoke("info", tmp_path / "model").stdout
    assert "suffix3, table:lengths.tsv:1" in " ".join(shown.split())
    without = train(tmp_path / "plain", "--properties", "none")
    assert without.exit_code == 0, without.output
    assert not {"lemma", "suffix3"} & set(properties_of(tmp_path / "plain"))


def test_cli_properties_reach_the_parser(tmp_path: Path, table: Path) -> None:
    files = treebank()
    result = invoke(
        "train-parser", files["train"], "-o", tmp_path / "parser", "--extra",
        f"shape,table:{table}", *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    table.unlink()
    parser = read_parser(tmp_path / "parser")
    assert parser.settings.extra == ("shape", f"table:{table}")
    assert properties_of(tmp_path / "parser")[-2:] == ["shape", "table:lengths.tsv"]
    parsed = invoke("parse", tmp_path / "parser", files["dev"], "-o", tmp_path / "out.conllu")
    assert parsed.exit_code == 0, parsed.output
    assert len(load_treebank(tmp_path / "out.conllu")) == 30


def test_cli_properties_reach_the_parser_of_a_model(tmp_path: Path) -> None:
    files = treebank()
    result = invoke(
        "train", files["train"], "--dev", files["dev"], "-o", tmp_path / "model", "--extra",
        "suffix2", "--folds", 2, "--epochs", 1, "--order", 1, "--bits", 12, "--threads", 1,
        "--processes", 1, "--k", 4, "--views", "sampling", "--tags", "gold",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    shown = " ".join(invoke("info", tmp_path / "model").stdout.split())
    assert "order 1, 1 epochs, with suffix2" in shown
    again = invoke("rerank", tmp_path / "model", files["dev"], "-o", tmp_path / "out.conllu")
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("suffix7", "unknown property 'suffix7'; choose from lemma, lower, shape, prefix1"),
        ("shape,shape", "properties names shape twice"),
        ("table:none.tsv", "none.tsv: cannot read the table"),
        ("misc:Gloss", "property misc:Gloss is asked for, but no word has Gloss in MISC"),
    ],
)
def test_cli_properties_that_cannot_be(tmp_path: Path, names: str, message: str) -> None:
    assert_refused(train(tmp_path / "model", "--properties", names), tmp_path, message)
    result = invoke(
        "train-parser", treebank()["train"], "-o", tmp_path / "model", "--extra", names, *QUICK
    )
    assert_refused(result, tmp_path, message.replace("properties names", "extra names"))


def test_cli_properties_of_a_bad_table_name_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\t1\nb\n")
    message = f"{path}:2: 'b' is not a form, a tab and its value"
    assert_refused(train(tmp_path / "model", "--properties", f"table:{path}"), tmp_path, message)


def test_cli_properties_without_a_kernel_have_no_effect(tmp_path: Path) -> None:
    result = train(tmp_path / "model", "--properties", "shape", "--kernel-parts", "none")
    assert_refused(result, tmp_path, "properties (shape) would have no effect: the kernel")


def test_cli_properties_of_the_parser_where_no_parser_is_trained(tmp_path: Path) -> None:
    result = train(tmp_path / "model", "--extra", "shape")
    assert_refused(result, tmp_path, "extra")


def test_cli_properties_read_misc_from_the_file(tmp_path: Path) -> None:
    words = Sentence.from_columns(
        forms="ab", upos=["X", "X"], misc=["Gloss=x", "_"], heads=[0, 1], deprels=["root", "dep"]
    )
    write_conllu(tmp_path / "t.conllu", [words] * 3)
    result = invoke(
        "train-parser", tmp_path / "t.conllu", "-o", tmp_path / "parser", "--extra", "misc:Gloss",
        *QUICK,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert properties_of(tmp_path / "parser")[-1] == "misc:Gloss"
