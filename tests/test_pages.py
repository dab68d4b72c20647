"""Pages: what they hold, that all text is escaped, and that they are the same every time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tk_spacy.errors import OptionError, UserError
from tk_spacy.evaluation.confusions import Confusions, confusions_table, relations_table
from tk_spacy.pages import charts
from tk_spacy.pages.content import Charts, Folded, Section, TableBlock, Words, report_page
from tk_spacy.pages.rendering import check_page, render, write_page
from tk_spacy.pages.trees import compared, cut_out
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.short_names import short_names, shortened
from tk_spacy.utils.tables import Column, Table

EVIL = "<script>alert('x')</script>&\"{{ 1 }}"


def sentence(heads: list[int], deprels: list[str], forms: list[str] | None = None) -> Sentence:
    n = len(heads)
    forms = forms or [f"w{i}" for i in range(1, n + 1)]
    return Sentence(
        forms=tuple(forms), lemmas=("_",) * n, upos=("X",) * n, xpos=("_",) * n,
        feats=("_",) * n, deps=("_",) * n, misc=("_",) * n, heads=np.array(heads, dtype=np.int32),
        deprels=tuple(deprels),
    )  # fmt: skip


@pytest.fixture
def gold() -> list[Sentence]:
    return [
        sentence([2, 0, 2, 2], ["nsubj", "root", "obj", "obl"]),
        sentence([2, 0, 2], ["nsubj", "root", "obj"]),
    ]


@pytest.fixture
def before() -> list[Sentence]:
    return [
        sentence([2, 0, 2, 3], ["obj", "root", "obj", "nmod"]),  # a label and an arc are wrong
        sentence([2, 0, 2], ["obj", "root", "nsubj"]),  # two labels
    ]


@pytest.fixture
def after() -> list[Sentence]:
    return [
        sentence([2, 0, 2, 2], ["nsubj", "root", "obj", "nmod"]),
        sentence([2, 0, 2], ["nsubj", "root", "nsubj"]),
    ]


def test_confusions_are_counted_with_their_sentences(gold, before, after) -> None:
    made = Confusions.of(gold, [before, after])
    found = {(of.gold, of.given): of for of in made.confusions()}
    assert {pair: of.counts for pair, of in found.items()} == {
        ("nsubj", "obj"): (2, 0),
        ("obl", "nmod"): (1, 1),
        ("obj", "nsubj"): (1, 1),
    }
    assert made.kinds() == 3
    subject = found["nsubj", "obj"]
    assert subject.sentences == 2
    # The shortest first, with both trees and the words that are meant.
    assert [(of.number, of.words) for of in subject.examples] == [(2, (1,)), (1, (1,))]
    assert subject.examples[0].systems == (before[1], after[1])
    # The most frequent in all systems first, and equal ones by their names.
    assert [(of.gold, of.given) for of in made.confusions(2)] == [
        ("nsubj", "obj"), ("obj", "nsubj"),
    ]  # fmt: skip


def test_confusions_keep_the_shortest_sentences_and_count_all(gold, before) -> None:
    made = Confusions.of(gold * 4, [before * 4], examples=2)
    of = made.confusions(1)[0]
    assert (of.sentences, of.counts) == (8, (8,))
    assert [example.number for example in of.examples] == [2, 4]


def test_confusions_show_the_first_and_the_last_of_several_systems(gold, before, after) -> None:
    made = Confusions.of(gold, [before, gold, after])
    for of in made.confusions():
        for example in of.examples:
            assert len(example.systems) == 2
            assert len(of.counts) == 3


def test_relations_have_precision_recall_and_f1(gold, before) -> None:
    scores = Confusions.of(gold, [before]).relations()
    # obj: 2 in gold, 3 given, 1 right; obl: its only word has another label.
    assert (scores["obj"][0].gold, scores["obj"][0].given, scores["obj"][0].right) == (2, 3, 1)
    assert scores["obj"][0].precision == pytest.approx(100 / 3)
    assert scores["obj"][0].recall == 50
    assert scores["obj"][0].f1 == 40
    assert scores["obl"][0].f1 == scores["obl"][0].precision == 0
    assert scores["root"][0].f1 == 100
    assert list(scores) == ["nsubj", "obj", "obl", "root"]  # by errors, then by name


def test_a_relation_is_right_with_its_head_alone() -> None:
    gold = [sentence([2, 0, 2], ["nsubj", "root", "obj"])]
    other = [sentence([2, 0, 1], ["nsubj", "root", "obj"])]
    assert Confusions.of(gold, [other]).relations()["obj"][0].right == 0


def test_tables_of_relations_and_confusions(gold, before, after) -> None:
    made = Confusions.of(gold, [before, after])
    table = relations_table(made.relations(), ["a", "b"])
    (row,) = [row for row in table.shown() if row[0] == "obj"]
    assert row == ["obj", "2", "33.3", "100.0", "50.0", "50.0", "40.0", "66.7", "+26.7"]
    table = confusions_table(made.confusions(1), ["a", "b"], kinds=made.kinds())
    assert table.shown() == [["nsubj", "obj", "2", "0", "-2", "2"]]
    assert "1 of 3 kinds" in table.notes[-1]
    one = confusions_table(Confusions.of(gold, [after]).confusions(), ["a"], kinds=2)
    assert [column.heading for column in one.columns] == ["gold", "given", "words", "sentences"]


def test_trees_stand_side_by_side_with_marks_beside_colours(gold, before, after) -> None:
    block = compared("t", gold[0], [before[0], after[0]], ["gold", "a", "b"], name="n", marked=[4])
    assert [tree.title for tree in block.trees] == ["gold", "a", "b"]
    assert len({tree.width for tree in block.trees}) == 1
    assert not block.whole  # such a short sentence is drawn whole at once
    of_gold, of_a, of_b = (tree.svg for tree in block.trees)
    assert of_gold.count("tk-differs") == 4  # two words and their arcs
    assert "\u2717" not in of_gold
    assert "\u2713" not in of_gold
    # Gold is right: its arcs have none of the colours of what is right or wrong in the others.
    assert "tk-wrong" not in of_gold
    assert "tk-right" not in of_gold
    assert of_a.count("tk-wrong") == 4
    assert "\u2717 nmod" in of_a
    assert "\u2713 nsubj" in of_b
    assert "\u2717 nmod" in of_b
    assert [(row.number, row.form) for row in block.rows] == [(1, "w1"), (4, "w4")]
    assert [(arc.mark, arc.deprel, arc.head) for arc in block.rows[1].arcs] == [
        ("", "obl", "2 w2"), ("\u2717 ", "nmod", "3 w3"), ("\u2717 ", "nmod", "2 w2"),
    ]  # fmt: skip
    assert [(word.form, word.told) for word in block.words if word.mark] == [
        ("w4", "word in question")
    ]
    for svg in (of_gold, of_a, of_b):  # a box around the word in question alone
        assert svg.count("<rect") == svg.count('<rect class="tk-asked"') == 1
    assert not compared("t", gold[0], [before[0]], ["gold", "a"]).trees


def test_a_word_without_head_is_drawn_without_arc() -> None:
    gold = sentence([2, 0], ["nsubj", "root"])
    blank = sentence([-1, 0], ["_", "root"])
    block = compared("t", gold, [blank], ["gold", "a"], name="n")
    assert "displacy-arrow" not in block.trees[1].svg
    assert block.rows[0].arcs[1].head == "no word"


def wide(words: int = 30) -> Sentence:
    """A chain: each word hangs on the one before it."""
    return sentence(list(range(words)), ["root", *["dep"] * (words - 1)])


def words_of(svg: str) -> list[str]:
    return re.findall(r'class="displacy-word"[^>]*>([^<]+)<', svg)


def test_of_a_wide_tree_the_part_in_question_is_drawn_and_the_whole_folded_below() -> None:
    gold = wide()
    heads = gold.heads.copy()
    heads[19] = 5
    block = compared("t", gold, [gold.with_tree(heads, gold.deprels)], ["gold", "a"], name="n")
    # Word 20 and the words beside it, and its head in each tree (19, and 5).
    part = ["…", "w5", "…", "w19", "w20", "w21", "…"]
    assert [words_of(tree.svg) for tree in block.trees] == [part, part]
    assert [tree.told for tree in block.trees] == ["gold, 4 of 30 words", "a, 4 of 30 words"]
    assert re.findall(r">(\d+ words)<", block.trees[0].svg) == ["4 words", "13 words", "9 words"]
    assert [words_of(tree.svg) for tree in block.whole] == [list(gold.forms)] * 2
    assert max(tree.width for tree in block.trees) < 450 < min(tree.width for tree in block.whole)
    # Words stand in the same places of both, and a narrow screen begins with those in question.
    places = [re.findall(r'class="displacy-word"[^>]* x="([^"]+)"', t.svg) for t in block.trees]
    assert places[0] == places[1]
    start, extent = block.whole[1].aim
    middles = re.findall(r'class="displacy-word"[^>]* x="([^"]+)"', block.whole[1].svg)
    assert float(middles[3]) < start < float(middles[4])  # from w5 to w20
    assert float(middles[19]) < start + extent < float(middles[20])
    # Each word that is shown has its arc; those from words that are left out are open.
    of_gold, of_a = (tree.svg for tree in block.trees)
    assert of_gold.count('<g class="displacy-arrow') == of_a.count('<g class="displacy-arrow') == 4
    assert of_gold.count("tk-open") == of_a.count("tk-open") == 2  # into w5 and w19
    assert of_a.count("tk-wrong") == 2
    text = report_page("t", [], [Section("s", [block])])
    assert text.index("<svg") < text.index("<summary>The whole trees</summary>")
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))


def test_the_words_that_are_asked_about_decide_what_is_drawn() -> None:
    gold = wide()
    other = gold.with_tree(gold.heads, ["x"] * 30)
    block = compared("t", gold, [other], ["gold", "a"], name="n", marked=[10], beside=[28])
    drawn = words_of(block.trees[0].svg)
    assert drawn == ["…", "w9", "w10", "w11", "…", "w27", "w28", "w29", "w30"]
    svg = block.trees[0].svg
    assert svg.count('class="tk-asked"') == svg.count('class="tk-beside"') == 1
    assert svg.index('class="tk-asked"') < svg.index(">w10<") < svg.index('class="tk-beside"')
    marks = {word.form: word.told for word in block.words if word.mark}
    assert marks == {"w10": "word in question", "w28": "belongs to it"}
    text = report_page("t", [], [Section("s", [block])])
    assert '<mark class="asked">w10<span class="unseen"> (word in question)</span></mark>' in text
    assert '<mark class="belongs">w28<span class="unseen"> (belongs to it)</span></mark>' in text


def test_what_of_a_sentence_is_drawn() -> None:
    # A single word that would be left out is drawn, since the sign for it is as wide.
    assert cut_out(30, [3, 9], [[0, 6, 6, *range(3, 30)]]) == {2, 3, 4, 6, 8, 9, 10} | {1, 5, 7}
    assert cut_out(30, [3], [[0, 7, 7, *range(3, 30)]]) == {1, 2, 3, 4, 7}
    assert cut_out(30, [1], [[0, *range(1, 30)]]) == {1, 2}
    assert cut_out(30, [30], [[-1] * 30]) == {29, 30}
    assert cut_out(13, [1], [[0] + [1] * 12]) == {1, 2}
    assert cut_out(12, [1], [[0] + [1] * 11]) is None  # short ones are drawn whole
    assert cut_out(30, range(1, 31), [list(range(30))]) is None
    assert cut_out(16, [2, 5, 8, 11], [list(range(16))]) == set(range(1, 13))  # three quarters
    assert cut_out(15, [2, 5, 8, 11], [list(range(15))]) is None
    assert cut_out(30, [], [list(range(30))]) is None


def test_of_very_long_sentences_the_part_alone_is_drawn() -> None:
    gold = wide(61)
    other = gold.with_tree(gold.heads, ["root", "x", *["dep"] * 59])
    block = compared("t", gold, [other], ["gold", "a"], name="n")
    assert words_of(block.trees[0].svg) == ["w1", "w2", "w3", "…"]
    assert not block.whole
    assert not block.drawn_whole
    assert compared("t", gold.with_tree(gold.heads, ["y"] * 61), [gold], ["g", "a"]).trees == []
    assert compared("t", wide(60), [], ["g"], name="n", marked=[2]).drawn_whole
    small = compared("t", wide(60), [], ["g"], name="n", marked=[2], whole=False)
    assert small.trees
    assert not small.drawn_whole


def test_doubted_arcs_are_not_called_wrong() -> None:
    gold = sentence([2, 0], ["nsubj", "root"])
    other = sentence([2, 0], ["obj", "root"])
    block = compared("t", gold, [other], ["a", "b"], name="n", doubted=True)
    assert block.trees[1].svg.count("tk-doubted") == 2
    assert "? obj" in block.trees[1].svg
    arc = block.rows[0].arcs[1]
    assert (arc.verdict, arc.mark) == ("doubted", "? ")
    assert "tk-wrong" not in block.trees[1].svg


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/home/me/a.conllu", "b/c.conllu"], ["a.conllu", "c.conllu"]),
        (["/home/me/x/dev.conllu", "y/dev.conllu"], ["x/dev.conllu", "y/dev.conllu"]),
        (
            ["/d/x/z/dev.conllu", "/d/y/z/dev.conllu", "o"],
            ["x/z/dev.conllu", "y/z/dev.conllu", "o"],
        ),
        (["a.conllu", "/home/me/a.conllu"], ["a.conllu", "me/a.conllu"]),
        (["/home/me/a.conllu", "/home/me/a.conllu"], ["a.conllu", "a.conllu"]),
        (["standard input", "."], ["standard input", "."]),
    ],
)
def test_files_have_short_names_that_tell_them_apart(paths: list[str], names: list[str]) -> None:
    assert short_names(paths) == names


def test_paths_in_texts_are_shortened() -> None:
    names = {"/home/me/a": "a", "/home/me/a.conllu": "a.conllu"}
    assert shortened("/home/me/a.conllu:7 is not /home/me/a", names) == "a.conllu:7 is not a"


def evil_page() -> str:
    bad = sentence([2, 0], [EVIL, EVIL], [EVIL, "\u05e9\u05dc\x00\x1b\ud800"])
    table = Table(
        title=EVIL, columns=(Column(EVIL, "a", align="left"),), rows=((EVIL,),), notes=(EVIL,)
    )
    other = sentence([0, 1], ["root", EVIL], list(bad.forms))
    example = compared(EVIL, bad, [other], [EVIL, EVIL], name="n", marked=[1])
    blocks = [Words(EVIL), TableBlock(table), Folded(EVIL, [example], name="f")]
    return report_page(EVIL, [EVIL], [Section(EVIL, blocks), Section("empty")])


def test_pages_escape_all_text() -> None:
    text = evil_page()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "{{ 1 }}" in text
    assert "empty" not in text
    # What HTML cannot hold shows as a picture, or as the sign for what cannot be shown.
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", text)
    assert "\u05e9\u05dc\u2400\u241b\ufffd" in text
    text.encode("utf-8")


def test_pages_need_nothing_else_and_name_each_part_once() -> None:
    text = evil_page()
    assert not re.search(r"<script|<link|<img|url\((?!#)|src=|@import", text)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    for name in re.findall(r' href="#([^"]+)"', text):
        assert name in identifiers


def test_right_to_left_sentences_have_their_direction() -> None:
    forms = ["\u05e9\u05dc\u05d5\u05dd", "\u05e2\u05d5\u05dc\u05dd"]
    block = compared("t", sentence([2, 0], ["a", "root"], forms), [], ["gold"], name="n")
    text = report_page("t", [], [Section("s", [block])])
    assert '<p dir="auto">' in text
    assert "direction: rtl" in block.trees[0].svg


def some_chart(name: str = "c") -> charts.Chart:
    pytest.importorskip("matplotlib")
    series = {EVIL + " $x_1$": [(0.0, 90.0), (1.0, 80.0)], "_b\u05e9": [(0.0, 91.0), (1.0, 82.0)]}
    return charts.lines_chart(
        name, EVIL, series, x="distance", y="LAS, %", ticks=["1", "2 <"], diagonal=True
    )


def test_charts_are_told_in_words_and_in_the_colours_of_the_page() -> None:
    svg = some_chart().svg
    assert 'role="img" aria-labelledby="c-title c-desc"' in svg
    assert "91 at 1 to 82 at 2 &lt;" in svg
    assert "var(--series-0)" in svg
    assert "var(--series-1)" in svg
    assert "currentColor" in svg
    assert not re.search(r"#[0-9a-f]{6}\b|<style|<metadata|font-family|<script", svg)
    assert "distance</text>" in svg  # as text, not as the outlines of letters
    identifiers = re.findall(r' id="([^"]+)"', svg)
    assert len(identifiers) == len(set(identifiers))
    assert all(name.startswith("c-") for name in identifiers)
    for name in re.findall(r'(?:url\(|href=")#([^")]+)', svg):
        assert name in identifiers


def test_charts_are_the_same_every_time() -> None:
    assert some_chart() == some_chart()
    # With other names in it, so that two charts can stand in one page.
    assert str(some_chart("other").svg) == re.sub(r'(["#( ])c-', r"\1other-", str(some_chart().svg))


def test_names_of_lines_keep_their_ends() -> None:
    pytest.importorskip("matplotlib")
    made = charts.lines_chart("n", "t", {"/x" * 40 + "/a": [(0, 1)], "b": [(0, 1)]}, x="x", y="y")
    assert f"...{('/x' * 40 + '/a')[-37:]}</text>" in made.svg


def test_a_chart_has_whole_epochs() -> None:
    pytest.importorskip("matplotlib")
    made = charts.lines_chart("n", "t", {"a": [(1, 2.5), (2, 2.0), (3, 0)]}, x="epoch", y="loss")
    for epoch in (1, 2, 3):
        assert re.search(rf">{epoch}</text>", made.svg)
    assert "1.5</text>" not in made.svg.partition("epoch</text>")[0]


def test_a_chart_of_rows() -> None:
    pytest.importorskip("matplotlib")
    made = charts.dots_chart("d", "t", {"a": [1.0, 2.0]}, ["nsubj", "o$bj_"], x="F1")
    assert "o$bj_</text>" in made.svg
    assert "2 at o$bj_" in made.description


def test_charts_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not charts.can_draw()
    with pytest.raises(OptionError, match=r"pip install 'tk-spacy\[report\]'"):
        charts.check_charts()


def test_where_a_page_may_be_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_page(page, overwrite=False)
    write_page(page, "one")
    with pytest.raises(OptionError, match="is there already"):
        check_page(page, overwrite=False)
    check_page(page, overwrite=True)
    with pytest.raises(OptionError, match="cannot be the page too"):
        check_page(page, overwrite=True, inputs=[tmp_path / "." / "page.html"])
    for place in (tmp_path / "no" / "page.html", tmp_path):
        with pytest.raises(UserError, match="cannot write"):
            write_page(place, "two")
    assert page.read_text(encoding="utf-8") == "one"
    assert list(tmp_path.iterdir()) == [page]


def test_a_template_that_lacks_a_value_says_so() -> None:
    with pytest.raises(Exception, match="'lead' is undefined"):
        render("report.html", title="t", sections=[], generator="g")


def test_charts_stand_in_a_page() -> None:
    text = report_page("t", [], [Section("s", [Charts([some_chart()])])])
    assert "<figcaption>&lt;script" in text
    assert "<script" not in text
