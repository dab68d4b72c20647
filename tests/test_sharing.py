"""Items shared among forked processes: order, errors, stops, and what is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from test_executor import Odd

from tk_spacy.errors import TreebankError, UserError
from tk_spacy.parallel import sharing
from tk_spacy.parallel.executor import THREAD_VARIABLES, TaskError
from tk_spacy.parallel.sharing import UNDER_WAY, in_order, may_fork
from tk_spacy.parallel.threads import count_threads, effective_n_threads, openmp_enabled

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")


def slow_square(number: int) -> tuple[int, int]:
    """Later items are done sooner."""
    time.sleep(0.02 * (number % 3 == 1))
    return number * number, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_results_come_in_order(processes: int, count: int) -> None:
    found = list(in_order(range(count), slow_square, processes=processes))
    assert [square for square, _ in found] == [number * number for number in range(count)]
    others = {pid for _, pid in found[1:]} - {os.getpid()}
    assert all(pid == os.getpid() for _, pid in found[:1])
    assert len(others) == (min(processes, count - 1) if processes > 1 and count > 2 else 0)
    assert multiprocessing.active_children() == []


def test_large_items_and_results_do_not_block() -> None:
    sizes = [3_000_000 + number for number in range(12)]
    found = in_order((bytes(size) for size in sizes), lambda item: item + item, processes=3)
    assert [len(item) for item in found] == [2 * size for size in sizes]


def test_few_items_are_under_way() -> None:
    read = 0

    def endless() -> Iterator[int]:
        nonlocal read
        while True:
            yield read
            read += 1

    running = in_order(endless(), lambda item: item, processes=2)
    for number in range(100):
        assert next(running) == number
        assert read <= number + 1 + 2 * UNDER_WAY
    running.close()
    assert multiprocessing.active_children() == []


def refuse(number: int) -> int:
    if number in (5, 7):
        raise TreebankError("a.conllu", number, "is broken")
    return number


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_errors_come_after_the_results_before_them(processes: int) -> None:
    def items() -> Iterator[int]:
        yield from range(4)
        raise TreebankError("b.conllu", 4, "ends here")

    seen: list[int] = []
    with pytest.raises(UserError, match=r"^b.conllu:4: ends here"):
        seen.extend(in_order(items(), refuse, processes=processes))
    assert seen == [0, 1, 2, 3]
    seen = []
    with pytest.raises(UserError, match=r"^a.conllu:5: is broken"):
        seen.extend(in_order(range(20), refuse, processes=processes))
    assert seen == [0, 1, 2, 3, 4]
    assert multiprocessing.active_children() == []


def odd(number: int) -> int:
    if number:
        raise Odd("an odd", " fault")
    return number


def test_an_error_that_cannot_travel_is_told() -> None:
    with pytest.raises(RuntimeError, match="Odd: an odd fault"):
        list(in_order(range(5), odd, processes=2))


def die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_process_is_told() -> None:
    reason = (
        r"^in.conllu: a process that worked on it was killed by SIGKILL \(most often: out of mem"
    )
    with pytest.raises(TaskError, match=reason) as caught:
        list(in_order(range(9), die, processes=2, what="in.conllu"))
    assert caught.value.killed
    assert multiprocessing.active_children() == []


def test_a_process_killed_amid_a_message_is_told() -> None:
    def work(number: int) -> Any:
        if number == 2:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return [bytes(1 << 20)] * 2, Slow()
        return number

    running = in_order(range(9), work, processes=2)
    with pytest.raises(TaskError, match="was killed by SIGKILL"):
        list(running)


class Slow:
    """Takes its time to be sent."""

    def __reduce__(self) -> Any:
        time.sleep(5)
        return int, ()


def test_where_no_process_can_be_made_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(sharing._Worker, "start", start)
    found = list(in_order(range(9), slow_square, processes=2))
    assert found == [(number * number, os.getpid()) for number in range(9)]


def test_a_process_with_other_threads_does_not_fork() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    assert may_fork()
    thread.start()
    try:
        assert not may_fork()
        found = list(in_order(range(5), slow_square, processes=2))
    finally:
        end.set()
        thread.join()
    assert {pid for _, pid in found} == {os.getpid()}
    assert may_fork()


def test_no_process_is_forked_beside_a_thread_that_began_meanwhile() -> None:
    """As one that holds a lock, which a forked process would wait for."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)

    def items() -> Iterator[int]:
        for number in range(9):
            if number == 2:  # the first one that is shared is read, none is handed out
                thread.start()
            yield number

    try:
        found = list(in_order(items(), slow_square, processes=2))
    finally:
        end.set()
        thread.join()
    assert [square for square, _ in found] == [number * number for number in range(9)]
    assert {pid for _, pid in found} == {os.getpid()}


COPIED = """
import os, sys, time
from tk_spacy.parallel.sharing import in_order

running = in_order(range(20), abs, processes=2)
assert [next(running) for _ in range(3)] == [0, 1, 2]
child = os.fork()
if not child:
    try:
        {what}
    except RuntimeError as error:
        print("shared among the processes of another" in str(error), flush=True)
    os._exit(7)
assert os.waitpid(child, 0)[1] >> 8 == 7
print(list(running) == list(range(3, 20)))
"""


@pytest.mark.parametrize(
    ("what", "told"), [("running.close()", ""), ("next(running)", "True\n")], ids=["close", "next"]
)
def test_a_copy_in_a_forked_process_leaves_the_others_alone(what: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COPIED.format(what=what)],
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout.decode(), done.stderr.decode()) == (f"{told}True\n", "")


def threads_used(number: int) -> tuple[int, float]:
    """OpenMP's threads, asked for more than one; and a product that BLAS may share."""
    matrix = np.full((600, 600), number, dtype=np.float32)
    return count_threads(effective_n_threads(4)), float((matrix @ matrix)[0, 0])


