"""`tk-spacy explain`: on the terminal, as JSON and as a page; and what a model keeps for it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_cli import invoke
from trainings import list_files, lists_training, options, treebank
from typer.testing import CliRunner

from tk_spacy.cli.app import app
from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.kbest.reader import read_kbest
from tk_spacy.kbest.writer import write_kbest
from tk_spacy.reranker.model import Reranker
from tk_spacy.spacy_io.tree_drawing import draw_tree, is_right_to_left
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.explain import ExplainedSentence, explain
from tk_spacy.workflows.explanation_page import page
from tk_spacy.workflows.info import info
from tk_spacy.workflows.train.pipeline import train_pipeline


def model() -> Path:
    return lists_training()[0]


def lists() -> Path:
    return list_files()["test"]


def told(*arguments: object):
    return invoke("explain", model(), *arguments, "--threads", 1)


def sent_id(number: int = 0) -> str:
    found = load_treebank(treebank()["test"])[number].sent_id
    assert found is not None
    return found


def test_cli_explain_tells_scores_arcs_and_examples() -> None:
    result = told(lists(), "--sent-id", sent_id(3))
    assert result.exit_code == 0, result.output
    for text in ("What the scores are made of", "final score", "runner-up", "kernel", "Word "):
        assert text in result.stdout
    assert re.search(r"- [+-]\d+\.\d+ = weight [+-]\d+\.\d+ \* kernel \d+ \(\d+ \* ", result.stdout)
    assert "shared h: " in result.stdout


def test_cli_explain_says_that_a_sent_id_is_not_the_only_one(tmp_path: Path) -> None:
    twice = tmp_path / "twice.kbest.conllu"
    twice.write_bytes(lists().read_bytes() * 2)
    once, found = told(lists(), "--sent-id", sent_id(3)), told(twice, "--sent-id", sent_id(3))
    assert (once.exit_code, found.exit_code) == (0, 0), found.output
    says = f"2 sentences have the sent_id '{sent_id(3)}'; sentence 4 is taken"
    assert says in " ".join(found.stderr.split())
    assert "is taken" not in once.stderr


def test_cli_explain_takes_a_tree_from_standard_input_with_the_sentence_alone() -> None:
    found = told(lists(), "--sent-id", sent_id(3), "--tree", "-")
    assert found.exit_code == 1
    assert "--tree -: standard input is read as FILE alone" in " ".join(found.stderr.split())


def test_cli_explain_tells_what_is_ill_formed() -> None:
    model = Reranker.from_disk(lists_training()[0])
    seen = 0
    for sentence, trees in read_kbest(lists(), inventory=LabelInventory()):
        made = model.explain(sentence, trees, well_formed=True, n_threads=1)
        other = next(
            (tree for tree in model.explain(sentence, trees, n_threads=1).trees if tree.violations),
            None,
        )
        if other is None or seen:
            continue
        seen += 1
        result = told(lists(), "--sent-id", sentence.sent_id, "--well-formed", "--json")
        assert json.loads(result.stdout)["trees"] == made.to_dict()["trees"]
        plain = told(lists(), "--sent-id", sentence.sent_id)
        words = ", ".join(f"{n} {kind}" for kind, n in other.violations.items())
        text = " ".join(plain.stdout.split())
        assert f"The {other.role} breaks constraints of well-formed trees: {words}." in text
        assert "penalties" in text
        explained = ExplainedSentence(
            model.explain(sentence, trees, n_threads=1), "m", "f", None, None
        )
        assert f"; breaks {words}" in page(explained)
    assert seen


def test_cli_explain_json_sums_to_the_scores() -> None:
    result = told(lists(), "--sent-id", sent_id(3), "--json", "--examples", 2)
    document = json.loads(result.stdout)
    assert document["sent_id"] == sent_id(3)
    assert document["has_examples"]
    assert [tree["role"] for tree in document["trees"]] == ["winner", "runner-up"]
    for tree in document["trees"]:
        values = [v for part in tree["by_arc"].values() for v in part]
        values += tree["by_tree"].values()
        assert math.fsum(values) == pytest.approx(tree["score"], rel=1e-9, abs=1e-9)
    assert document["trees"][0]["score"] >= document["trees"][1]["score"]
    train = {s.sent_id: s.forms for s in load_treebank(treebank()["train"])}
    sources = [i["source"] for a in document["arcs"] for own in a["influences"] for i in own]
    assert sources
    for source in sources:
        assert tuple(source["forms"]) == train[source["sent_id"]]
        assert set(source["words"]) == {"h", "m"}
    assert all(len(own) <= 2 for arc in document["arcs"] for own in arc["influences"])


def test_cli_explain_compares_with_a_tree_of_the_user(tmp_path: Path) -> None:
    sentence, trees = next(iter(read_kbest(lists(), inventory=LabelInventory())))
    # One that nobody proposed: all words hang on the root's.
    root = sentence.heads.tolist().index(0) + 1
    heads = [0 if m == root else root for m in range(1, len(sentence) + 1)]
    flat = sentence.with_tree(heads, ["root" if m == 0 else "dep" for m in heads])
    write_conllu(tmp_path / "flat.conllu", [flat])
    arguments = "--sent-id", sentence.sent_id, "--tree", tmp_path / "flat.conllu", "--json"
    result = told(lists(), *arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["n_candidates"] == len(trees) + 1
    assert document["trees"][1]["role"] == "given"
    assert document["trees"][1]["heads"] == heads
    assert document["trees"][1]["score"] < document["trees"][0]["score"]
    assert "no parser's score of it is known" in " ".join(result.stderr.split())
    # One of the list is compared as it is.
    last = sentence.with_tree(trees.heads[-1], trees.deprels(len(trees) - 1))
    write_conllu(tmp_path / "last.conllu", [last])
    told_of = explain(model(), lists(), sent_id=sentence.sent_id, tree=tmp_path / "last.conllu")
    assert told_of.explanation.n_candidates == len(trees)
    assert any(list(tree.heads) == last.heads.tolist() for tree in told_of.explanation.trees)


def test_cli_explain_names_the_sentence_and_a_given_tree_that_wins(tmp_path: Path) -> None:
    result = told(lists(), "--sent-id", sent_id(3))
    assert result.stdout.startswith(f"Why this tree? {sent_id(3)}\n")
    document = json.loads(told(lists(), "--sent-id", sent_id(3), "--json").stdout)
    assert (document["sentence"], document["given_wins"]) == (4, False)
    sentence = load_treebank(treebank()["test"])[3]
    winner = document["trees"][0]
    tree = sentence.with_tree(winner["heads"], winner["deprels"])
    write_conllu(tmp_path / "tree.conllu", [tree])
    arguments = "--sent-id", sent_id(3), "--tree", tmp_path / "tree.conllu"
    words = "The given tree is the winner; compared with the runner-up."
    page_file = tmp_path / "page.html"
    text = " ".join(told(lists(), *arguments, "--html", page_file).stdout.split())
    assert words in text
    assert words in page_file.read_text(encoding="utf-8")
    assert words not in " ".join(result.stdout.split())
    given = json.loads(told(lists(), *arguments, "--json").stdout)
    assert given["given_wins"]
    assert [tree["role"] for tree in given["trees"]] == ["winner", "runner-up"]


def test_cli_explain_names_a_sentence_without_sent_id_by_its_number(tmp_path: Path) -> None:
    sentence, trees = next(iter(read_kbest(lists(), inventory=LabelInventory())))
    write_kbest(tmp_path / "one.conllu", [(sentence, trees)])
    path = tmp_path / "one.conllu"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "sent_id" not in line), encoding="utf-8")
    result = told(path, "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Why this tree? sentence 1 of one.conllu\n")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>Why this tree? sentence 1 of one.conllu</h1>" in html


def test_cli_explain_reads_standard_input(tmp_path: Path) -> None:
    pair = next(iter(read_kbest(lists(), inventory=LabelInventory())))
    write_kbest(tmp_path / "one.conllu", [pair])
    text = (tmp_path / "one.conllu").read_text(encoding="utf-8")
    result = CliRunner().invoke(app, ["explain", str(model()), "-", "--json"], input=text)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["file"] == "standard input"
    assert document["forms"] == list(pair[0].forms)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--sent-id", "nobody"], 1, "none of its 30 sentences has the sent_id 'nobody'"),
        ([], 1, "has more than one sentence; say which one to explain (--sent-id)"),
        (["--sent-id", "S", "--tree", "other.conllu"], 1, "other words than the sentence in"),
        (["--sent-id", "S", "--html", "there.html"], 2, "there.html: is there already"),
        (["--sent-id", "S", "--html", "no/such/place.html"], 2, "its folder is not there"),
        (["--sent-id", "S", "--tags", "silver"], 2, "silver"),
    ],
)
def test_cli_explain_refuses_in_one_line(tmp_path, monkeypatch, arguments, code, text) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.html").write_text("mine", encoding="utf-8")
    other = load_treebank(treebank()["test"])[1]
    write_conllu("other.conllu", [replace(other, comments=(f"# sent_id = {sent_id()}",))])
    given = [sent_id() if argument == "S" else argument for argument in arguments]
    result = told(lists(), *given)
    assert result.exit_code == code, result.output
    assert text in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert Path("there.html").read_text(encoding="utf-8") == "mine"


def test_cli_explain_needs_a_parser_for_plain_conllu() -> None:
    result = told(treebank()["test"], "--sent-id", sent_id())
    assert result.exit_code == 1
    assert "the model has no parser of its own" in " ".join(result.stderr.split())


def test_cli_explain_writes_a_page_of_its_own(tmp_path: Path) -> None:
    result = told(lists(), "--sent-id", sent_id(3), "--html", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    # Of a long sentence a part, and below it the whole trees.
    assert text.count("<svg") == text.count("</svg>") == 4
    assert "<summary>The whole trees</summary>" in text
    assert "displacy-arrow tk-differs" in text or "displacy-token tk-differs" in text
    assert '<mark class="h">' in text
    assert '<mark class="m">' in text
    assert "prefers-color-scheme: dark" in text
    # Nothing is loaded from elsewhere.
    assert not re.search(r"<script|<link|<img|url\(|src=", text)
    assert set(re.findall(r"https?://[^\"]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    again = told(lists(), "--sent-id", sent_id(3), "--html", tmp_path / "page.html", "--overwrite")
    assert again.exit_code == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text


EVIL = "<script>alert('x')</script>&{0}"


def test_a_page_escapes_all_text() -> None:
    made = explain(model(), lists(), sent_id=sent_id(3), n_threads=1)
    whole = made.explanation
    trees = tuple(replace(tree, deprels=(EVIL,) * len(tree.deprels)) for tree in whole.trees)
    evil = ExplainedSentence(
        explanation=replace(
            whole,
            sent_id=EVIL,
            forms=(EVIL,) * len(whole.forms),
            upos=(EVIL,) * len(whole.upos),
            trees=trees,
        ),
        model=EVIL,
        file=EVIL,
        treebank=EVIL,
        licence=EVIL,
    )
    text = page(evil)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 4 * len(whole.forms)


def test_trees_are_drawn_with_the_differing_arcs_marked() -> None:
    svg = draw_tree(
        ["Owls", "sleep", "<b>"], ["NOUN", "VERB", "X"], [2, 0, 2], ["nsubj", "root", "a&b"],
        differing=[1], name="t",
    )  # fmt: skip
    assert svg.count("displacy-arrow tk-differs") == 1
    assert svg.count("displacy-token tk-differs") == 1
    assert "textPath" not in svg  # labels stand upright
    marked = svg.split("displacy-arrow tk-differs")[1].split("</g>")[0]
    assert "nsubj" in marked
    assert "a&amp;b" in svg
    assert "&lt;b&gt;" in svg
    assert "VERB root" in svg
    root = draw_tree(["a", "b"], ["X", "X"], [0, 1], ["root", "dep"], differing=[1])
    assert "displacy-arrow tk-differs" not in root
    assert "displacy-token tk-differs" in root
    assert is_right_to_left(["שלום", "abc"])
    assert not is_right_to_left(["hello", "של"])
    assert "rtl" in draw_tree(["שלום"], ["X"], [0], ["root"])


def test_info_tells_whether_examples_are_kept(tmp_path: Path) -> None:
    tables, facts = info(model())
    assert facts["examples"] > 0
    rows = dict(tables[0].rows)
    assert rows["training sentences kept"] == f"{facts['examples']:,}"
    assert rows["treebank"] == "UD_Synthetic"
    train_pipeline(options(tmp_path / "model", examples=False))
    assert not (tmp_path / "model" / "examples.npz").exists()
    tables, facts = info(tmp_path / "model")
    assert facts["examples"] is None
    assert dict(tables[0].rows)["training sentences kept"] == "none"
    # All else is the same, and explains itself by numbers.
    with_examples, without = (Reranker.from_disk(p) for p in (model(), tmp_path / "model"))
    files = with_examples.to_files()
    assert files.pop("examples.npz")
    assert without.to_files() == files
    result = invoke("explain", tmp_path / "model", lists(), "--sent-id", sent_id(3), "--threads", 1)
    assert result.exit_code == 0, result.output
    assert re.search(r"tree of training sentence \d+", result.stdout)
