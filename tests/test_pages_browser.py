"""Pages as a browser shows them: on a telephone and a wide screen, light and dark, by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from chromium import PHONE, WIDE, Browser, browser
from test_cli import invoke
from test_evaluation_page import sure
from trainings import list_files, lists_training, treebank

from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.model import REPORT_HTML

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    before, after = folder / "a-file-with-a-rather-long-name-before.conllu", folder / "after.conllu"
    sentences = load_treebank(list_files()["test"])
    write_conllu(before, sentences)
    gold = load_treebank(treebank()["test"])
    write_conllu(after, sure([*gold[:5], *sentences[5:]]))
    page = folder / "page.html"
    result = invoke("evaluate", treebank()["test"], before, after, "--html", page)
    assert result.exit_code == 0, result.output
    return {"evaluate": page, "train": lists_training()[0] / REPORT_HTML}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "wide"])
@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_a_page_fits_the_screen(
    tab: Browser,
    pages: dict[str, Path],
    tmp_path: Path,
    name: str,
    size: tuple[int, int],
    dark: bool,
) -> None:
    tab.show(pages[name], size, dark=dark)
    tab.ask("document.querySelectorAll('details').forEach(item => item.open = true)")
    assert tab.ask("innerWidth") == size[0]
    # Wide tables and trees scroll in their own boxes, and nothing else goes beyond the screen.
    assert tab.ask("document.documentElement.scrollWidth") <= size[0]
    beyond = tab.ask(
        "[...document.querySelectorAll('h1,h2,h3,p,summary,figure,figcaption,nav,.scroll')]"
        ".filter(item => item.getBoundingClientRect().right > innerWidth + 1)"
        ".map(item => item.outerHTML.slice(0, 80))"
    )
    assert beyond == []
    colours = tab.ask("[getComputedStyle(document.body).color, "
                      "getComputedStyle(document.body).backgroundColor]")  # fmt: skip
    text, back = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert (text > back) == dark
    assert abs(text - back) > 500
    # Charts have the page's colours.
    drawn = tab.ask("getComputedStyle(document.querySelector('.charts text')).fill")
    assert drawn == colours[0]
    tab.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5_000
    if name == "evaluate":
        # Gold arcs that differ are not of the colour of wrong ones, nor of other words.
        gold, wrong = (
            tab.ask(f"getComputedStyle(document.querySelector({path!r})).stroke")
            for path in (
                "figure:first-child .tk-differs .displacy-arc",
                ".tk-wrong .displacy-arc",
            )
        )
        assert len({gold, wrong, colours[0]}) == 3


def test_a_page_is_used_by_keyboard(tab: Browser, pages: dict[str, Path]) -> None:
    tab.show(pages["evaluate"], WIDE)
    tab.press("Tab")
    assert tab.ask("document.activeElement.className") == "skip"
    assert tab.ask("document.activeElement.getBoundingClientRect().left") >= 0
    assert tab.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.ask("document.querySelector('summary').focus()")
    assert not tab.ask("document.querySelector('details').open")
    tab.press("Enter")
    assert tab.ask("document.querySelector('details').open")
    tab.press("Tab")
    # Boxes that scroll can be reached, and have a name.
    assert tab.ask("document.activeElement.className") == "scroll"
    assert tab.ask("document.activeElement.getAttribute('aria-label')")


def test_parts_of_a_page_have_names(tab: Browser, pages: dict[str, Path]) -> None:
    tab.show(pages["evaluate"], WIDE)
    for wrong in (
        "table:not(:has(caption))",
        "th:not([scope])",
        ".charts svg:not([role=img][aria-labelledby])",
        ".scroll:not([tabindex][aria-label])",
        "html:not([lang])",
    ):
        assert tab.ask(f"document.querySelectorAll({wrong!r}).length") == 0, wrong
    levels = tab.ask("[...document.querySelectorAll('h1,h2,h3')].map(item => +item.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