def test_processes_use_one_thread_each() -> None:
    big = np.ones((2000, 2000), dtype=np.float32)
    assert (big @ big)[0, 0] == 2000  # BLAS has its threads now
    found = list(in_order(range(6), threads_used, processes=2))
    assert not openmp_enabled() or found[0][0] == 4  # in this process
    assert [threads for threads, _ in found[1:]] == [1] * 5
    assert [product for _, product in found] == [600 * number * number for number in range(6)]


IN_A_LOOP = """
import asyncio, signal
from tk_spacy.parallel.sharing import in_order

async def main():
    heard = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.append, "SIGTERM")
    print(sum(in_order(range(9), abs, processes=2)))
    await asyncio.sleep(0.1)
    print(heard)

asyncio.run(main())
"""


def test_an_event_loop_hears_of_its_own_signals_alone() -> None:
    """Processes are ended by SIGTERM, of which the loop of their parent must not hear."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_LOOP], capture_output=True, timeout=60, check=True
    )
    assert done.stdout.decode().split() == ["36", "[]"]
    assert done.stderr == b""


WITHOUT_STDERR = """
import sys
from tk_spacy.parallel.sharing import in_order

def work(number):
    if number:  # the first item is this process's own
        print("noise", file=sys.stderr)
    return number

with open(sys.argv[1], "w+") as file:
    assert file.fileno() == 2 and sys.stderr is None
    print(sum(in_order(range(9), work, processes=2)))
    assert open(sys.argv[1]).read() == ""
"""


def test_without_stderr_nothing_is_written_to_another_file(tmp_path: Path) -> None:
    """Where it is closed, its number is that of the next file that is opened."""
    command = ["sh", "-c", '"$@" 2>&-', "sh", sys.executable, "-c", WITHOUT_STDERR]
    command.append(str(tmp_path / "file"))
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout == b"36\n"


SCRIPT = """
import sys, time
from pathlib import Path
from tk_spacy.parallel.sharing import in_order

def work(number):
    if number:
        Path(sys.argv[1], str(number)).touch()
        time.sleep(600)

try:
    list(in_order(range(5), work, processes=2))
finally:
    Path(sys.argv[1], "end").touch()
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind(tmp_path: Path, sent: signal.Signals) -> None:
    """Ctrl-C reaches all processes of the group; the others the parent alone."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as process:
        while len(list(tmp_path.iterdir())) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        children = psutil.Process(process.pid).children()
        assert len(children) == 2
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)
        else:
            os.kill(process.pid, sent)
        # Ends when the last process has closed stderr.
        _, err = process.communicate(timeout=60)
        psutil.wait_procs(children, timeout=20)
        assert not any(child.is_running() for child in children)
    # Of the parent's own `finally` blocks no child runs any.
    assert (tmp_path / "end").exists() == (sent == signal.SIGINT)
    assert err.count(b"Traceback") == (sent == signal.SIGINT)


def frozen_and_threads(_: int) -> tuple[int, list[str | None]]:
    return gc.get_freeze_count(), [os.environ.get(name) for name in THREAD_VARIABLES]


def test_workers_freeze_what_is_there_and_leave_what_the_parent_froze() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        own, *found = in_order(range(6), frozen_and_threads, processes=2)
        # What was frozen may have been freed meanwhile; thawed, there would be none of it.
        assert before // 2 < gc.get_freeze_count() <= before
        assert before // 2 < own[0] <= before
        assert all(count >= before // 2 for count, _ in found)
    finally:
        gc.unfreeze()
    assert gc.get_freeze_count() == 0
    _, *found = in_order(range(6), frozen_and_threads, processes=2)
    assert all(count > before // 2 for count, _ in found)
    # Libraries that a worker loads later read these.
    assert all(threads == ["1"] * len(THREAD_VARIABLES) for _, threads in found)
    assert gc.get_freeze_count() == 0


SIGNALLED_AT_FORK = """
import os, signal, sys, time
from tk_spacy.parallel.sharing import in_order
from tk_spacy.parallel.threads import count_threads

name, when, sent = sys.argv[1], sys.argv[2], []
count_threads(4)  # OpenMP keeps them; they take signals that the main thread blocks

def stop(number, frame):
    raise KeyboardInterrupt(signal.Signals(number).name)

def send():
    if not sent:
        sent.append(name)
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(0.3)  # until another thread has taken it; then the handler runs

signal.signal(getattr(signal, name), stop)
os.register_at_fork(**{when: send})
try:
    list(in_order(range(9), abs, processes=2))
except KeyboardInterrupt as error:
    print("stopped by", *error.args, end=" ")
print(sent)
"""


@pytest.mark.skipif(not openmp_enabled(), reason="there are no other threads to take signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("when", ["before", "after_in_parent"])
def test_a_signal_during_a_fork_is_not_lost(name: str, when: str) -> None:
    """Python drops what is raised in functions that it calls around a fork."""
    command = [sys.executable, "-c", SIGNALLED_AT_FORK, name, when]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == f"stopped by {name} ['{name}']\n"
    assert done.stderr == b""


INTERRUPTED_STOP = """
import multiprocessing, signal, sys, time
from tk_spacy.parallel.sharing import in_order

def work(number):
    if number:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as a process that hangs
    return number

running = in_order(range(9), work, processes=2)
assert [next(running), next(running), next(running)] == [0, 1, 2]
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.5)
start = time.monotonic()
try:
    running.close()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start < 5, multiprocessing.active_children())
"""


def test_who_interrupts_the_end_of_processes_has_them_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_STOP], capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"interrupted True []\n", b"")
