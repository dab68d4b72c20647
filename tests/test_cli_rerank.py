"""`tk-spacy rerank` and `tk-spacy kbest`."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import spacy
from named_pipes import pipe
from test_cli import invoke, run
from tiny_spacy import own_trees
from trainings import list_files, lists_training, parser_training, same_trees, stripped, treebank

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.parsers.spacy_transition import source as spacy_source
from tk_spacy.treebank.conllu import load_treebank


def rerank(*arguments: object):
    return invoke("rerank", lists_training()[0], *arguments, "--threads", 1)


def test_cli_rerank_a_file(tmp_path: Path) -> None:
    result = rerank(list_files()["test"], "-o", tmp_path / "out.conllu")
    assert result.exit_code == 0, result.output
    assert "tokens/s" in result.stdout
    assert "UAS" not in result.stdout
    assert (tmp_path / "out.conllu").exists()


def test_cli_rerank_json(tmp_path: Path) -> None:
    result = rerank(list_files()["test"], "-o", tmp_path / "out.conllu", "--json")
    document = json.loads(result.stdout)
    assert document["files"][0]["status"] == "done"
    assert document["total"]["sentences"] == 30
    assert document["total"]["scores"] is None


def test_cli_rerank_a_directory_with_a_broken_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(list_files()["test"], tmp_path / "in" / "good.conllu")
    (tmp_path / "in" / "bad.conllu").write_text("1\tonly two columns\n")
    result = rerank(tmp_path / "in", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "bad.conllu:1: 2 columns instead of 10" in result.stderr
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [".tk-spacy.json", "good.conllu"]
    again = rerank(tmp_path / "in", "-o", tmp_path / "out")
    assert "skipped" in again.stdout
    assert "1 skipped: up to date (--overwrite makes them again)" in again.output
    swapped = invoke("rerank", list_files()["test"], lists_training()[0], "-o", tmp_path / "x")
    assert "test.kbest.conllu: a file, not a model directory; the model is given" in " ".join(
        swapped.stderr.split()
    )


def test_cli_rerank_in_processes_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        shutil.copy(list_files()["test"], tmp_path / "in" / f"{name}.conllu")
    code, out, err = run(
        "rerank", lists_training()[0], tmp_path / "in", "-o", tmp_path / "out", "-j", 2,
        "--threads", 1,
    )  # fmt: skip
    assert (code, "Traceback" in err) == (0, False)
    assert "total" in out
    assert len(list((tmp_path / "out").glob("*.conllu"))) == 3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("missing", "no such model directory"),
        ("file", "a file, not a model directory"),
        ("empty", "no tk-spacy reranker here"),
        ("damaged", "damaged or incomplete"),
    ],
)
def test_cli_rerank_with_a_model_that_is_none(tmp_path: Path, model: str, message: str) -> None:
    (tmp_path / "file").write_text("hello")
    (tmp_path / "empty").mkdir()
    shutil.copytree(lists_training()[0], tmp_path / "damaged")
    (tmp_path / "damaged" / "support.npz").write_bytes(b"PK\x03\x04 no more")
    result = invoke("rerank", tmp_path / model, list_files()["dev"], "-o", tmp_path / "out.conllu")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out.conllu").exists()


def test_cli_rerank_leaves_no_half_file(tmp_path: Path) -> None:
    bad = tmp_path / "in.conllu"
    text = list_files()["test"].read_text(encoding="utf-8")
    bad.write_text(text + "1\tbroken\n", encoding="utf-8")
    result = rerank(bad, "-o", tmp_path / "out.conllu")
    assert result.exit_code == 1
    assert "columns instead of 10" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.conllu"]


def test_cli_rerank_output_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    result = rerank(list_files()["test"], "-o", tmp_path / "file" / "out.conllu")
    assert result.exit_code == 1
    assert "cannot write it" in result.stderr
    assert invoke("rerank", lists_training()[0], "-o", "out").exit_code == 2


@pytest.mark.slow
def test_cli_kbest_writes_what_rerank_reads(tmp_path: Path) -> None:
    model = parser_training()[0]
    bare = stripped(treebank()["test"], tmp_path / "bare.conllu")
    # As many trees as the model learnt from.
    result = invoke("kbest", model, bare, "-o", tmp_path / "k.conllu", "--json")
    assert result.exit_code == 0, result.output
    counted = json.loads(result.stdout)
    pairs = list(read_kbest(tmp_path / "k.conllu", inventory=LabelInventory()))
    assert counted["sentences"] == len(pairs) == 30
    assert counted["trees"] == sum(len(trees) for _, trees in pairs)
    assert max(len(trees) for _, trees in pairs) == 6
    for source, target in (("k", "a"), ("bare", "b")):
        done = invoke(
            "rerank", model, tmp_path / f"{source}.conllu", "-o", tmp_path / f"{target}.conllu",
            "--threads", 1,
        )  # fmt: skip
        assert done.exit_code == 0, done.output
    assert same_trees(tmp_path / "a.conllu", tmp_path / "b.conllu")


@pytest.mark.slow
def test_cli_kbest_expanded_form(tmp_path: Path) -> None:
    model, out = parser_training()[0], tmp_path / "k.conllu"
    result = invoke("kbest", model, treebank()["test"], "-o", out, "--form", "expanded", "-q")
    assert result.exit_code == 0, result.output
    assert "# rank = 2" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--k", "0"), 2, "--k"),
        (("--form", "compressed"), 1, "form is 'compressed'"),
        (("--search", "deep"), 1, "search is 'deep'"),
        ((), 1, "model: "),
    ],
)
def test_cli_kbest_refuses(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    out = tmp_path / "out.conllu"
    result = invoke("kbest", tmp_path / "model", treebank()["dev"], "-o", out, *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert not out.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems' file names are text")
@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_cli_rerank_files_whose_names_are_no_text(tmp_path: Path, mode: list[str]) -> None:
    (tmp_path / "in").mkdir()
    name = os.fsdecode(b"b\xff.conllu")
    shutil.copy(list_files()["test"], tmp_path / "in" / name)
    result = rerank(tmp_path / "in", "-o", tmp_path / "out", *mode)
    assert (result.exit_code, result.exception) == (0, None)
    assert (tmp_path / "out" / name).exists()
    if mode:
        assert json.loads(result.stdout)["files"][0]["input"] == str(tmp_path / "in" / name)
    else:
        # The table folds a long path: without its other cells it is whole.
        cells = [line.split("│")[1].strip() for line in result.stdout.splitlines() if "│" in line]
        assert "b\\udcff.conllu" in "".join(cells)


def test_cli_rerank_reads_a_pipe(tmp_path: Path) -> None:
    lists = list_files()["test"]
    rerank(lists, "-o", tmp_path / "out.conllu")
    with pipe(tmp_path / "pipe", lists.read_bytes()) as path:
        result = rerank(path, "-o", tmp_path / "piped.conllu")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "piped.conllu").read_bytes() == (tmp_path / "out.conllu").read_bytes()
    with pipe(tmp_path / "pipe", b"") as path:
        result = rerank(path, "-o", tmp_path / "none.conllu", "--quiet")
    assert (result.exit_code, result.stderr) == (
        1, f"Error: {path}: the file holds no sentence; give a file with CoNLL-U in it\n",
    )  # fmt: skip
    assert not (tmp_path / "none.conllu").exists()


def test_cli_rerank_with_any_number_of_threads_and_candidates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spacy_source, "MAX_K", 8)
    huge = ["--threads", 10**12, "--k", 10_000]
    for name, options in {"a": ["--threads", 1], "b": huge}.items():
        out = tmp_path / name
        arguments = ["rerank", parser_training()[0], treebank()["dev"], "-o", out, *options]
        assert invoke(*arguments).exit_code == 0
    assert len(load_treebank(tmp_path / "b")) == 30


@pytest.mark.slow
def test_cli_parse_with_the_first_parser_of_a_model_without_sampling_parser(tmp_path: Path) -> None:
    path = parser_training()[0]
    nlp = spacy.load(path)
    gold = load_treebank(treebank()["test"])
    result = invoke("parse", path, treebank()["test"], "-o", tmp_path / "a.conllu", "--json")
    assert result.exit_code == 0, result.output
    parsed = load_treebank(tmp_path / "a.conllu")
    own = [(s.heads.tolist(), list(s.deprels)) for s in parsed]
    assert own == own_trees(nlp, gold)
    las = json.loads(result.stdout)["total"]["scores"]["final"]["las"]
    assert las == parser_training()[1].parts["test"].scores["base parser"].las
    k = invoke("parse", path, treebank()["test"], "-o", tmp_path / "k.conllu", "--k", 6, "-q")
    assert k.exit_code == 0, k.output
    pairs = list(read_kbest(tmp_path / "k.conllu", inventory=LabelInventory()))
    # The parser alone, without its right-to-left twin; its own tree is in its list.
    assert {trees.sources for _, trees in pairs} == {("spacy",)}
    assert max(len(trees) for _, trees in pairs) == 6
    based = [(t.heads[t.base].tolist(), list(t.deprels(t.base))) for _, t in pairs]
    assert based == own


def test_cli_an_empty_argument_is_no_current_directory(tmp_path: Path) -> None:
    for arguments in (("", list_files()["test"], "-o", "x"), ("model", "in.conllu", "-o", "")):
        result = invoke("rerank", *arguments)
        assert result.exit_code == 2
        assert "an argument is empty" in " ".join(result.output.split())


def test_cli_rerank_into_a_directory_that_is_not_there(tmp_path: Path) -> None:
    source = list_files()["test"]
    result = rerank(source, "-o", f"{tmp_path}/new/")
    assert result.exit_code == 0
    assert [path.name for path in (tmp_path / "new").glob("*.conllu")] == [source.name]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a b")
    result = rerank(tmp_path / "texts", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "for its .txt files give --input text" in " ".join(result.output.split())
