"""What a killed process left is removed by the next one, and never what a process is at."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tk_spacy.errors import UserError
from tk_spacy.utils import leftovers
from tk_spacy.utils.atomic_files import atomic_output, replace_directory
from tk_spacy.utils.leftovers import new_name, temporary_beside, temporary_directory
from tk_spacy.utils.workdir import work_directory

fcntl = pytest.importorskip("fcntl", reason="Windows has no such locks")

GONE = 2**22 + 1  # above Linux's largest number of a process
ELSEWHERE = "0123abcd"

WRITER = """
import os, signal, sys
from pathlib import Path
from tk_spacy.utils.atomic_files import atomic_output, replace_directory
target = Path(sys.argv[2])
with (atomic_output if sys.argv[1] == "file" else replace_directory)(target) as out:
    if sys.argv[1] == "file":
        out.write(b"half")
        out.flush()
    else:
        (out / "half").write_text("half")
    print("at work", flush=True)
    sys.stdin.read()
    if sys.argv[3:] == ["killed"]:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _as_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_LISTED", {})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left(target: Path, *, host: str | None = None, pid: int = GONE, kind: Any = "tmp") -> Path:
    """The name of something that a process left."""
    _, made, _ = new_name(target, kind=kind).name.rsplit(".", 2)
    name = f".{target.name}.{host or made.split('-')[0]}-{pid}-0.{kind}"
    return target.with_name(name)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def writer(kind: str, target: Path, *, killed: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Another process that is at work on the target in the block, and then killed, or done."""
    words = [sys.executable, "-c", WRITER, kind, str(target), *(["killed"] if killed else [])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == (-signal.SIGKILL if killed else 0)


def write(kind: str, target: Path) -> None:
    if kind == "file":
        with atomic_output(target) as out:
            out.write(b"whole")
    else:
        with replace_directory(target) as folder:
            (folder / "meta.json").write_text("{}")


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_a_killed_writer_left_goes_with_the_next_run(tmp_path: Path, kind: str) -> None:
    target, other = tmp_path / "a", tmp_path / "a.b"
    with writer(kind, target, killed=True), writer(kind, other, killed=True):
        assert len(names(tmp_path)) == 2
    before = names(tmp_path)
    assert len(before) == 2
    write(kind, target)
    # What was left of another target is for the next run that writes that one.
    assert names(tmp_path) == sorted(["a", *(name for name in before if name.startswith(".a.b."))])
    write(kind, other)
    assert names(tmp_path) == ["a", "a.b"]


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_writer_at_work_is_left_alone(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "a"
    with writer(kind, target):
        (at_work,) = names(tmp_path)
        with temporary_beside(target, directory=kind == "directory"):
            assert at_work in names(tmp_path)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("host", "whose", "is_locked", "stays"),
    [
        (None, "gone", False, False),
        (None, "gone", True, True),
        (None, "parent", False, True),  # it may be about to lock it
        (None, "own", False, False),  # of an earlier process of this number
        (None, "own", True, True),  # of another thread
        (ELSEWHERE, "parent", False, False),
        (ELSEWHERE, "gone", True, True),
    ],
)
@pytest.mark.parametrize("is_directory", [True, False])
def test_what_is_removed(
    tmp_path: Path, host: str | None, whose: str, is_locked: bool, stays: bool, is_directory: bool
) -> None:
    pids = {"gone": GONE, "parent": os.getppid(), "own": os.getpid()}
    target = tmp_path / "a"
    path = left(target, host=host, pid=pids[whose])
    if is_directory:
        path.mkdir()
        (path / "half").touch()
    else:
        path.touch()
    if is_locked:
        with locked(path):
            write("file", target)
    else:
        write("file", target)
    assert path.exists() == stays
    assert target.read_bytes() == b"whole"


def test_without_locks_only_this_host_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    target = tmp_path / "a"
    here, elsewhere = left(target), left(target, host=ELSEWHERE)
    here.touch()
    elsewhere.touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    write("file", target)
    assert names(tmp_path) == [elsewhere.name, "a"]


def test_nothing_else_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links, and what looks alike; of other users nothing."""
    target = tmp_path / "a"
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").touch()
    left(target).symlink_to(inside)
    for name in (".a.tmp", ".a.1.tmp", ".a.0123abcd-1-.tmp", ".a.0123abcd-1-0.new", "a.x.tmp"):
        (tmp_path / name).touch()
    before = names(tmp_path)
    write("file", target)
    assert names(tmp_path) == sorted([*before, "a"])
    assert names(inside) == ["file"]
    monkeypatch.setattr(leftovers, "_LISTED", {})
    left(target).unlink()
    left(target).touch()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    write("file", target)
    assert left(target).name in names(tmp_path)


def test_a_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    for number in range(30):
        left(tmp_path / f"{number}").touch()
    for number in range(30):
        write("file", tmp_path / f"{number}")
    assert listed == [tmp_path]
    assert names(tmp_path) == sorted(map(str, range(30)))


@pytest.mark.parametrize("there", [True, False])
def test_an_old_directory_that_made_room_comes_back(tmp_path: Path, there: bool) -> None:
    """Of a process that was killed between two steps, where the system has no single one."""
    target = tmp_path / "model"
    old = left(target, kind="old")
    old.mkdir()
    (old / "meta.json").write_text("old")
    if there:
        write("directory", target)
        assert names(target) == ["meta.json"]
        assert (target / "meta.json").read_text() == "{}"
    else:
        with pytest.raises(KeyError), replace_directory(target):
            raise KeyError
        assert (target / "meta.json").read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_the_longest_names_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "\u00e4" * 127):
        leftovers._LISTED.clear()
        target = tmp_path / name
        left(target.with_name(leftovers._stem(target))).touch()
        write("file", target)
        assert target.read_bytes() == b"whole"
    assert len(names(tmp_path)) == 2


