"""The README does what it says: its commands and example run in a fresh copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tk_spacy.cli.app import app

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
INNER = "TK_SPACY_README_INNER"

pytestmark = pytest.mark.skipif(
    INNER in os.environ, reason="this is the run that the README's own test started"
)


def block(mark: str, language: str) -> str:
    """The fenced block behind the comment <!-- mark -->."""
    found = re.search(
        rf"<!-- {mark} -->\s*^```{language}\n(.*?)^```", README.read_text("utf-8"), re.S | re.M
    )
    assert found, f"README.md has no {language} block after <!-- {mark} -->"
    return found[1]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that make the project, without what was built or left around."""
    copy = tmp_path_factory.mktemp("readme") / "checkout"
    copy.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.c", "*.cpp", "build", "*.egg-info")
    for name in ("tk_spacy", "tests", "configs"):
        shutil.copytree(ROOT / name, copy / name, ignore=ignore, symlinks=True)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, copy / path.name)
    return copy


def run(command: str, where: Path, **environment: str) -> str:
    """Output of a bash command that must succeed; python3 is the one that runs the tests."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    python = Path(sys.base_prefix) / "bin"
    own["PATH"] = os.pathsep.join([str(python), own["PATH"]])
    own.setdefault("CFLAGS", "-O1")  # half the time of compilation: what runs here is small
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=where,
        env=own | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_readme_demo_and_example_run(checkout: Path) -> None:
    shown = run(block("setup: demo", "bash"), checkout)
    assert "SYNTHETIC" in shown
    for row in ("base parser", "base reranker", "kernel reranker", "final system", "oracle"):
        assert row in shown
    report = json.loads((checkout / "playground" / "model" / "report.json").read_text("utf-8"))
    las = {name: row["las"] for name, row in report["parts"]["test"]["scores"].items()}
    parsers = [las[f"{name} parser"] for name in ("base", "spacy", "biaffine")]
    assert min(parsers) > 80
    assert max(parsers) < las["plain vote"] < las["arc combiner"] < las["final system"]
    assert las["base reranker"] < las["final system"]
    example = checkout / "playground" / "example.py"
    example.write_text(block("run: python", "python"), encoding="utf-8")
    lines = run("../.venv/bin/python example.py", checkout / "playground").splitlines()
    assert any(" ROOT " in line for line in lines)
    assert "'changed'" in lines[-1]
    # The commands that the README shows, on the demo's own files and with its model: the first one
    # would train another.
    train, *others = block("run: commands", "console").splitlines()
    assert train.startswith("$ tk-spacy train train.conllu ")
    for line in others:
        assert line.startswith("$ tk-spacy ")
        command = line.removeprefix("$ ").replace("my-model", "model")
        run(f"PATH=../.venv/bin:$PATH; {command}", checkout / "playground")


@pytest.mark.slow
@pytest.mark.skipif(
    "TK_SPACY_README_RUNS" in os.environ, reason="who set TK_SPACY_README_RUNS runs that very block"
)
def test_readme_tests_pass(checkout: Path) -> None:
    shown = run(
        block("setup: tests", "bash"),
        checkout,
        # Whoever runs this test runs the whole suite already: here it is the command that counts.
        **{
            INNER: "1",
            "PYTEST_ADDOPTS": "-q -m 'not slow and not shared' -k 'packaging or kernel'",
        },
    )
    assert re.search(r"\d+ passed", shown.splitlines()[-1])


def test_readme_names_every_command_and_config() -> None:
    text = README.read_text("utf-8")
    commands = typer.main.get_command(app).commands
    assert len(commands) > 10
    for name in commands:
        assert f"| `{name}` |" in text
    for path in (ROOT / "configs").glob("*.cfg"):
        if path.stem != "small":
            assert path.name in text
