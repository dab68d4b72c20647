"""Full, read-only and vanishing disks, limits, closed streams, no home, no locale, other clocks.

One line names the place and the cure, nothing is half written, and nothing is left.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from trainings import list_files, lists_training, treebank

from tk_spacy.cli.shell import Shell
from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import atomic_output, replace_directory
from tk_spacy.utils.workdir import check_writable

resource = pytest.importorskip("resource", reason="Windows has no such limits")

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")

CONTENT = b"x" * 1000 * 1000


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_file(target: Path) -> None:
    with atomic_output(target) as out:
        out.write(CONTENT)


def write_folder(target: Path) -> None:
    with replace_directory(target) as folder:
        (folder / "meta.json").write_bytes(CONTENT)


WRITERS = pytest.mark.parametrize("write", [write_file, write_folder])


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A small file system, in memory, for the time of the block."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


@contextmanager
def limited(kind: int, most: int) -> Iterator[None]:
    """A limit of this process, which is lifted when the block ends."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


@WRITERS
def test_a_full_disk(tmp_path: Path, write: Callable[[Path], None]) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        line = rf"disk/out: .*{os.strerror(errno.ENOSPC)}; free some space there, or write els"
        with pytest.raises(UserError, match=line):
            write(disk / "out")
        assert names(disk) == []


@WRITERS
def test_a_read_only_disk(tmp_path: Path, write: Callable[[Path], None]) -> None:
    with mounted(tmp_path / "disk", "size=64k,ro") as disk:
        line = rf"disk/out: .*{os.strerror(errno.EROFS)}; write elsewhere"
        with pytest.raises(UserError, match=line):
            write(disk / "out")
        with pytest.raises(UserError, match=line):
            check_writable(disk / "out")


def test_a_disk_that_vanishes(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        line = r"disk/out: cannot write it: .*; give a name in a directory"
        with pytest.raises(UserError, match=line), atomic_output(disk / "out"):
            subprocess.run(["umount", "-l", str(disk)], check=True)
        with (
            pytest.raises(UserError, match=r"disk/out: cannot be written: No such file"),
            mounted(tmp_path / "disk2", "size=64k") as other,
            replace_directory(disk / "out"),
        ):
            subprocess.run(["mount", "--move", str(other), str(disk)], check=True)
    assert names(tmp_path / "disk2") == []


@WRITERS
def test_a_limit_on_the_size_of_files(tmp_path: Path, write: Callable[[Path], None]) -> None:
    line = r"out: .*File too large; raise the limit on the size of files \(ulimit -f\)"
    with limited(resource.RLIMIT_FSIZE, 1000), pytest.raises(UserError, match=line):
        write(tmp_path / "out")
    assert names(tmp_path) == []


@WRITERS
def test_a_limit_on_open_files(tmp_path: Path, write: Callable[[Path], None]) -> None:
    lowest = os.dup(0)
    os.close(lowest)
    line = r"out: .*Too many open files; raise the limit on open files \(ulimit -n\)"
    with limited(resource.RLIMIT_NOFILE, lowest), pytest.raises(UserError, match=line):
        write(tmp_path / "out")
    assert names(tmp_path) == []


def test_an_error_of_what_is_read_is_not_one_of_what_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_output(tmp_path / "out"):
        (tmp_path / "nowhere").read_bytes()
    with pytest.raises(FileNotFoundError), replace_directory(tmp_path / "out"):
        (tmp_path / "nowhere").read_bytes()
    with pytest.raises(BrokenPipeError), atomic_output(tmp_path / "out"):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (errno.EMFILE, "(ulimit -n), or do less at a time"),
        (errno.EAGAIN, "(ulimit -u), or use fewer"),
        (errno.ENOSPC, "free some space"),
    ],
)
def test_errors_without_a_file_have_a_cure(
    code: int, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as stop, Shell().guard():
        raise OSError(code, os.strerror(code))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"Error: {os.strerror(code)}; ")
    assert cure in line
    assert stop.value.exit_code == 1


def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed program with this environment and no other."""
    command = [sys.executable, "-P", "-m", "tk_spacy", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_neither_home_nor_locale(tmp_path: Path) -> None:
    """Names of files that are not ASCII, where the terminal is."""
    given = tmp_path / "t\u00e4 \u2603.conllu"
    given.write_bytes(treebank()["test"].read_bytes())
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for more in ({}, bare, {**bare, "PYTHONIOENCODING": "ascii"}):
        done = run("projectivize", given, "-o", tmp_path / "\u00fc.conllu", "--overwrite", **more)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        missing = run("projectivize", f"{given}.x", "-o", tmp_path / "y.conllu", **more)
        assert missing.returncode == 1
        (line,) = missing.stderr.splitlines()
        assert line.startswith("Error: ")
        assert "no such file or directory" in line
    assert names(tmp_path) == sorted([given.name, "\u00fc.conllu"])


@pytest.mark.skipif(not FAKETIME.exists(), reason="libfaketime is not installed")
def test_results_do_not_depend_on_the_clock(tmp_path: Path) -> None:
    found = []
    for number, now in enumerate(("1970-01-02 00:00:00", "2040-01-02 00:00:00")):
        out = tmp_path / f"{number}.conllu"
        done = run(
            "rerank", lists_training()[0], list_files()["test"], "-o", out, "-q", "--threads", 2,
            LD_PRELOAD=str(FAKETIME), FAKETIME=now,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(out.read_bytes())
    assert found[0] == found[1]
