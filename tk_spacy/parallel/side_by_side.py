"""Several questions answered at the same time, on a thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tk_spacy.parallel.stopping import Stop
from tk_spacy.parallel.threads import effective_n_threads

T = TypeVar("T")


def answers(questions: Sequence[Callable[[], T]], *, n_threads: int | None) -> list[T]:
    """What each returns, in their order; one after the other where there is but one thread.

    They must not depend on each other.  Where one raises, the others are asked to stop.
    """
    if effective_n_threads(n_threads) == 1 or len(questions) < 2:
        return [question() for question in questions]
    stop = Stop()
    with ThreadPoolExecutor(len(questions)) as pool:
        try:
            return list(pool.map(stop.run, questions))
        except BaseException:
            stop.request()  # or the pool would wait for all answers
            raise
