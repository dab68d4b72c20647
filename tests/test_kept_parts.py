"""A large file's result is made in parts that outlive a stop: the next run goes on after them."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainings import sampling_training

from tk_spacy.errors import UserError
from tk_spacy.parallel.batches import in_parts
from tk_spacy.treebank.conllu import Sentence, load_treebank, write_conllu
from tk_spacy.treebank.data_notes import COLUMNS
from tk_spacy.treebank.enhanced import DepsCount
from tk_spacy.treebank.synthetic import generate
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.files import kept_parts
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.files.batches import write_in_parts
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.tagging import FileTags
from tk_spacy.workflows.files.worker import Job
from tk_spacy.workflows.kbest import kbest

SENTENCES = list(generate(300, seed=5))
FEW = SENTENCES[:48]


@pytest.fixture(autouse=True)
def _each_batch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "RECORD_BYTES", 1)


def kept_file(target: Path) -> Path:
    return target.with_name(f".{target.name}.parts")


def never() -> None:
    return None


class Work:
    """Counts sentences, and stops at one of them."""

    def __init__(
        self, tags: FileTags, at: int | None = None, how: type[BaseException] = RuntimeError
    ):
        self.tags, self.at, self.how = tags, at, how
        self.seen: list[str] = []

    def __call__(self, batch: list[Sentence]) -> Part:
        part = Part(tags=self.tags.fresh())
        assert part.tags is not None
        for number, sentence in enumerate(batch):
            self.seen.append(sentence.sent_id or "")
            if len(self.seen) == self.at:
                raise self.how("stop")
            part.tags.words += len(sentence)
            part.tags.taken["FEATS"] += number
            part.tags.untagged += 1
            part.tally.add(sentence, sentence, sentence)
            part.filled.add(sentence)
            part.trees += 2
        part.tally.changed += len(batch)
        part.write(batch)
        part.deps = DepsCount(len(batch), 1, 2)
        return part


def write(
    target: Path, *, key: str = "k", at: int | None = None, how: type[BaseException] = RuntimeError
) -> tuple[Part, list[str]]:
    tags = FileTags("own", never)
    work = Work(tags, at, how)
    batches = in_parts(SENTENCES, len, most=20)
    job = Job(target.with_name("in"), target, key)
    whole = write_in_parts(job, batches, work, n_threads=1, tags=tags)
    return whole, work.seen


def facts(whole: Part) -> dict[str, Any]:
    assert whole.tags is not None
    return {
        "tally": (whole.tally.sentences, whole.tally.words, whole.tally.changed),
        "scored": (whole.tally.scored, [counts.tolist() for counts in whole.tally.counts]),
        "filled": [name for name in COLUMNS if name in whole.filled],
        "deps": whole.deps,
        "tags": (whole.tags.words, whole.tags.taken, whole.tags.untagged),
        "trees": whole.trees,
    }


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit, RuntimeError, MemoryError])
def test_a_run_goes_on_where_another_was_stopped(tmp_path: Path, how: type[BaseException]) -> None:
    alone, _ = write(tmp_path / "alone", key="")
    assert [path.name for path in tmp_path.iterdir()] == ["alone"]
    target = tmp_path / "out"
    with pytest.raises(how):
        write(target, at=150, how=how)
    assert not target.exists()
    with pytest.raises(how):  # and where that one was
        write(target, at=60, how=how)
    assert kept_file(target).exists()
    whole, seen = write(target)
    assert target.read_bytes() == (tmp_path / "alone").read_bytes()
    assert facts(whole) == facts(alone)
    assert alone.resumed == 0
    assert whole.resumed == 300 - len(seen) == 16 + 20 * 6 + 20 * 2  # whole batches
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "out"]


def test_what_a_mistake_of_the_user_stopped_begins_anew(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        write(tmp_path / "out", at=150, how=UserError)
    assert list(tmp_path.iterdir()) == []


def test_parts_of_something_else_are_not_taken(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"):
        write(tmp_path / "out", at=150)
    whole, seen = write(tmp_path / "out", key="other")
    assert (whole.resumed, len(seen)) == (0, 300)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("cut", [1, 2, 50, 2000, 10**6])
def test_a_part_that_a_kill_left_half_written_is_made_again(tmp_path: Path, cut: int) -> None:
    alone, _ = write(tmp_path / "alone", key="")
    with pytest.raises(RuntimeError, match="stop"):
        write(tmp_path / "out", at=150)
    path = kept_file(tmp_path / "out")
    path.write_bytes(path.read_bytes()[:-cut])
    whole, _ = write(tmp_path / "out")
    assert whole.resumed < 136
    assert facts(whole) == facts(alone)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "no JSON": lambda text: b"\0" + text,
    "another format": lambda text: text.replace(b'"format": 1', b'"format": 9', 1),
    "text": lambda text: text.replace(b"\t", b" ", 1),
    "a count": lambda text: text.replace(b'"sentences": ', b'"sentences": "x", "y": ', 1),
    "a missing count": lambda text: text.replace(b'"deps"', b'"other"', 1),
    "a column": lambda text: text.replace(b'"LEMMA"', b'"OTHER"', 1),
    "a negative count": lambda text: text.replace(b'"batches": ', b'"batches": -', 1),
    "a size": lambda text: text.replace(b'"bytes": ', b'"bytes": 9999999999', 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_parts_are_made_again(tmp_path: Path, damage: str) -> None:
    alone, _ = write(tmp_path / "alone", key="")
    with pytest.raises(RuntimeError, match="stop"):
        write(tmp_path / "out", at=150)
    path = kept_file(tmp_path / "out")
    before = path.read_bytes()
    path.write_bytes(DAMAGES[damage](before))
    assert path.read_bytes() != before
    whole, _ = write(tmp_path / "out")
    assert whole.resumed == 0
    assert facts(whole) == facts(alone)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()


def test_small_files_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "RECORD_BYTES", 1 << 22)
    with pytest.raises(RuntimeError, match="stop"):
        write(tmp_path / "out", at=290)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no locks")
def test_of_two_runs_one_keeps_its_parts(tmp_path: Path) -> None:
    with kept_parts.kept_parts(Job(tmp_path / "in", tmp_path / "out", "k")):
        whole, seen = write(tmp_path / "out")
        assert (whole.resumed, len(seen)) == (0, 300)
        assert kept_file(tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


class Full(io.BytesIO):
    """A file on a disk with room for so many bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.mark.parametrize("room", [0, 100, 20_000])
