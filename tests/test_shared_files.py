"""One file shared among processes: the same bytes and counts, errors with their lines, stops."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from samples import ODD
from trainings import (
    biaffine_training,
    list_files,
    lists_training,
    sampling_training,
    stripped,
    treebank,
)

from tk_spacy.errors import UserError
from tk_spacy.parallel import sharing
from tk_spacy.parallel.batches import FIRST, MOST, MOST_WORDS, in_parts
from tk_spacy.treebank.conllu import (
    Sentence,
    joined_block,
    load_treebank,
    read_conllu,
    write_blocks,
    write_conllu,
    write_sentences,
)
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.files.batch import parse_files, rerank_files
from tk_spacy.workflows.files.batches import most_words, write_in_parts
from tk_spacy.workflows.files.counted import Part
from tk_spacy.workflows.files.worker import Job
from tk_spacy.workflows.kbest import kbest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")


def long_file(path: Path, *, times: int = 14) -> Path:
    """A file of many batches, with a sentence that is cut into pieces, and words without tags."""
    sentences = load_treebank(stripped(treebank()["test"], path), trees="optional")
    words = [word for sentence in sentences for word in sentence.forms]
    tags = [tag for sentence in sentences for tag in sentence.upos]
    one = Sentence.from_columns(forms=words[:300], upos=tags[:300])
    blank = Sentence.from_columns(forms=words[:20])
    write_conllu(path, [*sentences, one, *sentences * times, blank, *sentences])
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an item for each process that is made."""
    made: list[int] = []
    before = sharing._Worker.start

    def start(*given: Any) -> Any:
        made.append(1)
        return before(*given)

    monkeypatch.setattr(sharing._Worker, "start", start)
    return made


