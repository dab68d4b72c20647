"""`evaluate --html`, and the page that a training leaves: what is in them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_cli import invoke
from trainings import list_files, lists_training, treebank

from tk_spacy.evaluation.confusions import Confusions
from tk_spacy.evaluation.report import Curve, TrainReport
from tk_spacy.reranker.calibration import Confidence
from tk_spacy.treebank.confidence_columns import with_confidence
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.workflows.model import REPORT_HTML, REPORT_JSON
from tk_spacy.workflows.train.report_page import PartTrees, page

pytest.importorskip("matplotlib")


def sure(sentences: list[Sentence]) -> list[Sentence]:
    rng = np.random.default_rng(0)
    return [
        with_confidence(s, heads=rng.random(len(s)), labels=rng.random(len(s)), tree=rng.random())
        for s in sentences
    ]


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The lists' first trees, and what the reranker makes of them, with probabilities."""
    folder = tmp_path_factory.mktemp("systems")
    out = folder / "reranked.conllu"
    invoke("rerank", lists_training()[0], list_files()["test"], "-o", out, "--threads", 1)
    after = folder / "after.conllu"
    write_conllu(after, sure(load_treebank(out)))
    before = folder / "before.conllu"
    write_conllu(before, load_treebank(list_files()["test"]))
    return before, after


def test_evaluate_writes_a_page(tmp_path: Path, systems: tuple[Path, Path]) -> None:
    where = tmp_path / "page.html"
    result = invoke("evaluate", treebank()["test"], *systems, "--html", where)
    assert result.exit_code == 0, result.output
    assert f"Page: {where}" in " ".join(result.stderr.split())
    assert "By length" not in result.stdout  # the terminal shows what was asked for
    text = where.read_text(encoding="utf-8")
    for title in (
        "Scores", "Score by relation", "Score by distance of the head",
        "Score by length of the sentence", "Score by UPOS", "Relations taken for others",
        "Probabilities", "Ill-formed trees", "Files, settings and versions",
    ):  # fmt: skip
        assert f">{title}</h2>" in text
    gold, before, after = map(load_treebank, (treebank()["test"], *systems))
    most = Confusions.of(gold, [before, after]).confusions(1)[0]
    counts = " → ".join(map(str, most.counts))
    assert f"{most.gold} taken for {most.given}: {counts} words" in text
    assert f"{len(most.examples)} of {most.sentences} sentences with it" in text
    assert "Is the difference chance?" in text
    for metric in ("uas", "las", "clas"):  # the last is tested where it is asked for
        told = invoke(
            "evaluate", treebank()["test"], *systems, "--metric", metric, "--json",
            *(["--html", tmp_path / "clas.html"] if metric == "clas" else []),
        )  # fmt: skip
        (found,) = json.loads(told.stdout)["comparisons"]
        page_of = (tmp_path / "clas.html").read_text("utf-8") if metric == "clas" else text
        shown = re.sub(r"<[^>]+>|\s", " ", page_of)
        cells = f"{metric.upper()} {found['difference']:+.2f} {found['low']:+.2f} to "
        assert cells in " ".join(shown.split())
    assert "Reliability of" in text
    assert "Risk and coverage of" in text
    assert text.count("<svg") > 10
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r' href="#([^"]+)"', text)) <= set(identifiers)
    assert not re.search(r"<script|<link|<img|url\((?!#)|src=", text)
    again = invoke("evaluate", treebank()["test"], *systems, "--html", where, "--overwrite")
    assert again.exit_code == 0
    assert where.read_text(encoding="utf-8") == text
    assert len(text.encode()) < 5_000_000
    assert "files do not say how long their trees took" in text
    # Names tell the files, and nobody's folders.
    for path in (treebank()["test"], *systems):
        assert path.name in text
        assert str(path.parent) not in text


def test_evaluate_writes_a_page_to_standard_output(systems: tuple[Path, Path]) -> None:
    result = invoke("evaluate", treebank()["test"], systems[0], "--html", "-", "-q")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.endswith("</html>")
    assert "Probabilities" not in result.stdout
    assert "Is the difference chance?" not in result.stdout


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("there.html", 2, "there.html: is there already"),
        ("no/such/place.html", 2, "place.html: its folder is not there; make it, or name another"),
        ("gold.conllu", 2, "cannot be the page too"),
    ],
)
def test_evaluate_refuses_places_of_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.html").write_text("mine", encoding="utf-8")
    gold = treebank()["test"].read_text(encoding="utf-8")
    Path("gold.conllu").write_text(gold, encoding="utf-8")
    options = ["--overwrite"] if place == "gold.conllu" else []
    result = invoke("evaluate", "gold.conllu", "gold.conllu", "--html", place, *options)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())
    assert Path("there.html").read_text(encoding="utf-8") == "mine"
    assert Path("gold.conllu").read_text(encoding="utf-8") == gold
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gold.conllu", "there.html"]


def test_evaluate_says_how_to_get_charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    where = tmp_path / "page.html"
    gold = treebank()["test"]
    result = invoke("evaluate", gold, gold, "--html", where, "--json")
    assert result.exit_code == 2
    assert "pip install 'tk-spacy[report]'" in json.loads(result.stdout)["error"]
    assert not where.exists()


