"""Many treebanks at once: a model for each, a table, and what happens when one fails."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from memorising_parser import gold_sentences
from test_cli import invoke
from trainings import Recorder
from treebank_folders import QUICK, quick_arguments, write_folder

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import FINAL
from tk_spacy.treebank.conllu import load_treebank, write_conllu
from tk_spacy.workflows.model import open_model
from tk_spacy.workflows.train import releases
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.releases import TreebankResult, are_apart, train_treebanks


def release(directory: Path) -> list[Path]:
    """Three treebanks: with all parts, without dev, with a test file alone."""
    return [
        write_folder(directory / "UD_A", start=0, train=10, dev=2, test=2),
        write_folder(directory / "UD_B", start=100, train=12),
        write_folder(directory / "UD_C", start=200, test=10),
    ]


def options(output: Path, *train: Path, **changes: Any) -> TrainOptions:
    given = {
        **QUICK, "paths.train": train, "paths.output": output, "machine.threads": 1,
        "lists.folds": 2,
    }  # fmt: skip
    return train_options(None, {**given, **changes})


def states(results: list[TreebankResult]) -> list[tuple[str, str]]:
    return [(result.name, result.status) for result in results]


def test_releases_which_output_means_a_model_each(tmp_path: Path) -> None:
    a, b, _ = release(tmp_path)
    new, there, model = (tmp_path / name for name in ("new", "there", "model"))
    there.mkdir()
    model.mkdir()
    (model / "meta.json").write_text('{"format_version": 1}', encoding="utf-8")
    file = a / "x_syn-ud-train.conllu"
    assert are_apart((a, b), f"{new}/")
    assert are_apart((a, b), there)
    assert not are_apart((a, b), new)
    assert not are_apart((a, b), model)
    assert not are_apart(a, f"{new}/")  # as a shell completes it
    assert not are_apart((a, file), f"{new}/")
    assert not are_apart((file, file), f"{new}/")
    with pytest.raises(UserError, match=r"is no folder; in .* each folder gets a model of its own"):
        are_apart((a, b, file), f"{new}/")


def test_releases_from_the_command_line(tmp_path: Path) -> None:
    folders = release(tmp_path)
    bad = tmp_path / "UD_Bad"
    bad.mkdir()
    (bad / "x-ud-train.conllu").write_text("no tab\n", encoding="utf-8")
    empty = tmp_path / "UD_Empty"
    empty.mkdir()
    output = tmp_path / "models"
    arguments = ("train", bad, *folders, empty, "-o", f"{output}/", *quick_arguments())
    first = invoke(*arguments, "--folds", 2)
    assert first.exit_code == 1, first.output
    assert sorted(path.name for path in output.iterdir()) == ["UD_A", "UD_B", "UD_C"]
    assert "5 treebanks, a model of its own for each" in first.stderr
    errors = [line for line in first.stderr.splitlines() if line.startswith("Error: ")]
    assert [line.split(": ")[1] for line in errors] == ["UD_Bad", "UD_Empty"]
    assert "x-ud-train.conllu:1" in errors[0]
    assert "holds no treebank" in errors[1]
    assert "Traceback" not in first.output
    for text in ("UAS dev", "LAS test", "UAS cross-v.", "minutes", "UD_A", "failed"):
        assert text in first.stdout
    written = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    second = invoke(*arguments, "--folds", 2, "--json", "-q")
    assert second.exit_code == 1
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*")} == written
    document = json.loads(second.stdout)
    assert document["failed"] == 2
    rows = {row["treebank"]: row for row in document["treebanks"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        "UD_Bad": "failed", "UD_A": "up to date", "UD_B": "up to date", "UD_C": "up to date",
        "UD_Empty": "failed",
    }  # fmt: skip
    # UD_B is a train file alone where folds are asked for, UD_C a test file.
    assert {name: set(row["scores"]) for name, row in rows.items() if row["scores"]} == {
        "UD_A": {"dev", "test"}, "UD_B": {"cross-validation"}, "UD_C": {"cross-validation"},
    }  # fmt: skip
    assert [rows[name]["words"] for name in ("UD_A", "UD_B", "UD_C")] == [60, 72, 60]
    report = open_model(output / "UD_A").report
    assert report is not None
    assert rows["UD_A"]["scores"]["test"]["las"] == report.parts["test"].scores[FINAL].las
    assert rows["UD_A"]["seconds"] == report.run_time.total_seconds
    assert rows["UD_Bad"]["error"].startswith(f"{bad}/x-ud-train.conllu:1")


def test_releases_several_folders_without_a_slash_are_one_training_set(tmp_path: Path) -> None:
    a, b, _ = release(tmp_path)
    arguments = ("train", a, b, "-o", tmp_path / "model", *quick_arguments(), "--folds", 2)
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    assert "one training set of 2 treebanks: train of 2, dev of 1, test of 1 files" in result.stderr
    model = open_model(tmp_path / "model")
    assert model.reranker.about["treebank"]["train"]["sentences"] == 22
    assert model.reranker.about["title"] == "UD_A + UD_B"


def test_releases_are_made_again_where_something_changed(tmp_path: Path) -> None:
    a, b, _ = release(tmp_path)
    output = tmp_path / "models"
    made = [("UD_A", "trained"), ("UD_B", "trained")]
    assert states(train_treebanks(options(output, a, b))) == made
    recorder = Recorder()
    again = train_treebanks(options(output, a, b), progress=recorder)
    assert states(again) == [("UD_A", "up to date"), ("UD_B", "up to date")]
    assert any("is up to date: the same files, settings and version" in n for n in recorder.notes)
    # The same files, named otherwise, from another number of threads.
    other = tmp_path / "x" / ".." / "UD_A"
    (tmp_path / "x").mkdir()
    same = train_treebanks(options(output, other, b, **{"machine.threads": 2}))
    assert states(same) == [("UD_A", "up to date"), ("UD_B", "up to date")]
    # Another setting, then another sentence: not without being told.
    (result, _) = train_treebanks(options(output, a, b, **{"training.seed": 1}))
    assert result.status == "failed"
    assert "exists already, made with other files, settings or version" in str(result.error)
    write_conllu(a / "x_syn-ud-test.conllu", gold_sentences(3, start=70))
    assert states(train_treebanks(options(output, a, b))) == [
        ("UD_A", "failed"), ("UD_B", "up to date"),
    ]  # fmt: skip
    job = train_options(
        None,
        {**QUICK, "paths.train": (a, b), "paths.output": output, "lists.folds": 2},
        overwrite=True,
    )
    assert states(train_treebanks(job)) == [("UD_A", "trained"), ("UD_B", "up to date")]
    assert open_model(output / "UD_A").report.parts["test"].sentences == 3  # type: ignore[union-attr]
    # What is damaged is none of ours any more.
    (output / "UD_B" / "report.json").write_text("{", encoding="utf-8")
    assert states(train_treebanks(job)) == [("UD_A", "up to date"), ("UD_B", "trained")]


def test_releases_are_made_again_without_a_dev_file_that_was_there(tmp_path: Path) -> None:
    a, b, _ = release(tmp_path)
    wanted = options(tmp_path / "models", a, b)
    assert states(train_treebanks(wanted)) == [("UD_A", "trained"), ("UD_B", "trained")]
    (a / "x_syn-ud-dev.conllu").unlink()  # a tenth of train takes its place, as in UD_B
    assert states(train_treebanks(wanted)) == [("UD_A", "failed"), ("UD_B", "up to date")]


def test_releases_look_into_the_files_that_settings_name(tmp_path: Path) -> None:
    a, _, _ = release(tmp_path)
    table = tmp_path / "classes.tsv"
    (form, *_) = load_treebank(a / "x_syn-ud-train.conllu")[0].forms
    table.write_text(f"{form}\tx\n", encoding="utf-8")
    more = {"reranker.properties": [f"table:{table}"], "reranker.kernel_parts": ["arc"]}
    wanted = options(tmp_path / "models", a, **more)
    results = train_treebanks(wanted)
    assert states(results) == [("UD_A", "trained")], results[0].error
    assert states(train_treebanks(wanted)) == [("UD_A", "up to date")]
    table.write_text(f"{form}\ty\n", encoding="utf-8")
    os.utime(table, (time.time() + 60,) * 2)
    assert states(train_treebanks(wanted)) == [("UD_A", "failed")]


def test_releases_tell_at_once_what_cannot_be_trained(tmp_path: Path) -> None:
    a, _, _ = release(tmp_path)
    output = tmp_path / "models"
    no_folder = tmp_path / "UD_Empty"
    no_folder.mkdir()
    (output / "UD_B").mkdir(parents=True)
    (output / "UD_B" / "thesis.tex").touch()
    wanted = options(output, a, tmp_path / "UD_B", no_folder)

    class Ordered(Recorder):
        def begin(self, stage: str) -> None:
            before.append(len(self.warnings))

    before: list[int] = []
    recorder = Ordered()
    results = train_treebanks(wanted, progress=recorder)
    assert states(results) == [
        ("UD_A", "trained"), ("UD_B", "failed"), ("UD_Empty", "failed"),
    ]  # fmt: skip
    assert min(before) == 2  # before the first stage of the first training
    assert "UD_B: exists already" in str(results[1].error)
    assert "UD_Empty: holds no treebank" in str(results[2].error)


def test_releases_go_on_after_any_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = release(tmp_path)
    faults: dict[str, Exception] = {
        "UD_A": OSError(28, "No space left on device", "models/UD_A"),
        "UD_B": RuntimeError("two\nlines"),
        "UD_C": UserError("a mistake"),
    }

    def fail(job: TrainOptions, **_: object) -> None:
        raise faults[job.output.name]

    monkeypatch.setattr(releases, "train_pipeline", fail)
    results = train_treebanks(options(tmp_path / "models", *folders))
    assert [result.error for result in results] == [
        "models/UD_A: No space left on device", "RuntimeError: two lines", "a mistake",
    ]  # fmt: skip

    def stop(job: TrainOptions, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(releases, "train_pipeline", stop)
    with pytest.raises(KeyboardInterrupt):
        train_treebanks(options(tmp_path / "models", *folders))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.name": "x"}, "name is of one treebank"),
        ({"training.title": "x"}, "title is of one treebank"),
        ({"paths.dev": "x"}, "dev is of one treebank"),
        ({"lists.train": "x"}, "candidates is of one treebank"),
    ],
)
def test_releases_refuse_what_is_of_one_treebank(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    a, b, _ = release(tmp_path)
    with pytest.raises(UserError, match=message):
        train_treebanks(options(tmp_path / "models", a, b, **changes))
    assert not (tmp_path / "models").exists()


def test_releases_refuse_outputs_that_cannot_be(tmp_path: Path) -> None:
    a, b, _ = release(tmp_path)
    for output in (a, a / "models"):
        with pytest.raises(UserError, match="the output lies in the treebank"):
            train_treebanks(options(output, a, b))
    # Each model would take its treebank's place.
    with pytest.raises(UserError, match="UD_A: lies in the output"):
        train_treebanks(options(tmp_path, a, b))
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="a file stands where the directory of models is to be"):
        train_treebanks(options(tmp_path / "file", a, b))
    same = write_folder(tmp_path / "other" / "UD_A", start=300, train=10)
    with pytest.raises(UserError, match=r"is called as .*; train them one after the other"):
        train_treebanks(options(tmp_path / "models", a, same))
    assert not (tmp_path / "models").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_releases_tell_how_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, _ = release(tmp_path)

    def stop(job: TrainOptions, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(releases, "train_pipeline", stop)
    result = invoke("train", a, b, "-o", f"{tmp_path / 'models'}/", *quick_arguments())
    assert result.exit_code == 130
    assert "run the same command again: finished models are kept" in result.stderr
