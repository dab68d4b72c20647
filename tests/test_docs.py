"""The documentation says what is there: commands as the program has them, links, rooms, pages."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```", re.S | re.M)


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_commands", DOCS / "make_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_docs_commands_are_those_of_the_program() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    assert page == maker().commands_page(), "run: python docs/make_commands.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    targets = [target for target, _ in LINK.findall(text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_docs_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r": (\S+\.md)$", (ROOT / ".mkdocs.yml").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(path.name for path in DOCS.glob("*.md"))


def test_docs_rooms_are_those_of_the_package() -> None:
    text = (DOCS / "rooms.md").read_text("utf-8")
    rooms = {path.parent.name for path in (ROOT / "tk_spacy").rglob("__init__.py")} - {"tk_spacy"}
    assert {room for room in rooms if not re.search(rf"\b{room}/", text)} == set()


def test_readme_is_short_and_its_first_screen_in_order() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= 150
    text = "\n".join(lines)
    order = ["**In** goes", "**Out** comes", "$ tk-spacy ", "**predicted tags**", "docs/results.md"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.slow
def test_docs_are_built(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ROOT / ".mkdocs.yml"]
    built = subprocess.run(
        [*command, "-d", tmp_path / "site"], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "commands" / "index.html").exists()
