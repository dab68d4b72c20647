# ruff: noqa: T201  (a script: what it prints is its result)
"""The tests of every compiled module, found by what imports what.

Of each ``.pyx`` these are the test files from which it is reached by the fewest imports: those that
import it, or else those of the modules that do, and so on.  ``cimport`` counts as ``import``.
With ``--modules`` a line a module, else the test files, one a line.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tk_spacy"
_CYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(tk_spacy[\w.]*)[ \t]+c?import[ \t]+([\w, \t]+|\([^)]*\))"
    r"|c?import[ \t]+(tk_spacy[\w.]*))",
    re.M,
)


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a file imports; of ``from a import b`` both a.b and a."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".pyx", ".pxd"):
        for base, names, whole in _CYTHON.findall(text):
            yield from _both(base or whole, re.findall(r"\w+", names))
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _both(node.module, [alias.name for alias in node.names])


def _both(base: str, names: list[str]) -> Iterator[str]:
    yield base
    yield from (f"{base}.{name}" for name in names)


def graph() -> tuple[dict[str, set[str]], list[str]]:
    """Who imports a module, by its name, and the names of the compiled ones.

    Test files and what they share are modules of their bare names.
    """
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(ROOT.glob(f"{PACKAGE}/**/*.py*")):
        if path.suffix in (".py", ".pyx", ".pxd"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)].append(path)
    for path in sorted(ROOT.glob("tests/*.py")):
        files[path.stem].append(path)
    importers: dict[str, set[str]] = defaultdict(set)
    for name, paths in files.items():
        for path in paths:
            for found in imports(path):
                if found in files and found != name:
                    importers[found].add(name)
    compiled = [name for name, paths in files.items() if any(p.suffix == ".pyx" for p in paths)]
    return importers, compiled


def nearest_tests(module: str, importers: dict[str, set[str]]) -> list[str]:
    """The test files from which a module is reached by the fewest imports."""
    level, seen = {module}, {module}
    while level:
        level = {above for name in level for above in importers[name]} - seen
        seen |= level
        if tests := sorted(name for name in level if name.startswith("test_")):
            return tests
    return []


def main() -> int:
    """Print them; 1 where a compiled module has none."""
    importers, compiled = graph()
    tests = {module: nearest_tests(module, importers) for module in compiled}
    if "--modules" in sys.argv[1:]:
        for module, found in tests.items():
            print(f"{module}: {' '.join(found)}")
    else:
        print(
            *(f"tests/{name}.py" for name in sorted(set(chain.from_iterable(tests.values())))),
            sep="\n",
        )
    bare = [module for module, found in tests.items() if not found]
    for module in bare:
        print(f"no test imports {module}, or what imports it", file=sys.stderr)
    return 1 if bare else 0


if __name__ == "__main__":
    sys.exit(main())
