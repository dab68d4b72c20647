"""Signals and requests to stop amid compiled searches, and other threads that go on meanwhile."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sampling_parsers import random_parser, random_sentence
from search_kernels import random_kernel
from test_long_sentences import long_sentence
from test_projective import scorer_of, trained
from trainings import parser_training, parsers_training

from tk_spacy.kbest.candidates import LabelInventory
from tk_spacy.parallel.prefetch import made_ahead
from tk_spacy.parallel.stopping import Stop, Stopped, raise_if_stopped
from tk_spacy.parsers.projective import decoder
from tk_spacy.parsers.projective.labels import Labeller, label_trees
from tk_spacy.parsers.sampling.parser import SamplingParser
from tk_spacy.parsers.sampling.search.words import encode
from tk_spacy.parsers.spacy_transition.loading import load_pipeline
from tk_spacy.parsers.spacy_transition.source import SpacySource
from tk_spacy.treebank.conllu import Sentence, write_conllu
from tk_spacy.trees.spanning import k_best_spanning_trees

DELAY = 0.3
HEARD = 2.5
"""Seconds after which a signal is heard even on a busy machine; alone it is a tenth of a second."""
ENDLESS = {"restarts": 10_000, "patience": 10_000, "list_restarts": 10_000, "list_patience": 10_000}

needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
THREADS = pytest.mark.parametrize("n_threads", [1, 2])


class Alarm(Exception):
    """What the handler of the alarm raises."""


@contextmanager
def alarm() -> Iterator[None]:
    """An Alarm in the main thread after DELAY, which must end the block soon."""

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    gc.disable()  # an exception in a callback of its own (Hypothesis has one) would be lost
    signal.setitimer(signal.ITIMER_REAL, DELAY)
    started = time.monotonic()
    try:
        with pytest.raises(Alarm):
            yield
        assert time.monotonic() - started < DELAY + HEARD
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def endless_parser(**settings: object) -> tuple[SamplingParser, Sentence]:
    """A parser whose searches take minutes, and a sentence for it that is searched whole."""
    rng = np.random.default_rng(5)
    sentence = random_sentence(rng, 200)
    some = [random_sentence(rng, 8) for _ in range(20)]
    return random_parser(rng, [sentence, *some], **{**ENDLESS, **settings}), sentence


# Signals in the main thread


@needs_alarm
@THREADS
@pytest.mark.parametrize("neighbours", [0, 5])
def test_search_hears_signals(n_threads: int, neighbours: int) -> None:
    """Also where the main thread has nothing left to do, and another one has the long sentence."""
    parser, sentence = endless_parser()
    short = [random_sentence(np.random.default_rng(i), 3) for i in range(neighbours)]
    for sentences in ([*short, sentence], [sentence, *short]):
        with alarm():
            list(parser.parse(sentences, n_threads=n_threads))


@needs_alarm
@THREADS
def test_search_for_lists_hears_signals(n_threads: int) -> None:
    parser, sentence = endless_parser()
    with alarm():
        list(parser.kbest([sentence], k=50, inventory=LabelInventory(), n_threads=n_threads))


@needs_alarm
@THREADS
def test_search_with_a_kernel_hears_signals(n_threads: int) -> None:
    parser, sentence = endless_parser()
    rng = np.random.default_rng(6)
    scales = {"arc": 0.1, "sibling": 0.1, "grandparent": 0.1}
    kernel, _ = random_kernel(rng, parser.schema, [random_sentence(rng, 8)], scales)
    parser = replace(parser, kernel=kernel)
    with alarm():
        list(parser.parse([sentence], n_threads=n_threads))


@needs_alarm
@THREADS
@pytest.mark.parametrize("work", ["kept_heads", "decode", "score_trees", "label_trees"])
def test_projective_searches_hear_signals(work: str, n_threads: int) -> None:
    parser = trained()
    corpus = encode(parser.schema, [random_sentence(np.random.default_rng(7), 100)] * 1500)
    where = corpus.fields, corpus.starts, corpus.lengths
    owners = np.arange(0, 25 * len(corpus) + 1, 25, dtype=np.int32)
    chains = np.tile(np.maximum(np.arange(101, dtype=np.int32) - 1, 0), int(owners[-1]))
    labeller = Labeller(parser.label_weights, parser.places, morph_end=parser.schema.n_columns)
    works: dict[str, Callable[[], object]] = {
        "kept_heads": lambda: decoder.kept_heads(scorer_of(parser), *where, n_threads=n_threads),
        "decode": lambda: decoder.decode(scorer_of(parser), *where, n_threads=n_threads),
        "score_trees": lambda: decoder.score_trees(
            scorer_of(parser), *where, owners, chains, n_threads=n_threads
        ),
        "label_trees": lambda: label_trees(labeller, *where, owners, chains, n_threads=n_threads),
    }
    with alarm():
        works[work]()


@needs_alarm
def test_spanning_trees_hear_signals() -> None:
    scores = np.random.default_rng(1).normal(size=(301, 301))
    with alarm():
        k_best_spanning_trees(scores, 10_000)


@needs_alarm
@pytest.mark.slow
def test_discrepancy_search_hears_signals() -> None:
    source = SpacySource(load_pipeline(parser_training()[0]), runs=50)
    with alarm():
        list(source.candidates([long_sentence(200)], k=2000))


@needs_alarm
def test_searches_after_a_signal_find_what_they_found_before() -> None:
    parser, sentence = endless_parser(restarts=3)
    wild, _ = endless_parser()
    before = [heads.tolist() for heads, _ in parser.parse([sentence])]
    with alarm():
        list(wild.parse([sentence]))
    assert [heads.tolist() for heads, _ in parser.parse([sentence])] == before


# Other threads


@THREADS
def test_other_threads_run_during_a_search(n_threads: int) -> None:
    parser, sentence = endless_parser(restarts=2000)
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    list(parser.parse([sentence], n_threads=n_threads))
    seconds = time.monotonic() - started
    done.set()
    thread.join()
    assert seconds > 0.2, "too short a search to tell anything"
    gaps = np.diff([started, *ticks, started + seconds])
    assert gaps.max() < max(0.5, seconds / 4)
    assert len(ticks) > 5


# Requests to stop


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


@THREADS
@pytest.mark.parametrize("outer", [False, True])
def test_thread_is_stopped_amid_a_search(n_threads: int, outer: bool) -> None:
    parser, sentence = endless_parser()
    around = Stop()
    stop = around.run(Stop)  # ends with the one around it
    thread, errors = in_thread(
        lambda: stop.run(lambda: list(parser.parse([sentence], n_threads=n_threads)))
    )
    time.sleep(DELAY)
    assert thread.is_alive()
    assert not stop.requested
    started = time.monotonic()
    (around if outer else stop).request()
    thread.join(30)
    assert time.monotonic() - started < HEARD
    assert [type(error) for error in errors] == [Stopped]


def test_stop_concerns_what_runs_under_it_alone() -> None:
    parser, sentence = endless_parser(restarts=2)
    stop = Stop()
    stop.request()
    raise_if_stopped()
    assert len(list(parser.parse([sentence]))) == 1
    with pytest.raises(Stopped):
        stop.run(raise_if_stopped)
    with pytest.raises(Stopped):
        stop.run(lambda: list(parser.parse([sentence])))
    raise_if_stopped()


def test_work_ahead_is_stopped_amid_a_search() -> None:
    parser, sentence = endless_parser()

    def trees():
        yield "first"
        yield from parser.parse([sentence])

    ahead = made_ahead(trees())
    assert next(ahead) == "first"
    time.sleep(DELAY)
    started = time.monotonic()
    ahead.close()
    assert time.monotonic() - started < HEARD


# Commands


def endless_copy(model: Path, target: Path) -> Path:
    """A model whose sampling parser searches for minutes."""
    shutil.copytree(model, target)
    meta = next(path for path in target.rglob("meta.json") if path.parent.name == "tk_parser")
    data = json.loads(meta.read_text(encoding="utf-8"))
    data["settings"] |= ENDLESS
    meta.write_text(json.dumps(data), encoding="utf-8")
    return target


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("command", ["parse", "rerank"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_commands_end_amid_a_long_sentence(
    tmp_path: Path, command: str, threads: int, sent: signal.Signals, code: int
) -> None:
    model = endless_copy(parsers_training()[0], tmp_path / "model")
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    write_conllu(source, [long_sentence(20), long_sentence(2000)])
    program = (
        "import sys, threading, time; from tk_spacy.parsers.sampling import parser\n"
        "inner = parser.decode\n"
        "def decode(*args, **rest):\n"
        "    print('searching', flush=True)\n"
        "    return inner(*args, **rest)\n"
        "parser.decode = decode\n"
        "from tk_spacy.cli import main\n"
        "main()\n"
    )
    arguments = [command, model, source, "-o", target, "--threads", threads, "--quiet"]
    if command == "parse":
        arguments = [command, model / "tk_parser", *arguments[2:]]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "searching\n"
        time.sleep(1)
        assert process.poll() is None
        started = time.monotonic()
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - started < 2 * HEARD  # the interpreter's own end included
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert not target.exists()
