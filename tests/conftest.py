"""Fixtures that several test modules use."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_configure() -> None:
    """Ctrl-C interrupts the processes that tests start, though a shell that started the tests in
    the background has it ignored by all below it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest module comes first, so that other cores are busy beside it to the end."""
    items.sort(key=lambda item: item.path.name != "test_readme.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With -n the tests of a file run in one process, which then trains each model but once."""
    if config.getoption("dist") != "load":  # another way was asked for
        return None
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.fixture(autouse=True)
def _no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Of a thread that a test leaves at work no later test could tell, but none could fork."""
    before = set(threading.enumerate())
    yield
    if "cluster" in request.fixturenames:
        return  # it has some until its end
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(timeout=10)
    assert not [thread for thread in left if thread.is_alive()]


@pytest.fixture(scope="session", autouse=True)
def _child_processes() -> Iterator[None]:
    """Child processes import the installed package, not the folder they stand in, and find the
    commands installed beside this interpreter.  Tables are as wide everywhere, be there a terminal
    or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONSAFEPATH", "1")
        patch.setenv("COLUMNS", "120")
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with the six real treebanks; tests that need it are skipped without it."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("TK_SPACY_SHARED") or default)
    if not (folder / "treebanks").is_dir():
        pytest.skip(f"no treebanks in {folder} (set TK_SPACY_SHARED to the folder that has them)")
    return folder
