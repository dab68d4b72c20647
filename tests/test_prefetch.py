"""Work ahead in a thread: order, bounds, errors, early ends; and the reranker that uses it."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from itertools import count, islice

import pytest

from tk_spacy.parallel.prefetch import made_ahead

SOME = ContextVar("SOME", default="none")


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    assert [thread for thread in threading.enumerate() if thread.name == "ahead"] == []


def numbers(made: list[int], stop: int | None = None, closed: list[str] | None = None):
    try:
        for i in count() if stop is None else range(stop):
            made.append(i)
            yield i
    finally:
        if closed is not None:
            closed.append(threading.current_thread().name)


def test_ahead_keeps_the_order():
    assert list(made_ahead(numbers([], 1000))) == list(range(1000))
    assert list(made_ahead(numbers([], 0))) == []


@pytest.mark.parametrize("limit", [1, 2])
def test_ahead_makes_no_more_than_the_limit(limit):
    made: list[int] = []
    items = made_ahead(numbers(made), limit=limit)
    for i in range(5):
        assert next(items) == i
        deadline = time.monotonic() + 10
        while len(made) < i + 1 + limit and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.005)
        assert len(made) == i + 1 + limit
    items.close()


def test_ahead_raises_an_error_where_it_came():
    def failing():
        yield from range(3)
        raise ValueError("the fourth is bad")

    items = made_ahead(failing())
    assert list(islice(items, 3)) == [0, 1, 2]
    with pytest.raises(ValueError, match="the fourth is bad"):
        next(items)
    assert list(items) == []


@pytest.mark.parametrize("how", ["close", "forget", "throw"])
def test_ahead_ends_early_and_closes_its_source(how):
    closed: list[str] = []
    items = made_ahead(numbers([], closed=closed))
    assert next(items) == 0
    if how == "close":
        items.close()
    elif how == "throw":
        with pytest.raises(KeyboardInterrupt):
            items.throw(KeyboardInterrupt)
    else:
        del items
        gc.collect()
    assert closed == ["ahead"]


def test_ahead_has_the_context_of_its_caller():
    def seen():
        yield SOME.get()

    token = SOME.set("mine")
    assert list(made_ahead(seen())) == ["mine"]
    SOME.reset(token)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process there")
def test_ahead_bears_ctrl_c():
    program = """
import time
from tk_spacy.parallel.prefetch import made_ahead
def slow():
    yield 1
    while True:
        time.sleep(0.01)
        yield 2
for item in made_ahead(slow()):
    print(item, flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "1\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_garbage_in_a_cycle_may_be_collected_by_the_thread_itself():
    dropped, collected = threading.Event(), threading.Event()

    def numbers():
        yield 0
        dropped.wait(30)
        gc.collect()
        collected.set()
        yield 1

    cycle = []
    ahead = made_ahead(numbers())
    cycle += [ahead, cycle]
    assert next(ahead) == 0
    del ahead, cycle
    dropped.set()
    assert collected.wait(30)
    for thread in threading.enumerate():
        if thread.name == "ahead":
            thread.join(30)
