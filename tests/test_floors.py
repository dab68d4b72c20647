"""The house has floors: every import and cimport goes down, none runs up or in a circle.

`FLOORS` is the one place that declares them, from the top down.  A module may import from its own
floor (but never in a circle) and from those below.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "tk_spacy"

FLOORS = (
    "cli",
    "workflows",
    "pipeline",
    "reranker",
    "tagging",
    "tokenizing",
    "audit",
    "ensemble",
    "parsers",
    "selection",
    "kernels",
    "pages",
    "spacy_io",
    "features",
    "kbest",
    "evaluation",
    "treebank",
    "trees",
    "cluster",
    "utils",
    "parallel",
    "errors",
    "about",
)
"""Folders and modules of the package, from the top down."""

LAZY = {"", "__main__", "spacy_command"}
"""The package itself, which hands on what others import (lazily), and its commands."""

CIMPORT = re.compile(r"^\s*from\s+(tk_spacy[\w.]*)\s+cimport\s+(\([^)]*\)|[^\n]+)", re.M)
CYTHON_IMPORT = re.compile(r"^\s*from\s+(tk_spacy[\w.]*)\s+import\s+(\([^)]*\)|[^\n]+)", re.M)


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The (module, name) pairs that a file imports or cimports from the package, wherever."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".py", ".pyi"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE:
                assert node.level == 0, f"{path}: a relative import"
                yield from ((node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == PACKAGE:
                        yield alias.name, ""
        return
    text = re.sub(r"#.*", "", text)
    for pattern in (CIMPORT, CYTHON_IMPORT):
        for module, names in pattern.findall(text):
            for name in names.strip("() \n").split(","):
                yield module, name.split(" as ")[0].strip()


def import_graph(root: Path) -> dict[str, set[str]]:
    """What each module of the package under `root` imports; a .pxd counts as its module."""
    files = [
        path
        for path in sorted((root / PACKAGE).rglob("*"))
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd")
    ]
    modules = {module_name(path, root) for path in files}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for path in files:
        own = module_name(path, root)
        for module, name in imported(path):
            found = f"{module}.{name}" if f"{module}.{name}" in modules else module
            assert found in modules, f"{path}: imports {found}, which is not there"
            if found != own:  # a .pyx imports from its own .pxd
                graph[own].add(found)
    return graph


def floor_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def upward_imports(graph: dict[str, set[str]]) -> list[str]:
    """Imports from a higher floor, and of the package itself, which stands above all."""
    place = {floor: i for i, floor in enumerate(FLOORS)}
    return [
        f"{module} -> {other}"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if floor_of(module) not in LAZY
        and (not floor_of(other) or place[floor_of(other)] < place[floor_of(module)])
    ]


def circle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph(ROOT)


def test_every_folder_and_module_has_a_floor(graph):
    found = {floor_of(module) for module in graph} - LAZY - {"configs"}
    assert found == set(FLOORS)


def test_no_import_runs_up(graph):
    assert upward_imports(graph) == []


def test_no_circle_of_imports(graph):
    assert circle({module: others for module, others in graph.items() if floor_of(module)}) == []


def write(root: Path, files: dict[str, str]) -> dict[str, set[str]]:
    for name, text in files.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return import_graph(root)


def test_an_import_that_runs_up_is_found(tmp_path):
    files = {
        "errors.py": "",
        "trees/validity.py": "def f():\n    from tk_spacy.pipeline import x\n",
        "pipeline/x.py": "from tk_spacy.errors import UserError\n",
    }
    assert upward_imports(write(tmp_path, {**files, "pipeline/__init__.py": ""})) == [
        "tk_spacy.trees.validity -> tk_spacy.pipeline.x"
    ]


def test_a_circle_of_cimports_is_found(tmp_path):
    graph = write(
        tmp_path,
        {
            "kernels/a.pxd": "from tk_spacy.kernels.b cimport (\n    two,  # (c)\n    three,\n)\n",
            "kernels/b.pyx": "from tk_spacy.kernels.a cimport one\n",
            "kernels/c.py": "if True:\n    from tk_spacy.kernels.a import one\n",
        },
    )
    assert set(circle(graph)) == {"tk_spacy.kernels.a", "tk_spacy.kernels.b"}
    assert graph["tk_spacy.kernels.c"] == {"tk_spacy.kernels.a"}
