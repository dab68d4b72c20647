"""Mutation testing still finds what it is to change: modules move, and lines are rewritten."""

from __future__ import annotations

import fnmatch
import tomllib

import pytest
from planted_bugs import BUGS, ROOT, place_of

needs_source = pytest.mark.skipif(
    not (ROOT / "tk_spacy").is_dir(), reason="no source beside the tests"
)


@needs_source
def test_mutmut_is_told_of_modules_that_are_there() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = config["tool"]["mutmut"]["only_mutate"]
    modules = [p.relative_to(ROOT).as_posix() for p in (ROOT / "tk_spacy").rglob("*.py")]
    for pattern in patterns:
        assert fnmatch.filter(modules, pattern), pattern


@needs_source
def test_planted_bugs_have_one_place_each_and_tests_that_are_there() -> None:
    assert len({bug.what for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.new != bug.old
        place_of(ROOT, bug.old)
        for name in bug.tests:
            assert (ROOT / "tests" / name).is_file(), name
