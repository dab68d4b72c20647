"""Several questions answered at the same time, on a thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from tk_spacy.parallel.stopping import Stop
from tk_spacy.parallel.threads import effective_n_threads

T = TypeVar("T")


def answers(questions: Sequence[Callable[[], T]], *, n_threads: int | None) -> list[T]:
    """What each returns, in their order; at most n_threads at a time, None for all cores.

    They must not depend on each other.  Where one raises, the others are asked to stop, and what it
    raised is raised here when they have ended.
    """
    n_threads = min(effective_n_threads(n_threads), len(questions))
    if n_threads < 2:
        return [question() for question in questions]
    stop = Stop()
    with ThreadPoolExecutor(n_threads) as pool:
        # Contexts of their own: thinc keeps there which numpy or cupy it computes with.
        asked = [pool.submit(copy_context().run, stop.run, question) for question in questions]
        try:
            ended, _ = wait(asked, return_when=FIRST_EXCEPTION)
            for future in asked:
                if future in ended:
                    future.result()
        except BaseException:
            stop.request()  # or the pool would wait for all answers
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in asked]
