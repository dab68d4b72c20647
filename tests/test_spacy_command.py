"""`python -m spacy tk`: the same commands, help, errors and exit codes as `tk-spacy`."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from trainings import treebank

pytestmark = pytest.mark.skipif(
    not metadata.entry_points(group="spacy_cli", name="tk"),
    reason="the entry point is not installed",
)
SPACY = [sys.executable, "-m", "spacy"]
OWN = [sys.executable, "-m", "tk_spacy"]


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_spacy_command_is_told_among_spacy_s() -> None:
    done = run(*SPACY, "--help")
    assert done.returncode == 0
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["tk"]]
    assert "Train parsers on a treebank" in line


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--help"], 0),
        (["rerank", "-h"], 0),
        (["--version"], 0),
        (["info", "nowhere"], 1),
        (["info", "nowhere", "--json"], 1),
        (["rerank"], 2),
        (["train", "--tags", "silver", "x"], 2),
        (["no-such-command"], 2),
        (["--no-such-option"], 2),
        ([], 2),
    ],
)
def test_spacy_command_says_what_the_program_says(args: list[str], code: int) -> None:
    through, own = run(*SPACY, "tk", *args), run(*OWN, *args)
    assert (through.returncode, own.returncode) == (code, code)
    called = "python -m spacy tk"
    assert through.stdout.replace(called, "tk-spacy").split() == own.stdout.split()
    assert through.stderr.replace(called, "tk-spacy").split() == own.stderr.split()
    assert "Traceback" not in through.stderr


def test_spacy_command_does_the_work(tmp_path: Path) -> None:
    gold = treebank()["dev"]
    done = run(*SPACY, "tk", "evaluate", gold, gold, "--json")
    assert done.returncode == 0
    assert done.stdout == run(*OWN, "evaluate", gold, gold, "--json").stdout
    assert '"las": 100.0' in done.stdout


def test_spacy_command_costs_spacy_s_own_commands_nothing() -> None:
    code = (
        "import sys, tk_spacy.spacy_command; "
        "print(*sorted(name for name in sys.modules if name.startswith('tk_spacy')))"
    )
    assert run(sys.executable, "-c", code).stdout.split() == [
        "tk_spacy",
        "tk_spacy.about",
        "tk_spacy.spacy_command",
    ]