class Steps(Progress):
    """Remembers how far the work was."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def update(self, stage: str, done: int, total: int) -> None:
        self.done.append(done)


COMMANDS: dict[str, Callable[..., Any]] = {
    "rerank": lambda *a, **k: rerank_files(biaffine_training()[0], *a, confidence=True, **k),
    "rerank well-formed": lambda *a, **k: rerank_files(
        sampling_training()[0], *a, well_formed=True, deps="copy", **k
    ),
    "parse": lambda *a, **k: parse_files(sampling_training()[0], *a, **k),
    "parse --k": lambda *a, **k: parse_files(sampling_training()[0], *a, k=4, **k),
    "parse --well-formed": lambda *a, **k: parse_files(
        biaffine_training()[0], *a, well_formed=True, **k
    ),
    "kbest": lambda files, out, **k: kbest(str(biaffine_training()[0]), files[0], out, k=5, **k),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_any_number_of_processes_writes_the_same(
    command: str, tmp_path: Path, started: list[int]
) -> None:
    given = long_file(tmp_path / "in.conllu")
    found, counted, processes, steps = [], [], [], []
    for n_threads in (1, 2, 3):
        out, progress = tmp_path / f"{n_threads}.conllu", Steps()
        result = COMMANDS[command]([given], out, n_threads=n_threads, progress=progress)
        found.append(out.read_bytes())
        processes.append(len(started))
        started.clear()
        rows = [result] if isinstance(result, dict) else [row.to_dict() for row in result]
        for row in rows:
            row.pop("output", None)
            row.pop("seconds", None)
        counted.append(json.dumps(rows))
        steps.append(progress.done)
    assert found[0] == found[1] == found[2]
    assert counted[0] == counted[1] == counted[2]
    assert processes == [0, 2, 3]
    assert steps[0] == steps[1] == steps[2] == sorted(steps[0])
    assert steps[0][-1] == len(load_treebank(given, trees="optional"))
    assert multiprocessing.active_children() == []


def test_any_number_of_processes_reranks_lists_alike(tmp_path: Path, started: list[int]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in list_files().values())
    given = tmp_path / "in.conllu"
    given.write_text(text * 5, encoding="utf-8")
    found = []
    for n_threads in (1, 2, 3):
        out = tmp_path / f"{n_threads}.conllu"
        (result,) = rerank_files(lists_training()[0], [given], out, n_threads=n_threads)
        found.append((out.read_bytes(), result.sentences, result.words, result.changed))
    assert found[0] == found[1] == found[2]
    assert len(started) == 2 + 3


def test_a_short_file_stays_in_this_process(tmp_path: Path, started: list[int]) -> None:
    given = stripped(treebank()["test"], tmp_path / "in.conllu")
    parse_files(sampling_training()[0], [given], tmp_path / "out.conllu", n_threads=4)
    assert not started


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_in_the_middle_is_told_with_its_line(tmp_path: Path, n_threads: int) -> None:
    given = long_file(tmp_path / "in.conllu")
    lines = given.read_text(encoding="utf-8").splitlines()
    at = len(lines) * 2 // 3
    while lines[at].count("\t") != 9:
        at += 1
    lines[at] = "x" + lines[at]
    given.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match=rf"in\.conllu:{at + 1}: "):
        rerank_files(sampling_training()[0], [given], tmp_path / "out.conllu", n_threads=n_threads)
    assert sorted(tmp_path.iterdir()) == before
    assert multiprocessing.active_children() == []


def test_a_killed_process_is_told_with_the_cure(tmp_path: Path) -> None:
    def work(batch: list[int]) -> Part:
        if 300 in batch:
            os.kill(os.getpid(), signal.SIGKILL)
        return Part()

    job = Job(tmp_path / "in.conllu", tmp_path / "out.conllu")
    reason = (
        r"in\.conllu: a process that worked on it was killed by SIGKILL \(most often: out of "
        r"memory\); run again with fewer of them \(n_threads\)$"
    )
    with pytest.raises(UserError, match=reason):
        write_in_parts(job, in_parts(range(900), lambda _: 1), work, n_threads=2)
    assert list(tmp_path.iterdir()) == []


def command(model: Path, given: Path, *options: str, **settings: Any) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tk_spacy", "rerank", str(model), str(given), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    return subprocess.Popen(
        words, env=environment, stderr=subprocess.PIPE, start_new_session=True, **settings
    )


def workers_of(process: subprocess.Popen[bytes], count: int) -> list[psutil.Process]:
    """Its processes, once they are there."""
    last = time.monotonic() + 60
    children: list[psutil.Process] = []
    while len(children) < count:
        assert process.poll() is None, "it ended too soon"
        assert time.monotonic() < last
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children()
        time.sleep(0.02)
    return children


@pytest.mark.parametrize(
    ("sent", "code", "says"),
    [
        (
            signal.SIGINT,
            130,
            "interrupted; finished files are kept, and what is done of",
        ),
        (
            signal.SIGTERM,
            143,
            "terminated; finished files are kept, and what is done of",
        ),
        (signal.SIGKILL, 1, "run again with fewer of them (--threads)"),
    ],
)
def test_a_stopped_command_leaves_nothing(
    tmp_path: Path, sent: signal.Signals, code: int, says: str
) -> None:
    """Ctrl-C reaches all processes of the group; SIGTERM the command; SIGKILL one worker."""
    given = long_file(tmp_path / "in.conllu", times=300)
    process = command(sampling_training()[0], given, "-o", str(tmp_path / "out.conllu"), "-q")
    try:
        children = workers_of(process, 2)
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)
        else:
            os.kill(process.pid if sent == signal.SIGTERM else children[0].pid, sent)
        _, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == code
    assert says in err.decode()
    assert len(err.decode().splitlines()) == 1
    assert not any(child.is_running() for child in children)
    assert [path.name for path in tmp_path.iterdir()] == ["in.conllu"]


def test_a_reader_that_leaves_ends_all(tmp_path: Path) -> None:
    given = long_file(tmp_path / "in.conllu", times=300)
    model = sampling_training()[0]
    with command(model, given, "-o", "-", "-q", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        children = workers_of(process, 2)
        assert process.stdout.readline().startswith(b"#")
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""  # it ends when the last process has closed it
        assert process.wait(60) == 141
    assert not any(child.is_running() for child in children)


def test_batches_are_cut_by_sentences_and_words() -> None:
    found = list(in_parts([1] * 1000, lambda item: item))
    assert [len(batch) for batch in found] == [FIRST, *[MOST] * 7, 1000 - FIRST - 7 * MOST]
    lengths = [MOST_WORDS, 1, MOST_WORDS - 1, 1, MOST_WORDS + 9, 1]
    found = list(in_parts(lengths, lambda item: item))
    assert found == [lengths[:1], lengths[1:3], lengths[3:4], lengths[4:5], lengths[5:]]
    assert list(in_parts([], len)) == []
    assert list(in_parts([1] * 7, int, most=3)) == [[1] * 3, [1] * 3, [1]]
    # A full batch is given before the next item is asked for.
    stream = in_parts((1 if i < FIRST else 1 // 0 for i in range(FIRST + 1)), int)
    assert next(stream) == [1] * FIRST
    # Of long lists fewer at a time.
    found = list(in_parts([5] * 100, lambda item: item, most_words=most_words(1 << 19)))
    assert {len(batch) for batch in found} == {1}


@pytest.mark.parametrize("size", [1, 2, 100])
def test_blocks_are_written_as_their_sentences_are(tmp_path: Path, size: int) -> None:
    texts = (ODD, "\ufeff" + ODD.replace("\n", "\r\n"), ODD.rstrip("\n"))
    odd: list[Sentence] = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.conllu").write_bytes(text.encode())
        odd += read_conllu(tmp_path / f"{number}.conllu", trees="any")
    bare = [Sentence.from_columns(forms=["a", "b"]), *odd[:1], *odd[-1:], *odd]
    for sentences in ([], odd, bare, odd[-1:] + odd):
        whole, parts = io.BytesIO(), io.BytesIO()
        write_sentences(whole, sentences)
        blocks = [joined_block(sentences[i : i + size]) for i in range(0, len(sentences), size)]
        assert write_blocks(parts, [joined_block([]), *blocks]) == len(sentences)
        assert parts.getvalue() == whole.getvalue()