def test_what_is_removed_by_another_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, seen = leftovers._locked, []

    def late(path: Path, **options: Any) -> int | None:
        seen.append(path)
        if len(seen) == 1:
            path.unlink()
        return lock(path, **options)

    monkeypatch.setattr(leftovers, "_locked", late)
    write("file", tmp_path / "a")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert len(set(seen)) == 2


def _lives_on(ready: Any) -> None:
    ready.send(os.getpid())
    time.sleep(600)


def _parent(target: str, ready: Any) -> None:
    with atomic_output(target):
        child = multiprocessing.get_context("fork").Process(target=_lives_on, args=(ready,))
        child.start()
        time.sleep(600)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_forked_processes_hold_no_lock(tmp_path: Path) -> None:
    """They may live some seconds longer than a parent that was killed."""
    target = tmp_path / "a"
    ours, theirs = multiprocessing.Pipe()
    parent = multiprocessing.get_context("spawn").Process(
        target=_parent, args=(str(target), theirs)
    )
    parent.start()
    child = ours.recv()
    try:
        parent.kill()
        parent.join()
        write("file", target)
        assert names(tmp_path) == ["a"]
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_work_directory_is_cleared_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "work"
    with work_directory(place):
        (place / "fold").mkdir()
        left(place / "fold" / "parser").mkdir()
        left(place / "lists").touch()
    with work_directory(place):
        assert names(place / "fold") == []
        assert names(place) == ["fold", "tk-spacy-work"]


def test_temporary_folders_of_killed_processes_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left(tmp_path / "tk-spacy-stdin").mkdir()
    (tmp_path / "other").mkdir()
    with temporary_directory("stdin") as folder:
        assert names(tmp_path) == sorted([folder.name, "other"])
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").touch()
    assert names(tmp_path) == ["other"]
    cure = "No space left on device; free some space there, or set TMPDIR"
    with pytest.raises(UserError, match=cure), temporary_directory("stdin"):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), temporary_directory("stdin"):
        (tmp_path / "nowhere").read_bytes()
    assert names(tmp_path) == ["other"]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    reason = "nowhere: a temporary file cannot be written: No such"
    with pytest.raises(UserError, match=reason), temporary_directory("stdin"):
        pass
