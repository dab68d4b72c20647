"""What a training will cost, estimated from its parsers, its words and the cores it may use.

Each parser, tagger and tokenizer tells how long it takes on one core (`Trainable.seconds`), as
measured on one machine; how fast this one is beside it, a product of matrices tells.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tk_spacy.ensemble.jackknife import LISTING_SECONDS
from tk_spacy.parallel.blas import one_thread
from tk_spacy.parallel.threads import available_threads
from tk_spacy.parsers.base import Trainable
from tk_spacy.workflows.train.inputs import Plan

RERANKER_SECONDS = 0.0025
"""Combiner and rerankers, of a word of train."""
PRODUCT_SECONDS = 0.0040
"""Of a product of SIZE x SIZE numbers in single precision on the machine of all these seconds."""
SIZE, PRODUCTS = 512, 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """Wall seconds of the stages of a training, by name, on so many cores."""

    stages: dict[str, float]
    cores: int

    @property
    def seconds(self) -> float:
        """Of all."""
        return sum(self.stages.values())

    def line(self) -> str:
        """In one line, with the stages that matter."""
        cores = f"{self.cores} core" + "s" * (self.cores != 1)
        parts = [
            f"{name} {rough(seconds)}"
            for name, seconds in self.stages.items()
            if seconds >= self.seconds / 20
        ]
        shares = f" ({', '.join(parts)})" if len(self.stages) > 1 else ""
        return f"about {rough(self.seconds)} on {cores}{shares}"


def pace() -> float:
    """How long numeric work takes here, as a multiple of what it took where it was measured."""
    values = np.ones((SIZE, SIZE), dtype=np.float32)
    found = []
    with one_thread():
        for _ in range(PRODUCTS):
            start = time.thread_time()
            values @ values
            found.append(time.thread_time() - start)
    return min(max(min(found) / PRODUCT_SECONDS, 0.2), 5.0)


def estimate(plan: Plan) -> Estimate:
    """What a training costs from its beginning; what is taken over from an earlier one is less."""
    options = plan.options
    # As many processes as are asked for, whatever the number of threads, which is of the scoring.
    cores = _cores(options.processes)
    words = {name: sum(map(len, part.sentences)) for name, part in plan.parts.items()}
    stages = dict(_stages(plan, words, cores))
    if options.cross_validation:
        # Each fold's system learns from all folds but one, and the last one from all: together as
        # many times all as there are folds.  Only the last one has a tokenizer.
        others = plan.folds - 1
        for name, seconds in _stages(replace(plan, tokenizer=None), words, cores):
            stages[name] += others * seconds
    slower = pace()
    return Estimate({name: slower * seconds for name, seconds in stages.items()}, cores)


def estimate_folds(
    parsers: Sequence[Trainable], words: int, *, folds: int, processes: int | None = None
) -> Estimate:
    """What a jackknife alone costs, from its beginning."""
    tasks = [words / folds * len(parsers) * LISTING_SECONDS] * folds
    for parser in parsers:
        tasks += _of_folds(parser, words, folds)
    cores = _cores(processes)
    return Estimate({"parsers": pace() * spread(tasks, cores)}, cores)


def _cores(processes: int | None) -> int:
    return min(processes or available_threads(), available_threads())


def _stages(plan: Plan, words: dict[str, int], cores: int) -> Iterator[tuple[str, float]]:
    n, folds, options = words["train"], plan.folds, plan.options
    if plan.tagger is not None:
        tasks = [plan.tagger.seconds(n), *_of_folds(plan.tagger, n, folds)]
        if plan.tokenizer is not None:
            tasks.append(plan.tokenizer.seconds(n))
        yield "tags", spread(tasks, cores)
    asked = len(plan.parsers) * LISTING_SECONDS
    if plan.trains_parsers:
        tasks = [parser.seconds(n) for parser in plan.parsers]
        if plan.jackknifes:
            for parser in plan.parsers:
                tasks += _of_folds(parser, n, folds)
            tasks += [asked * n / folds] * folds
        yield "parsers", spread(tasks, cores)
    if plan.students:
        asked_twice = 2 if options.text is not None else 1
        tasks = [spec.seconds(n) for spec in plan.students] * asked_twice
        yield "fast parser", spread(tasks, cores)
    others = sum(number for name, number in words.items() if name != "train")
    yield "reranker", n * RERANKER_SECONDS + others * asked / cores


def _of_folds(spec: Trainable, words: int, folds: int) -> list[float]:
    return [spec.seconds(words - words // folds)] * folds


def spread(tasks: list[float], cores: int) -> float:
    """Wall time of tasks, the long ones begun first."""
    ends = [0.0] * cores
    for seconds in sorted(tasks, reverse=True):
        ends.sort()
        ends[0] += seconds
    return max(ends)


def rough(seconds: float) -> str:
    """A time as an estimate is told: 40 seconds, 12 minutes, 3 hours."""
    if seconds < 90:
        return f"{max(10, round(seconds, -1)):.0f} seconds"
    minutes = seconds / 60
    if minutes < 90:
        return f"{minutes:.0f} minutes" if minutes < 20 else f"{5 * round(minutes / 5)} minutes"
    hours = minutes / 60
    return f"{hours:.1f} hours" if hours < 10 else f"{hours:.0f} hours"