def test_training_leaves_a_page_beside_its_report() -> None:
    path, report = lists_training()
    text = (path / REPORT_HTML).read_text(encoding="utf-8")
    for title in (
        "Scores", "Learning curves", "Score by relation on dev",
        "Relations taken for others on dev",
        "Score by relation on test", "Relations taken for others on test", "Times and costs",
        "Settings and versions",
    ):  # fmt: skip
        assert f">{title}</h2>" in text
    assert f"{report.parts['test'].scores['final system'].las:.2f}" in text
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert 'id="dev-confusion-1"' in text
    assert 'id="test-confusion-1"' not in text  # nobody should look at test


def test_training_records_its_curves() -> None:
    _, report = lists_training()
    curve = report.curves["reranker"]
    assert curve.of == "lists that led to an update, %"
    assert len(curve.values) == report.about["settings"]["iterations"]
    assert all(0 <= value <= 100 for value in curve.values)
    data = json.loads((lists_training()[0] / REPORT_JSON).read_text(encoding="utf-8"))
    assert TrainReport.from_dict(data).curves == dict(report.curves)
    del data["curves"]  # of an earlier version
    assert TrainReport.from_dict(data).curves == {}


def trees() -> dict[str, PartTrees]:
    gold = load_treebank(treebank()["dev"])
    before = load_treebank(list_files()["dev"])
    certain = [
        Confidence(0.5, np.full(len(s), 0.9), np.full(len(s), 0.8), np.ones(1)) for s in gold
    ]
    return {"dev": PartTrees(gold, before, gold, certain)}


def test_a_training_page_without_sentences_holds_none() -> None:
    _, report = lists_training()
    report = replace(report, parts={"dev": report.parts["dev"]}, curves={"x": Curve("y", (1, 2))})
    shown = page(report, trees())
    bare = page(report, trees(), sentences=False)
    assert page(report, trees()) == shown
    forms = {form for s in load_treebank(treebank()["dev"]) for form in s.forms if len(form) > 4}
    assert any(form in shown for form in forms)
    assert not any(form in bare for form in forms)
    assert "Relations taken for others on dev" in bare
    for text in (shown, bare):
        assert "Probabilities on dev" in text
        assert "x: y" in text


def test_a_training_page_tells_that_probabilities_were_fitted_to_what_judges_them() -> None:
    _, report = lists_training()
    told = "adjusted to the very trees that judge them"
    report = replace(report, parts={"dev": report.parts["dev"]})
    assert told not in page(report, trees())
    own = {name: replace(part, adjusted=True) for name, part in trees().items()}
    assert told in page(report, own)


def test_a_training_page_has_curves_by_epochs_and_by_steps() -> None:
    _, report = lists_training()
    curves = {
        "a parser": Curve("loss", (2.0, 1.5, 1.25)),
        "spacy parser": Curve("LAS", (5, 7), 200),
    }
    assert TrainReport.from_dict(replace(report, curves=curves).to_dict()).curves == curves
    text = page(replace(report, parts={"dev": report.parts["dev"]}, curves=curves), trees())
    assert "LAS by step. spacy parser: 5 at 200 to 7 at 400." in text
    assert "loss by epoch. a parser: 2 at 1 to 1.25 at 3." in text
    assert "spacy parser: LAS; a row is 200 steps" in text
    shown = re.sub(r"<[^>]+>|\s", " ", text)
    assert "3 1.250 " in " ".join(shown.split())


def test_a_training_page_tells_the_times_of_all_that_was_trained() -> None:
    _, report = lists_training()
    run = replace(
        report.run_time,
        parsers={"biaffine": {"whole": 61.0, "folds": 200.0}},
        parser_speeds={"biaffine": 900.0, "all": 900.0},
        tagger={"whole": 7.0, "folds": 23.0, "tokenizer": 3.0},
    )
    about = {**report.about, "tagger": {"kind": "bilstm"}}
    report = replace(report, run_time=run, about=about, parts={"dev": report.parts["dev"]})
    shown = " ".join(re.sub(r"<[^>]+>|\s", " ", page(report, trees())).split())
    assert "biaffine parser" in shown
    assert "bilstm tagger 7.00 s 23.0 s" in shown.replace(" - ", " ")
    assert "tokenizer 3.00 s" in shown.replace(" - ", " ")
    for stage in report.run_time.stages:
        assert f"{stage} " in shown


def test_a_training_page_names_no_folders() -> None:
    _, report = lists_training()
    about = {**report.about, "pipeline": "/home/me/pipelines/en", "more": {"a": ["/home/me/x", 1]}}
    text = page(replace(report, parts={"dev": report.parts["dev"]}, about=about), trees())
    assert "/home" not in text
    assert re.search(r"pipeline</th>\s*<td[^>]*>en</td>", text)
    assert "x, 1" in text


def test_a_training_page_without_matplotlib_has_tables_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, report = lists_training()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = page(replace(report, parts={"dev": report.parts["dev"]}), trees(), sentences=False)
    assert "<svg" not in text
    assert "pip install &#39;tk-spacy[report]&#39;" in text
    assert "Learning curves" in text
