"""`train --distill`, from a treebank to MODEL/fast, and `parse --fast`."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from trainings import (
    Recorder,
    folder,
    lists_training,
    options,
    parser_options,
    same_trees,
    treebank,
)
from typer.testing import CliRunner

from tk_spacy.cli.app import app
from tk_spacy.errors import IdleError, UserError
from tk_spacy.evaluation.report import FAST, TrainReport
from tk_spacy.parsers.biaffine.parser import BiaffineParser
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.files.batch import parse_files
from tk_spacy.workflows.info import info
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

SMALL = {
    "epochs": 3, "steps": 0, "batch": 200, "rate": 0.02, "word_width": 12, "tag_width": 12,
    "width": 12, "layers": 1, "arc_width": 12, "label_width": 8,
}  # fmt: skip


def distilling(output: Path, **changes: Any) -> TrainOptions:
    own = {
        "parsers": ("biaffine", "transition"), "biaffine": SMALL, "max_steps": None,
        "distill": True, "calibration_folds": 0,
    }  # fmt: skip
    return parser_options(output, **{**own, **changes})


def text_file() -> Path:
    """The words of dev's first sentences, which are the treebank's, then some of others."""
    path = folder() / "text.conllu"
    new = load_treebank(treebank()["dev"])[:5]
    swapped = [replace(s, forms=s.forms[::-1], upos=s.upos[::-1]) for s in new]
    write_conllu(path, [*new, *swapped])
    return path


@functools.cache
def training() -> tuple[Path, TrainReport]:
    """A model with a fast parser, made by the whole path; some seconds."""
    path = folder() / "distilled"
    made = distilling(path, text=text_file(), workdir=folder() / "distilled.work")
    return path, train_pipeline(made)


def test_the_best_on_dev_becomes_the_fast_parser_and_has_a_row() -> None:
    path, report = training()
    assert report.fast is not None
    tried = report.fast.tried
    assert list(tried) == [
        "biaffine-distilled",
        "biaffine-distilled-text",
        "biaffine + biaffine-distilled",
        "biaffine + biaffine-distilled-text",
    ]
    best = max(tried, key=lambda name: tried[name].las)
    assert report.fast.taken == best
    for part in ("dev", "test"):
        assert list(report.parts[part].scores)[-2:] == [FAST, "oracle"]
    assert report.parts["dev"].scores[FAST] == tried[best]
    stored = BiaffineParser.from_disk(path / "fast" / "tk_biaffine")
    assert stored.settings.networks == 1 + ("+" in best)
    assert TrainReport.from_dict(report.to_dict()) == report
    assert "The fast parser" in (path / "report.md").read_text("utf-8")
    assert "The fast parser" in [table.title for table in info(path)[0]]


def test_a_student_sees_the_sentences_of_the_text_that_the_treebank_lacks() -> None:
    training()
    students = {
        name: BiaffineParser.from_disk(folder() / "distilled.work" / "fast" / name)
        for name in ("biaffine-distilled", "biaffine-distilled-text")
    }
    seen = {name: student.about["sentences"] for name, student in students.items()}
    train = len(load_treebank(treebank()["train"]))
    assert seen == {"biaffine-distilled": train, "biaffine-distilled-text": train + 5}
    assert {student.settings.seed for student in students.values()} == {1000}


def test_parse_fast_gives_the_trees_that_were_scored(tmp_path: Path) -> None:
    path, report = training()
    (done,) = parse_files(path, [treebank()["test"]], tmp_path / "fast.conllu", fast=True)
    assert done.to_dict()["scores"]["final"]["las"] == report.parts["test"].scores[FAST].las
    parse_files(path / "fast", [treebank()["test"]], tmp_path / "alone.conllu")
    assert same_trees(tmp_path / "fast.conllu", tmp_path / "alone.conllu")


def test_the_fast_parser_is_a_pipeline_of_its_own() -> None:
    nlp = spacy.load(training()[0] / "fast")
    assert nlp.meta["name"].endswith("_fast")
    assert "learnt from the probabilities" in nlp.meta["description"]
    assert nlp.meta["performance"]["dep_las"] > 0
    assert spacy.load(training()[0]).pipe_names[-1] == "tk_reranker"  # the model is as ever


@pytest.mark.slow
def test_distilling_again_takes_students_over_and_does_not_depend_on_threads(
    tmp_path: Path,
) -> None:
    path, report = training()
    recorder = Recorder()
    again = distilling(
        tmp_path / "again", text=text_file(), workdir=folder() / "distilled.work", threads=2
    )
    train_pipeline(again, progress=recorder)
    assert any(
        note.endswith("fast: biaffine-distilled, biaffine-distilled-text")
        for note in recorder.notes
    )
    assert "training the fast parser" not in recorder.begun
    elsewhere = distilling(tmp_path / "elsewhere", text=text_file(), threads=2)
    assert train_pipeline(elsewhere).fast.tried == report.fast.tried
    for name in ("again", "elsewhere"):
        for file in ("meta.json", "model"):
            place = Path("fast", "tk_biaffine", file)
            assert (tmp_path / name / place).read_bytes() == (path / place).read_bytes()


def test_a_model_without_a_fast_parser_says_so_in_one_line(tmp_path: Path) -> None:
    model = lists_training()[0]
    ran = CliRunner().invoke(
        app,
        ["parse", "--fast", str(model), str(treebank()["dev"]), "-o", str(tmp_path / "out")],
    )
    assert ran.exit_code == 1
    assert ran.stderr.splitlines() == [
        f"Error: {model}: the model has no fast parser; train one with `tk-spacy train --distill`"
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"distill": False, "text": Path("a.txt")}, "text would have no effect: nothing is disti"),
        ({"distill": False, "asked": frozenset({"joined"})}, "joined would have no effect"),
        ({"soft_weight": 1.5}, "soft_weight is 1.5; it must be from 0 to 1"),
        ({"soft_temperature": 0.0}, "soft_temperature is 0.0; it must be from 0.01 to 100"),
        ({"joined": 0}, "joined is 0; it must be from 1 to 16"),
        ({"students": ("file:other",)}, "trees in files are no parser that can be trained"),
        (
            {
                "parsers": ("biaffine", "file:other"), "text": Path("a.txt"),
                "parser_files": {"other": {"train": Path("t"), "dev": Path("d")}},
            },
            "text cannot be parsed: the trees of some of the parsers",
        ),
    ],
)  # fmt: skip
def test_distillation_that_cannot_be_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        distilling(Path("out"), **changes)


def test_distillation_of_ready_lists_is_refused() -> None:
    with pytest.raises(IdleError, match="distill would have no effect: candidates are given"):
        options(Path("out"), distill=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"students": ("spacy",)}, "the spacy parser cannot be distilled"),
        ({"text": Path("nowhere.txt")}, "nowhere.txt: there is no such file"),
        ({"text": b"some words .\n"}, "plain text, but no tokenizer is trained"),
        ({"text": b" \n"}, "words.txt: the file holds no word"),
        ({"text": b"words\n\xe9t\xe9\n"}, "words.txt:2: not UTF-8 text"),
    ],
)
def test_mistakes_end_a_training_before_anything_is_written(
    tmp_path: Path, changes: Any, message: str
) -> None:
    if isinstance(changes.get("text"), bytes):
        (tmp_path / "words.txt").write_bytes(changes["text"])
        changes = {"text": tmp_path / "words.txt"}
    with pytest.raises(UserError, match=message):
        train_pipeline(distilling(tmp_path / "out", **changes))
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.work").exists()


@pytest.mark.slow
def test_without_dev_the_mean_of_most_is_taken(tmp_path: Path) -> None:
    crossed = distilling(tmp_path / "crossed", dev=None, test=None, cross_validation=True)
    report = train_pipeline(crossed)
    assert report.fast is not None
    assert report.fast.taken == "biaffine + biaffine-distilled"
    assert not report.fast.tried
    assert list(report.parts) == ["cross-validation"]
    assert FAST not in report.parts["cross-validation"].scores
    meta = spacy.load(tmp_path / "crossed" / "fast").meta
    assert not meta["performance"]
    assert "the scores are" not in meta["description"]
