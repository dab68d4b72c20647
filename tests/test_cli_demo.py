"""`tk-spacy demo`."""

import json
from pathlib import Path

import pytest
import spacy
from test_cli import invoke

from tk_spacy.treebank.conllu import load_treebank


@pytest.mark.slow
def test_cli_demo_runs_the_whole_path(tmp_path: Path) -> None:
    # The README's test runs it at its defaults, and sees what each step gains.
    quick = ("--max-steps", 20, "--views", "sampling,spacy")
    arguments = ("--sentences", 100, "--epochs", 2, "--threads", 1, "--processes", 1, *quick)
    result = invoke("demo", tmp_path / "demo", *arguments)
    assert result.exit_code == 0, result.output
    assert "THE DATA ARE SYNTHETIC" in result.stdout
    assert "Scores on the synthetic treebank test" in result.stdout
    assert len(load_treebank(tmp_path / "demo" / "train.conllu")) == 100
    assert "tk_reranker" in spacy.load(tmp_path / "demo" / "model").pipe_names
    again = invoke("demo", *arguments, "--json", "--quiet")
    document = json.loads(again.stdout)
    assert document["synthetic"] is True
    assert document["model"] is None
    saved = json.loads((tmp_path / "demo" / "model" / "report.json").read_text(encoding="utf-8"))
    for name, part in saved["parts"].items():
        assert document["parts"][name]["scores"] == part["scores"]
    # Both end with the same sentence of the test part, whose final tree is the better one.
    example = document["example"]
    assert example["mended"] > example["spoilt"]
    (gold,) = [
        sentence
        for sentence in load_treebank(tmp_path / "demo" / "test.conllu")
        if sentence.sent_id == example["sent_id"]
    ]
    assert [word["form"] for word in example["words"]] == list(gold.forms)
    assert [word["gold"]["head"] for word in example["words"]] == gold.heads.tolist()
    lines = result.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["form", "UPOS"])
    shown = lines[start + 1 : start + 1 + len(gold)]
    assert [line.split()[0] for line in shown] == [str(n) for n in range(1, len(gold) + 1)]
    assert sum(line.endswith("  mended") for line in shown) == example["mended"]
    assert max(map(len, shown)) <= 80


def test_cli_demo_refuses_a_directory_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    result = invoke("demo", tmp_path)
    assert result.exit_code == 1
    assert "exists already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert invoke("demo", "--sentences", 3).exit_code == 2


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_cli_demo_replaces_no_treebank(tmp_path: Path, name: str) -> None:
    own = tmp_path / f"{name}.conllu"
    own.write_text("# mine\n", encoding="utf-8")
    result = invoke("demo", tmp_path)
    assert result.exit_code == 1
    assert f"{own}: exists already" in " ".join(result.stderr.split()).replace(" /", "/")
    assert own.read_text(encoding="utf-8") == "# mine\n"
    assert [path.name for path in tmp_path.iterdir()] == [own.name]
