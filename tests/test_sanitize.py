"""Which tests `.ci/sanitize` runs: those of every compiled module, as found by the imports."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "tests_of_modules.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="no checkout, so no .ci")


@functools.cache
def found(*arguments: str) -> list[str]:
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_every_compiled_module_has_tests() -> None:
    tests = dict(line.split(": ") for line in found("--modules"))
    paths = (ROOT / "tk_spacy").rglob("*.pyx")
    assert tests.keys() == {
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths
    }
    # Imported by its test, cimported by another module whose test imports that one.
    assert tests["tk_spacy.trees.spanning"].split() == ["test_spanning", "test_stopping"]
    assert "test_projective" in tests["tk_spacy.parsers.projective.chart"].split()


def test_all_of_these_are_run() -> None:
    of_modules = {test for line in found("--modules") for test in line.split(": ")[1].split()}
    files = found()
    assert sorted(files) == files == sorted(f"tests/{test}.py" for test in of_modules)
    assert all((ROOT / name).is_file() for name in files)
