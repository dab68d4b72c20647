"""One loaded pipeline used from many threads, after a fork, and in processes: the same trees."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import spacy
from pipelines import new_docs, trees
from spacy.language import Language
from trainings import biaffine_training

from tk_spacy.parallel.sharing import may_fork

pytestmark = pytest.mark.slow

DOCS = 12
THREADS = 16
SECONDS = 120


def loaded(n_threads: int) -> Language:
    own = {"n_threads": n_threads}
    return spacy.load(biaffine_training()[0], config={"components": {"tk_reranker": own}})


def parsed(nlp: Language) -> Any:
    return trees(nlp.pipe(new_docs(nlp, DOCS, sentences_each=2), batch_size=5))


def parsed_singly(nlp: Language) -> Any:
    return trees([nlp(doc) for doc in new_docs(nlp, DOCS, sentences_each=2)])


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("way", [parsed, parsed_singly])
def test_threads_get_the_trees_of_one(way: Callable[[Language], Any], n_threads: int) -> None:
    expected = parsed(loaded(1))
    nlp = loaded(n_threads)
    with ThreadPoolExecutor(THREADS) as pool:
        found = [pool.submit(way, nlp) for _ in range(2 * THREADS)]
        assert all(one.result(SECONDS) == expected for one in found)
    assert multiprocessing.active_children() == []


def _serve(nlp: Language, answers: Any) -> None:
    """As a server's worker that was forked with the pipeline loaded, with threads of its own."""
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(parsed, nlp) for _ in range(3)]
        answers.put([one.result(SECONDS) for one in found])


@pytest.mark.skipif(not may_fork(), reason="this process may not fork")
def test_processes_that_are_forked_with_a_used_pipeline() -> None:
    nlp = loaded(2)
    expected = parsed(nlp)  # OpenMP's threads, and BLAS's, are there now
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    workers = [context.Process(target=_serve, args=(nlp, answers)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [answers.get(timeout=SECONDS) for _ in workers]
    for worker in workers:
        worker.join(SECONDS)
    assert found == [[expected] * 3] * 3
    assert parsed(nlp) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_amid_a_stream_leaves_the_stream_alone() -> None:
    nlp = loaded(2)
    expected = parsed(nlp)
    running = nlp.pipe(new_docs(nlp, DOCS, sentences_each=2), batch_size=5)
    first = next(running)
    child = os.fork()
    if child == 0:
        os._exit(0 if parsed(nlp) == expected else 1)
    done = threading.Event()
    status: list[int] = []

    def wait() -> None:
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()

    threading.Thread(target=wait, daemon=True).start()
    assert done.wait(SECONDS)
    assert status == [0]
    assert trees([first, *running]) == expected
