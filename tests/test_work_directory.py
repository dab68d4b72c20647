"""Work directories: what is damaged there is made again, and two trainings never share one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from counting_parser import CountingParser
from test_cli import invoke
from test_parsers import SENTENCES, A, B, folded
from trainings import Recorder, sampling_options, sampling_training, treebank

from tk_spacy.ensemble.trained_parsers import (
    RECORD,
    train_and_record,
    trained_state,
    training_seconds,
)
from tk_spacy.errors import UserError
from tk_spacy.utils.workdir import WORK_MARK, check_work_directory, work_directory
from tk_spacy.workflows.train.pipeline import train_pipeline

# Damage


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def clear(path: Path) -> None:
    path.write_bytes(b"")


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [cut, change, clear, Path.unlink, become_a_directory]


def trained(directory: Path, fingerprint: str = "one") -> None:
    train_and_record(
        A, SENTENCES, [], directory,
        fingerprint=fingerprint, n_threads=1, report=lambda done, of: None,
    )  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["counts.json", RECORD])
def test_records_a_damaged_parser_is_made_again(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    place = tmp_path / "a"
    assert trained_state(place, "one") == "missing"
    trained(place)
    assert trained_state(place, "one") == "kept"
    assert trained_state(place, "another") == "missing"
    before = {file.name: file.read_bytes() for file in place.iterdir() if file.name != RECORD}
    assert "counts.json" in before
    damage(place / name)
    assert trained_state(place, "one") != "kept"
    trained(place)
    assert trained_state(place, "one") == "kept"
    after = {file.name: file.read_bytes() for file in place.iterdir() if file.name != RECORD}
    assert after == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("record", ["", "[1]", "{}", '{"fingerprint": "one"}', "[" * 100_000])
def test_records_of_other_content_are_no_records(tmp_path: Path, record: str) -> None:
    trained(tmp_path / "a")
    (tmp_path / "a" / RECORD).write_text(record)
    assert trained_state(tmp_path / "a", "one") == "damaged"
    trained(tmp_path / "a")
    assert trained_state(tmp_path / "a", "one") == "kept"


def test_records_a_file_without_digest_is_not_trusted(tmp_path: Path) -> None:
    trained(tmp_path / "a")
    record = json.loads((tmp_path / "a" / RECORD).read_text())
    record["sha256"]["counts.json"] = None
    (tmp_path / "a" / RECORD).write_text(json.dumps(record))
    (tmp_path / "a" / "counts.json").unlink()
    assert trained_state(tmp_path / "a", "one") == "damaged"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [("2.5", 2.5), ("NaN", 0.0), ("Infinity", 0.0), ("-1", 0.0), ("1" + "0" * 400, 0.0),
     ('"2"', 0.0), ("null", 0.0)],
)  # fmt: skip
def test_records_a_time_that_no_clock_gives_is_none(
    tmp_path: Path, seconds: str, expected: float
) -> None:
    (tmp_path / RECORD).write_text(f'{{"seconds": {seconds}}}')
    assert training_seconds(tmp_path) == expected


def test_records_a_parser_of_something_else_stays_until_it_is_replaced(tmp_path: Path) -> None:
    class Stopped(CountingParser):
        def train(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    trained(tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        train_and_record(
            Stopped(), SENTENCES, [], tmp_path / "a",
            fingerprint="two", n_threads=1, report=lambda done, of: None,
        )  # fmt: skip
    assert trained_state(tmp_path / "a", "one") == "kept"


@pytest.mark.parametrize("damage", DAMAGES)
def test_jackknife_makes_damaged_lists_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    expected, _, _ = folded(tmp_path, A, B)
    damage(tmp_path / "fold-02.conllu")
    lists, steps, notes = folded(tmp_path, A, B)
    assert notes == [
        f"taken over from {tmp_path}: lists of fold 1; a parser of fold 2; b parser of fold 2",
        f"damaged in {tmp_path} and made again: lists of fold 2",
    ]
    assert [step for step in steps if step[0] == 1] == [(1, "parse", ""), (1, "done", "")]
    for a, b in zip(lists, expected, strict=True):
        assert (a.scores == b.scores).all()


def test_jackknife_names_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "folds").write_text("")
    with pytest.raises(UserError, match="folds: cannot be written: File exists; remove it"):
        folded(tmp_path / "folds", A)


def test_jackknife_makes_a_damaged_parser_again(tmp_path: Path) -> None:
    folded(tmp_path, A, B)
    (tmp_path / "fold-01.json").write_text("{")
    cut(tmp_path / "fold-01" / "b" / "counts.json")
    _, steps, notes = folded(tmp_path, A, B)
    assert notes == [
        f"taken over from {tmp_path}: a parser of fold 1; lists of fold 2",
        f"damaged in {tmp_path} and made again: lists of fold 1; b parser of fold 1",
    ]
    assert {parser for _, stage, parser in steps if stage == "train"} == {"b"}


@pytest.mark.slow
def test_training_makes_again_what_is_damaged(tmp_path: Path) -> None:
    work = tmp_path / "work"
    train_pipeline(sampling_options(tmp_path / "model", workdir=work))
    cut(work / "sampling" / "weights.npz")
    cut(work / "folds" / "fold-01.conllu")
    (work / "folds" / "fold-02.json").unlink()
    cut(work / "folds" / "fold-02" / "sampling" / "meta.json")
    recorder = Recorder()
    train_pipeline(sampling_options(tmp_path / "again", workdir=work), progress=recorder)
    folds = work / "folds"
    assert recorder.notes[2:] == [  # the first ones are the licence and the estimate
        f"damaged in {work} and made again: sampling parser of all of train",
        f"taken over from {folds}: sampling parser of fold 1",
        f"damaged in {folds} and made again: lists of fold 1; sampling parser of fold 2",
    ]
    for name in ("tk_parser", "tk_reranker"):
        for file in (sampling_training()[0] / name).iterdir():
            assert (tmp_path / "again" / name / file.name).read_bytes() == file.read_bytes()


# The lock


def test_work_directory_is_for_one_training_at_a_time(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with work_directory(work):
        for attempt in (work_directory(work).__enter__, lambda: check_work_directory(work)):
            with pytest.raises(UserError, match="work: another training works here; wait until"):
                attempt()
    check_work_directory(work)
    with work_directory(work):
        pass
    assert [path.name for path in work.iterdir()] == [WORK_MARK]


def test_work_directory_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), work_directory(tmp_path / "work"):
        raise KeyError
    with work_directory(tmp_path / "work"):
        shutil.rmtree(tmp_path / "work")
    with work_directory(tmp_path / "work"):
        assert (tmp_path / "work" / WORK_MARK).is_file()


def test_work_directory_of_a_killed_training_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from tk_spacy.utils.workdir import work_directory\n"
        "with work_directory(Path(sys.argv[1])):\n"
        "    print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "work")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(UserError, match="another training works here"):
            check_work_directory(tmp_path / "work")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with work_directory(tmp_path / "work"):
        pass


def test_work_directory_without_locks_of_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("tk_spacy.utils.workdir.fcntl.flock", flock)
    with work_directory(tmp_path / "work"):
        check_work_directory(tmp_path / "work")


def test_cli_train_refuses_a_work_directory_in_use(tmp_path: Path) -> None:
    files = treebank()
    with work_directory(tmp_path / "model.work"):
        result = invoke("train", files["train"], "--dev", files["dev"], "-o", tmp_path / "model")
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert "model.work: another training works here" in line
    assert [path.name for path in tmp_path.iterdir()] == ["model.work"]
