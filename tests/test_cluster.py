"""Tasks on the workers of a Dask cluster: the same results, and what happens where workers fail."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tk_spacy.cluster.connection import connected
from tk_spacy.cluster.executor import TRIES, DaskExecutor
from tk_spacy.cluster.travel import as_called, pack, pack_files, unpack, write_files
from tk_spacy.errors import OptionError, UserError
from tk_spacy.parallel.executor import (
    LocalExecutor,
    Surroundings,
    Task,
    TasksFailed,
    executing,
    make_executor,
    run_all,
)
from tk_spacy.parallel.plain_data import files_of


@pytest.fixture(scope="module")
def notes() -> list[str]:
    return []


@pytest.fixture(scope="module")
def cluster(notes: list[str]) -> Iterator[DaskExecutor]:
    pytest.importorskip("distributed", reason="needs tk-spacy[cluster]")
    with connected("local:2", note=notes.append) as executor:
        assert executor is not None
        yield executor


def bytes_of(here: Surroundings, text: bytes) -> bytes:
    return text + b"x"


def double(here: Surroundings, number: int) -> int:
    for step in range(number):
        here.report(step)
    return 2 * number


@dataclass(frozen=True)
class Step:
    done: int


def steps(here: Surroundings) -> None:
    here.report(Step(1))
    time.sleep(0.6)  # so long that it is sent before the end
    here.report(Step(2))
    here.report(Step(3))


def append(here: Surroundings, path: Path, text: str) -> None:
    before = path.read_text() if path.exists() else ""
    path.write_text(before + text)


def joined(here: Surroundings, sources: tuple[Path, ...], target: Path) -> str:
    target.write_text("".join(path.read_text() for path in sources))
    return str(target)


def always_fails(here: Surroundings, log: Path) -> None:
    with log.open("a") as file:
        file.write("tried\n")
    raise RuntimeError("no such luck")


def dies_once(here: Surroundings, log: Path) -> str:
    if not log.exists():
        log.write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def dies(here: Surroundings, log: Path) -> None:
    with log.open("a") as file:
        file.write("tried\n")
    os.kill(os.getpid(), signal.SIGKILL)


def mistake(here: Surroundings, path: Path) -> None:
    raise UserError(f"{path}: line 3: no tree")


def process(here: Surroundings) -> tuple[int, int | None, Any]:
    return os.getpid(), here.n_threads, here.shared


def shared_state(n_threads: int | None) -> tuple[int, int | None]:
    return os.getpid(), n_threads


def test_no_thread_is_left_that_forbids_to_fork() -> None:
    pytest.importorskip("distributed", reason="needs tk-spacy[cluster]")
    before = set(threading.enumerate())
    with connected("local:1") as executor:
        # So large that it is packed in a thread of its own.
        large = run_all(executor, [Task("large", bytes_of, (b"x" * 20_000_000,))])
        assert large == {"large": b"x" * 20_000_001}
        assert set(threading.enumerate()) > before
    assert set(threading.enumerate()) <= before


def test_cluster_gives_the_results_and_reports_of_one_process(cluster: DaskExecutor) -> None:
    tasks = [Task(f"task {n}", double, (n,)) for n in range(6)]
    told: dict[str, list[int]] = {}

    def hear(name: str, value: int) -> None:
        told.setdefault(name, []).append(value)

    found = run_all(cluster, tasks, report=hear)
    assert found == run_all(LocalExecutor(1), tasks)
    assert told == {f"task {n}": list(range(n)) for n in range(1, 6)}


def test_cluster_hands_on_reports_of_any_type(cluster: DaskExecutor) -> None:
    told: list[tuple[str, Step]] = []
    run_all(cluster, [Task("steps", steps)], report=lambda *pair: told.append(pair))
    assert told == [("steps", Step(n)) for n in (1, 2, 3)]


def test_cluster_keeps_dependent_tasks_in_order(cluster: DaskExecutor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    names = ["a", "b", "c", "d"]
    tasks = [
        Task(name, append, (log, name), after=(names[i - 1],) if i else (), writes=(log,))
        for i, name in enumerate(names)
    ]
    run_all(cluster, tasks)
    assert log.read_text() == "abcd"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]  # the mark is gone


def test_cluster_sets_up_once_a_process(cluster: DaskExecutor) -> None:
    found = run_all(cluster, [Task(f"{i}", process) for i in range(6)], setup=shared_state)
    assert all(shared == (pid, 1) and threads == 1 for pid, threads, shared in found.values())
    assert os.getpid() not in {pid for pid, _, _ in found.values()}


def test_cluster_names_what_failed_three_times_and_does_the_rest(
    cluster: DaskExecutor, notes: list[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    tasks = [
        Task("bad", always_fails, (log,), cost=9),
        Task("next", double, (1,), after=("bad",)),
        *(Task(f"good {n}", double, (n,)) for n in range(3)),
    ]
    done: list[Any] = []
    with pytest.raises(TasksFailed, match="bad failed: RuntimeError: no such luck") as caught:
        done.extend(cluster.run(tasks))
    assert caught.value.failed == {"bad": "RuntimeError: no such luck"}
    assert dict(done) == {f"good {n}": 2 * n for n in range(3)}
    assert caught.value.not_done == ("next",)
    assert log.read_text() == "tried\n" * TRIES
    assert any("bad failed 3 times" in note for note in notes)


def test_cluster_goes_on_where_a_worker_is_killed(cluster: DaskExecutor, tmp_path: Path) -> None:
    tasks = [
        Task("killed", dies_once, (tmp_path / "log",)),
        *(Task(f"good {n}", double, (n,)) for n in range(4)),
    ]
    found = run_all(cluster, tasks)
    assert found == {"killed": "done", **{f"good {n}": 2 * n for n in range(4)}}


def test_cluster_gives_up_what_kills_its_workers(cluster: DaskExecutor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done: list[Any] = []
    with pytest.raises(TasksFailed, match="deadly failed: the worker that was at it died"):
        done.extend(cluster.run([Task("deadly", dies, (log,)), Task("good", double, (2,))]))
    assert done == [("good", 4)]
    assert log.read_text() == "tried\n" * TRIES


def test_cluster_hands_on_a_users_mistake(
    cluster: DaskExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.conllu").write_text("")
    with pytest.raises(UserError, match=r"^in\.conllu: line 3: no tree$"):
        run_all(cluster, [Task("reading", mistake, (Path("in.conllu"),))])


def test_cluster_without_shared_files_moves_them(cluster: DaskExecutor, tmp_path: Path) -> None:
    first, second, out = (tmp_path / name for name in ("a.txt", "folder", "out.txt"))
    first.write_text("one ")
    second.mkdir()
    (second / "b.txt").write_text("two")
    alone = DaskExecutor(cluster.client, cluster.address, shared_files=False)
    args = ((first, second / "b.txt"), out)
    tasks = [Task("join", joined, args, reads=(first, second), writes=(out,))]
    places = run_all(alone, tasks)
    assert out.read_text() == "one two"
    assert places["join"] != str(out)  # made elsewhere
    assert not Path(places["join"]).exists()


def test_cluster_refuses_workers_of_another_version(
    cluster: DaskExecutor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tk_spacy.cluster.executor.__version__", "99.1")
    with pytest.raises(UserError, match=r"^worker tcp://.* has tk-spacy .*, but this is 99\.1"):
        cluster.check_versions()
    log = tmp_path / "log"  # a worker that comes later is refused before it does anything
    with pytest.raises(UserError, match=r"^worker tcp://.* has tk-spacy .*, but this is 99\.1"):
        run_all(cluster, [Task("task", always_fails, (log,))])
    assert not log.exists()


def test_address_of_nobody_and_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs tk-spacy[cluster]")
    for text in ("local:0", "local", "here:1", "tcp://host"):
        with pytest.raises(OptionError, match="no address of a cluster"), connected(text):
            pass
    monkeypatch.setattr("tk_spacy.cluster.connection.SECONDS_TO_CONNECT", 1)
    with pytest.raises(UserError, match="nobody answers"), connected("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(OptionError, match="is of a cluster"), connected(None, shared_files=False):
        pass


def test_a_missing_package_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"tk-spacy\[cluster\]"), connected("local:1"):
        pass


def test_executing_takes_the_place_of_processes() -> None:
    chosen, tasks = LocalExecutor(7), [Task("a", double, (1,))]
    with executing(chosen):
        assert make_executor(tasks, processes=2, n_threads=1) is chosen
        with executing(None):
            assert make_executor(tasks, processes=2, n_threads=1) is chosen
    assert make_executor(tasks, processes=2, n_threads=1) == LocalExecutor(1)


def test_paths_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    given = [Path("there/in"), Path("out"), Path("a_package"), Path("there")]
    data, called = pack(given, made=[Path("out")])
    here = [tmp_path / "there/in", tmp_path / "out", Path("a_package"), tmp_path / "there"]
    assert unpack(data, None) == here
    root = Path("/root")
    moved = [root / path.relative_to("/") if path.is_absolute() else path for path in here]
    assert unpack(data, root) == moved
    assert as_called(f"{moved[0]}:3: no", called, root) == "there/in:3: no"


def test_files_travel_whole(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a").write_bytes(b"\0one")
    for source in (folder, folder / "deep/a"):
        target = tmp_path / "copy"
        write_files(target, pack_files(source))
        assert pack_files(target) == pack_files(source)
        write_files(target, None)
        assert not target.exists()
    assert pack_files(tmp_path / "nothing") is None


def test_what_is_no_plain_data_names_no_files(tmp_path: Path) -> None:
    class Local:  # which no other process could open
        path = tmp_path

    there, missing = tmp_path / "a", tmp_path / "b"
    there.touch()
    assert files_of((1, [there, missing], {"x": there})) == (there,)
    assert files_of(Local()) == files_of((there, lambda: None)) == ()
