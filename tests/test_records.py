"""Results that still stand, and those that do not: by input, command, model, settings, content."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from test_cli import invoke
from trainings import Recorder, list_files, lists_training, options

from tk_spacy.errors import UserError
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.files.records import RECORD, Recipe, Records, result_state
from tk_spacy.workflows.files.worker import FileResult
from tk_spacy.workflows.train.pipeline import train_pipeline

CURRENT = ["skipped", "skipped"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with k-best files at two depths."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    shutil.copy(list_files()["dev"], tmp_path / "in" / "dev.conllu")
    shutil.copy(list_files()["test"], tmp_path / "in" / "sub" / "test.conllu")
    return tmp_path / "in"


def rerank(source: Path, output: Path, model: Path | None = None, **settings):
    """The statuses of the files, and the notes."""
    recorder = Recorder()
    results: list[FileResult] = rerank_files(
        model or lists_training()[0], [source], output, n_threads=1, progress=recorder, **settings
    )
    return [result.status for result in results], recorder.notes


def test_records_skip_what_a_rerun_would_make_again_as_it_is(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert rerank(source, out) == (["done", "done"], [])
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert rerank(source, out) == (CURRENT, [])
    assert rerank(source, out, processes=2) == (CURRENT, [])
    assert rerank(source, out, overwrite=True) == (["done", "done"], [])
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_records_an_input_that_changed_is_done_again(source: Path, tmp_path: Path) -> None:
    rerank(source, tmp_path / "out")
    (source / "dev.conllu").write_bytes(list_files()["train"].read_bytes())
    target = tmp_path / "out" / "dev.conllu"
    statuses, notes = rerank(source, tmp_path / "out")
    assert statuses == ["done", "skipped"]
    assert notes == [f"made again: {target} (has another input now)"]
    rerank(source, tmp_path / "fresh")
    assert target.read_bytes() == (tmp_path / "fresh" / "dev.conllu").read_bytes()
    os.utime(source / "dev.conllu", (0, 0))  # the content counts, not the clock
    assert rerank(source, tmp_path / "out") == (CURRENT, [])


def test_records_other_settings_or_another_model(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rerank(source, out)
    both = ["done", "done"]
    more = f"made again: {out / 'dev.conllu'} and 1 more"
    assert rerank(source, out, k=2) == (both, [f"{more} (was made with other settings: k)"])
    assert rerank(source, out, k=2) == (CURRENT, [])
    train_pipeline(options(tmp_path / "model", seed=5))
    other = tmp_path / "model"
    assert rerank(source, out, other, k=2) == (both, [f"{more} (was made by another model)"])
    shutil.copytree(other, tmp_path / "moved")
    assert rerank(source, out, tmp_path / "moved", k=2) == (CURRENT, [])


def test_records_of_another_command(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rerank(source, out)
    record = json.loads((out / RECORD).read_text())
    assert record["files"]["dev.conllu"]["command"] == "rerank"
    record["files"]["dev.conllu"]["command"] = "parse"
    (out / RECORD).write_text(json.dumps(record))
    note = f"made again: {out / 'dev.conllu'} (was made by `tk-spacy parse`)"
    assert rerank(source, out) == (["done", "skipped"], [note])


@pytest.mark.parametrize("record", [None, "", "[]", '{"format": 1}', '{"format": 9, "files": {}}'])
def test_records_what_others_made_is_not_replaced(
    source: Path, tmp_path: Path, record: str | None
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "dev.conllu").write_text("mine")
    if record is not None:
        (out / RECORD).write_text(record)
    reason = rf"out/dev.conllu: is there already, and no {RECORD} tells .*; replaced only on demand"
    with pytest.raises(UserError, match=reason):
        rerank(source, out)
    assert (out / "dev.conllu").read_text() == "mine"
    assert not (out / "sub").exists()
    assert rerank(source, out, overwrite=True)[0] == ["done", "done"]
    assert rerank(source, out) == (CURRENT, [])


def test_records_a_result_that_was_edited_is_not_replaced(source: Path, tmp_path: Path) -> None:
    rerank(source, tmp_path / "out")
    target = tmp_path / "out" / "sub" / "test.conllu"
    with target.open("a") as file:
        file.write("# my note\n")
    with pytest.raises(UserError, match=r"test.conllu: has been changed since tk-spacy made it"):
        rerank(source, tmp_path / "out")
    target.unlink()
    assert rerank(source, tmp_path / "out") == (["skipped", "done"], [])


def test_records_nothing_of_what_failed(source: Path, tmp_path: Path) -> None:
    rerank(source, tmp_path / "out")
    known = (tmp_path / "out" / RECORD).read_bytes()
    good = (source / "dev.conllu").read_bytes()
    for name in ("dev.conllu", "new.conllu"):
        (source / name).write_text("broken")
    assert rerank(source, tmp_path / "out")[0] == ["failed", "failed", "skipped"]
    assert (tmp_path / "out" / RECORD).read_bytes() == known
    (source / "new.conllu").unlink()
    (source / "dev.conllu").write_bytes(good)
    assert rerank(source, tmp_path / "out") == (CURRENT, [])


def announce(place: str) -> None:
    with Records() as records:
        records.begin({Path(place): Recipe("rerank", "a", "b")})
        Path(place).write_text("half of it")
        os.kill(os.getpid(), signal.SIGKILL)


def test_records_of_a_run_that_was_killed(tmp_path: Path) -> None:
    place = tmp_path / "out.conllu"
    child = multiprocessing.get_context("spawn").Process(target=announce, args=(str(place),))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert result_state(place, Recipe("rerank", "a", "b")) == ("stale", "was not finished")


def finish_many(folder: str, name: str) -> None:
    for number in range(20):
        place = Path(folder, f"{name}{number}")
        with Records() as records:
            records.begin({place: Recipe("parse", name, str(number))})
            place.write_text(name)
            records.finish(place)
            time.sleep(0.001)


def test_records_of_runs_at_the_same_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    children = [
        context.Process(target=finish_many, args=(str(tmp_path), name)) for name in ("a", "b", "c")
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    for name in ("a", "b", "c"):
        for number in range(20):
            recipe = Recipe("parse", name, str(number))
            assert result_state(tmp_path / f"{name}{number}", recipe) == ("current", "")


# One file


def cli(*arguments: object):
    return invoke("rerank", lists_training()[0], *arguments, "--threads", 1)


def test_records_one_file_is_replaced_by_the_same_command_only(tmp_path: Path) -> None:
    out, dev, test = tmp_path / "out.conllu", list_files()["dev"], list_files()["test"]
    assert cli(dev, "-o", out).exit_code == 0
    first = out.read_bytes()
    assert cli(test, "-o", out).exit_code == 0  # of another input: the user asked for it
    assert out.read_bytes() != first
    record = json.loads((tmp_path / RECORD).read_text())
    record["files"]["out.conllu"]["command"] = "kbest"
    (tmp_path / RECORD).write_text(json.dumps(record))
    refused = cli(dev, "-o", out)
    assert refused.exit_code == 1
    assert (
        "out.conllu: was made by `tk-spacy kbest`; replaced only on demand (--overwrite)"
        in refused.stderr
    )
    out.write_text("mine")
    refused = cli(dev, "-o", out)
    assert "Error: " in refused.stderr
    assert "out.conllu: has been changed since tk-spacy made it" in refused.stderr
    assert out.read_text() == "mine"
    assert cli(dev, "-o", out, "--overwrite").exit_code == 0
    assert out.read_bytes() == first


def test_records_one_file_that_is_no_file(tmp_path: Path) -> None:
    for place in ("-", "/dev/null"):
        assert cli(list_files()["dev"], "-o", place, "-q").exit_code == 0
    assert list(tmp_path.iterdir()) == []
    link, real = tmp_path / "link.conllu", tmp_path / "real"
    real.mkdir()
    link.symlink_to(real / "out.conllu")
    for _ in range(2):
        assert cli(list_files()["dev"], "-o", link).exit_code == 0
    assert sorted(path.name for path in real.iterdir()) == [RECORD, "out.conllu"]
    assert not (tmp_path / RECORD).exists()


# Packed files


def test_records_packed_files_are_named(source: Path, tmp_path: Path) -> None:
    for name in ("a.conllu.gz", "sub/b.conllu.gz"):
        (source / name).write_bytes(b"")
    recorder = Recorder()
    rerank_files(lists_training()[0], [source], tmp_path / "out", n_threads=1, progress=recorder)
    assert recorder.warnings == [f"{source}: 2 .conllu.gz files left out: unpack first"]
    (source / "dev.conllu").unlink()
    (source / "sub" / "test.conllu").unlink()
    with pytest.raises(
        UserError, match=r"no .conllu file .*; 2 .conllu.gz files left out: unpack first"
    ):
        rerank(source, tmp_path / "new")
    with pytest.raises(UserError, match=r"a.conllu.gz: a packed file, which is not read; unpack"):
        rerank(source / "a.conllu.gz", tmp_path / "new.conllu")
