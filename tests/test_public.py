"""`import tk_spacy`: public functions, imported when asked for; one logger."""

from __future__ import annotations

import ast
import importlib
import logging
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tk_spacy
from tk_spacy.cli.shell import Shell

ROOT = Path(tk_spacy.__file__).parent


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_public_import_is_quick_and_brings_nothing_heavy() -> None:
    code = (
        "import time, sys; t = time.perf_counter(); import tk_spacy; "
        "spent = time.perf_counter() - t; "
        "heavy = {'spacy', 'thinc', 'typer', 'numpy', 'rich'} & set(sys.modules); "
        "print(spent, *heavy)"
    )
    spent, *heavy = min((run(code).split() for _ in range(3)), key=lambda row: float(row[0]))
    assert heavy == []
    assert float(spent) < 0.3


def test_public_names_do_not_bring_spacy() -> None:
    code = (
        "import sys, tk_spacy; [getattr(tk_spacy, name) for name in tk_spacy.__all__]; "
        "print(*{'spacy', 'thinc', 'typer'} & set(sys.modules))"
    )
    assert run(code).split() == []


@pytest.mark.parametrize("name", [name for name in tk_spacy.__all__ if name != "__version__"])
def test_public_names_are_there_and_say_what_they_do(name: str) -> None:
    found = getattr(tk_spacy, name)
    assert callable(found)
    assert (found.__doc__ or "").strip()
    assert found.__doc__ != dict.__doc__
    assert name in dir(tk_spacy)


def test_public_names_are_what_the_type_checker_sees() -> None:
    tree = ast.parse(Path(tk_spacy.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: getattr(importlib.import_module(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert seen == {
        name: getattr(tk_spacy, name) for name in tk_spacy.__all__ if name != "__version__"
    }


def test_public_star_import_and_help() -> None:
    space: dict[str, object] = {}
    exec("from tk_spacy import *", space)
    assert set(tk_spacy.__all__) <= space.keys()
    shown = pydoc.render_doc(tk_spacy, renderer=pydoc.plaintext)
    for name in ("rerank_files", "paired_bootstrap", "class Reranker"):
        assert name in shown


def test_public_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'tk_spacy' has no attribute 'parse_text'"):
        _ = tk_spacy.parse_text  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        exec("from tk_spacy import parse_text")


def test_public_functions_do_what_commands_do(tmp_path: Path) -> None:
    gold = tmp_path / "gold.conllu"
    trees = [tk_spacy.Sentence.from_columns(
        forms=["a", "b"], upos=["X", "X"], heads=[0, 1], deprels=["root", "dep"]
    )] * 2  # fmt: skip
    wrong = [tk_spacy.Sentence.from_columns(
        forms=["a", "b"], upos=["X", "X"], heads=[2, 0], deprels=["dep", "root"]
    )]  # fmt: skip
    tk_spacy.write_conllu(gold, trees)
    tk_spacy.write_conllu(tmp_path / "system.conllu", [*trees[:1], *wrong])
    read = list(tk_spacy.read_conllu(tmp_path / "system.conllu"))
    # Two of four words have the right head.
    assert tk_spacy.evaluate(tk_spacy.load_treebank(gold), read).uas == 50.0
    result = tk_spacy.evaluate_files(gold, [tmp_path / "system.conllu"])
    assert result.systems[0][1].uas == 50.0
    with pytest.raises(tk_spacy.TreebankError):
        list(tk_spacy.read_conllu(tmp_path / "missing.conllu"))
    assert issubclass(tk_spacy.TreebankError, tk_spacy.UserError)
    with pytest.raises(tk_spacy.UserError):
        tk_spacy.open_model(tmp_path)


def test_library_logs_to_one_logger() -> None:
    loggers = {
        match[1]
        for path in ROOT.rglob("*.py")
        for match in re.finditer(r"getLogger\(([^)]*)\)", path.read_text(encoding="utf-8"))
    }
    # Dask's own is silenced: the executor tells what becomes of its workers.
    assert loggers == {'"tk_spacy"', "LOGGER", '"distributed"'}
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("tk_spacy").handlers)


def test_commands_show_what_the_library_logs(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("tk_spacy")
    for quiet, expected in ((False, "Warning: odd thing\n"), (True, "")):
        Shell(quiet=quiet)
        logger.warning("odd %s", "thing")
        logger.info("not this")
        assert capsys.readouterr().err == expected
