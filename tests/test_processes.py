"""How children of a process pool end."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from tk_spacy.processes import ending


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
