"""The executor: order, results, progress, failures and stops, in this process and in several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.parallel.executor import (
    THREAD_VARIABLES,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    Surroundings,
    Task,
    TaskError,
    make_executor,
    run_all,
)

EXECUTORS = [LocalExecutor(2), ProcessExecutor(2)]


def square(here: Surroundings, number: int) -> int:
    here.report(("squaring", number))
    return number * number


def append(here: Surroundings, path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def describe(here: Surroundings) -> tuple[Any, ...]:
    return here.n_threads, here.shared, os.getpid(), [os.environ.get(n) for n in THREAD_VARIABLES]


def mistake(here: Surroundings) -> None:
    raise TreebankError("a.conllu", 3, "is broken")


class Unreadable:
    """Can be pickled, but not read again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


class Odd(Exception):
    """Cannot be unpickled: neither what it is made from, nor what it keeps."""

    def __init__(self, a: str, b: str) -> None:
        super().__init__(a + b)
        self.kept = Unreadable()  # some libraries change how errors are pickled, not this


def fault(here: Surroundings) -> None:
    raise Odd("an odd", " fault")


def unsendable(here: Surroundings) -> Any:
    return lambda: None


def die(here: Surroundings, path: str) -> None:
    while not Path(path).exists():  # until the other task is done
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def linger(here: Surroundings, path: str) -> None:
    """Says that it is there, and tidies up when it is told to leave."""
    try:
        Path(path).touch()  # within: it may be told to leave as soon as that is seen
        time.sleep(600)
    finally:
        Path(path).unlink()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_executor_gives_all_results_and_reports(executor: Executor) -> None:
    tasks = [Task(f"task {i}", square, (i,)) for i in range(5)]
    seen: list[tuple[str, Any]] = []
    found = run_all(executor, tasks, report=lambda name, value: seen.append((name, value)))
    assert found == {f"task {i}": i * i for i in range(5)}
    assert sorted(seen) == [(f"task {i}", ("squaring", i)) for i in range(5)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_executor_keeps_dependent_tasks_in_order(executor: Executor, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    names = ["c", "a", "d", "b"]
    tasks = [
        Task(name, append, (path, name), after=tuple(names[max(0, i - 1) : i]))
        for i, name in enumerate(names)
    ]
    run_all(executor, tasks)
    assert Path(path).read_text().split() == names


def test_executor_begins_what_most_depends_on(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    tasks = [
        Task("short", append, (path, "short"), cost=1),
        Task("long", append, (path, "long"), cost=5),
        Task("first", append, (path, "first"), cost=2),  # with what waits for it, 6
        Task("second", append, (path, "second"), cost=4, after=("first",)),
    ]
    run_all(ProcessExecutor(1), tasks)
    assert Path(path).read_text().split() == ["first", "long", "second", "short"]


def test_executor_sets_up_each_process_once() -> None:
    tasks = [Task(str(i), describe) for i in range(6)]
    here = describe(Surroundings(None, print))
    found = run_all(ProcessExecutor(2, n_threads=3), tasks, setup=shared_state)
    assert {(threads, shared[0]) for threads, shared, *_ in found.values()} == {(3, "set up on 3")}
    assert len({shared[1] for _, shared, *_ in found.values()}) == len(
        {process for *_, process, _ in found.values()}
    )
    assert os.getpid() not in {process for *_, process, _ in found.values()}
    assert {tuple(values) for *_, values in found.values()} == {("3", "3", "3")}
    assert describe(Surroundings(None, print)) == here
    alone = run_all(LocalExecutor(3), tasks[:2], setup=shared_state)
    assert len({shared for _, shared, *_ in alone.values()}) == 1
    assert {process for *_, process, _ in alone.values()} == {os.getpid()}


def shared_state(n_threads: int | None) -> tuple[str, int]:
    return f"set up on {n_threads}", time.monotonic_ns()


def test_executor_suits_the_tasks() -> None:
    one = [Task("a", square, (1,)), Task("b", square, (2,), after=("a",))]
    two = [*one, Task("c", square, (3,))]
    assert make_executor(one, processes=4, n_threads=3) == LocalExecutor(3)
    assert make_executor(two, processes=1, n_threads=3) == LocalExecutor(3)
    assert make_executor(two, processes=4, n_threads=3) == ProcessExecutor(2, 1)
    assert make_executor([], processes=4, n_threads=None) == LocalExecutor(None)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_executor_refuses_tasks_that_cannot_be_ordered(executor: Executor) -> None:
    a, b = Task("a", square, (1,)), Task("b", square, (2,), after=("a",))
    assert run_all(executor, []) == {}
    with pytest.raises(ValueError, match="two tasks are called 'a'"):
        run_all(executor, [a, a])
    with pytest.raises(ValueError, match=r"task 'b' waits for \['a'\], none of which is before it"):
        run_all(executor, [b, a])


# Failures


@pytest.mark.parametrize("executor", EXECUTORS)
def test_executor_hands_on_a_users_mistake(executor: Executor) -> None:
    with pytest.raises(UserError, match=r"^a\.conllu:3: is broken$"):
        run_all(executor, [Task("a", mistake), Task("b", square, (1,))])


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (fault, "^reading a failed: RuntimeError: Odd: an odd fault$"),
        (unsendable, "^reading a failed: .*pickle"),
    ],
)
def test_executor_names_the_task_of_a_fault(work: Any, reason: str) -> None:
    with pytest.raises(TaskError, match=reason) as caught:
        run_all(ProcessExecutor(2), [Task("reading a", work)])
    assert not caught.value.killed


def test_executor_names_the_task_whose_process_was_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "done")
    tasks = [Task("a", die, (path,)), Task("b", append, (path, "b"))]
    seen = []
    reason = r"^the process of a was killed by SIGKILL \(most often: out of memory\)$"
    with pytest.raises(TaskError, match=reason) as caught:
        seen.extend(ProcessExecutor(2).run(tasks))
    assert caught.value.killed
    assert seen == [("b", None)]
    assert psutil.Process().children() == [
        child for child in psutil.Process().children() if "resource_tracker" in str(child.cmdline())
    ]


@pytest.mark.parametrize("how", ["failure", "caller"])
def test_executor_stops_the_others(tmp_path: Path, how: str) -> None:
    path = tmp_path / "there"
    tasks = [Task("long", linger, (str(path),), cost=9), Task("next", wait_for, (str(path), how))]
    running = ProcessExecutor(2).run(tasks)
    if how == "failure":
        with pytest.raises(UserError, match="is broken"):
            next(running)
    else:
        assert next(running) == ("next", None)
        assert path.exists()
        running.close()  # type: ignore[attr-defined]  # a generator
    assert not path.exists()


def wait_for(here: Surroundings, path: str, how: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)
    if how == "failure":
        mistake(here)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_executor_leaves_no_process_behind(tmp_path: Path, sent: signal.Signals) -> None:
    """Ctrl-C reaches all processes of the group; SIGKILL the parent alone."""
    paths = [tmp_path / name for name in ("a", "b")]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_executor import *\n"
        "if __name__ == '__main__':\n"
        "    tasks = [Task(p, linger, (p,)) for p in sys.argv[2:]]\n"
        "    run_all(ProcessExecutor(2), tasks)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    command = [sys.executable, str(script), str(Path(__file__).parent), *map(str, paths)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as process:
        while not all(path.exists() for path in paths):
            assert process.poll() is None
            time.sleep(0.05)
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)
        else:
            os.kill(process.pid, sent)
        process.wait(60)
        last = time.monotonic() + 60
        while any(path.exists() for path in paths):
            assert time.monotonic() < last
            time.sleep(0.05)
