"""How children of a process pool end."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from tk_spacy.parallel import processes
from tk_spacy.parallel.processes import begin_child, ending


@ending
def leave() -> None:
    """What the handler of SIGTERM does amid a job."""
    sys.exit(1)


@ending
def touch(path: str) -> int:
    """A job like any other."""
    Path(path).touch()
    return os.getpid()


def test_a_child_that_leaves_takes_no_further_job(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(touch, str(tmp_path / "before")).result() != os.getpid()
        futures = [pool.submit(leave), pool.submit(touch, str(tmp_path / "after"))]
        for future in futures:
            with pytest.raises(BrokenProcessPool):
                future.result()
    assert [path.name for path in tmp_path.iterdir()] == ["before"]


def swallow(ready: str) -> None:
    """A child that takes SystemExit for something else and goes on, as a pool's worker may."""
    processes.GRACE = 0.3
    begin_child()
    Path(ready).touch()
    for _ in range(2):
        try:
            time.sleep(600)
        except SystemExit:
            continue


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_child_that_will_not_leave_is_gone_after_a_while(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = multiprocessing.get_context("spawn").Process(target=swallow, args=(str(ready),))
    child.start()
    while not ready.exists():
        time.sleep(0.05)
    child.terminate()
    child.join(60)
    code = child.exitcode
    child.kill()
    assert code == 1
