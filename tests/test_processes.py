"""How child processes end."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from tk_spacy.parallel import processes
from tk_spacy.parallel.processes import begin_child


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