def test_where_there_is_no_room_for_parts_the_result_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(kept_parts, "_opened", lambda path: Full(room))
    whole, seen = write(tmp_path / "out")
    assert (whole.tally.sentences, len(seen)) == (300, 300)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


class Stopping(Progress):
    """Stops a command when half is done."""

    def update(self, stage: str, done: int, total: int) -> None:
        if 2 * done > total:
            raise KeyboardInterrupt


def commands() -> dict[str, Callable[..., Any]]:
    model = sampling_training()[0]
    return {
        "rerank": lambda given, out, **more: rerank_files(model, [given], out, **more)[0],
        "parse": lambda given, out, **more: parse_files(model, [given], out, **more)[0],
        "kbest": lambda given, out, **more: kbest(str(model), given, out, **more),
    }


def resumed(result: Any) -> int:
    return int(result["resumed"] if isinstance(result, dict) else result.resumed)


@pytest.mark.parametrize("name", ["rerank", "parse", "kbest"])
def test_commands_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert in_parts.__kwdefaults__ is not None
    monkeypatch.setitem(in_parts.__kwdefaults__, "most", 8)
    run = commands()[name]
    given, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    write_conllu(given, FEW)
    whole = run(given, tmp_path / "whole.conllu", n_threads=1)
    others = ("with other settings", "with another input") if name == "rerank" else ()
    for other in (*others, "as it was"):
        with pytest.raises(KeyboardInterrupt):
            run(given, out, n_threads=1, progress=Stopping())
        assert not out.exists()
        assert kept_file(out).exists()
        if other == "with other settings":
            result = run(given, out, n_threads=1, deps="copy", overwrite=True)
        elif other == "with another input":
            write_conllu(given, [*FEW[:-1], FEW[0]])
            result = run(given, out, n_threads=1)
            write_conllu(given, FEW)
        else:
            result = run(given, out, n_threads=1)
        assert not kept_file(out).exists()
        if other != "as it was":
            assert resumed(result) == 0
            out.unlink()
            (tmp_path / ".tk-spacy.json").unlink()
    assert 16 < resumed(result) < 48
    assert out.read_bytes() == (tmp_path / "whole.conllu").read_bytes()
    assert len(load_treebank(out)) >= 48
    if name != "kbest":
        assert whole.sentences == result.sentences == 48
        assert (whole.words, whole.changed) == (result.words, result.changed)
        assert (whole.final == result.final).all()


@pytest.mark.skipif(sys.platform != "linux", reason="kills as Linux does")
def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    model = sampling_training()[0]
    given, out = tmp_path / "in.conllu", tmp_path / "out.conllu"
    write_conllu(given, generate(120, seed=6))
    code = (
        "from tk_spacy.cli import main; from tk_spacy.workflows.files import kept_parts; "
        "kept_parts.RECORD_BYTES = 1; "
        "from tk_spacy.parallel.batches import in_parts; in_parts.__kwdefaults__['most'] = 4; "
        "main()"
    )
    words = [sys.executable, "-c", code, "rerank", str(model), str(given), "-q", "--json", "-o"]
    with subprocess.Popen([*words, str(out)], start_new_session=True) as process:
        last = time.monotonic() + 60
        while not kept_file(out).exists() or kept_file(out).stat().st_size < 20_000:
            assert process.poll() is None, "it ended too soon"
            assert time.monotonic() < last
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not out.exists()
    done = subprocess.run([*words, str(out)], capture_output=True, check=True)
    assert json.loads(done.stdout)["total"]["resumed"] > 0
    subprocess.run([*words, str(tmp_path / "whole.conllu")], capture_output=True, check=True)
    assert out.read_bytes() == (tmp_path / "whole.conllu").read_bytes()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".tk-spacy.json", "in.conllu", "out.conllu", "whole.conllu"]
