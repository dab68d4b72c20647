"""What a sweep over many treebanks would take on many workers: list scheduling on paper.

Task lengths are those that `train` estimates by (seconds a word of tagger, parsers, lists and
reranker, see `workflows/train/estimate.py`), for treebanks of made-up sizes, spread about as those
of Universal Dependencies.  Run it by hand: python tests/simulate_cluster.py --overhead 0.004
"""

from __future__ import annotations

import argparse
import heapq
import random
from dataclasses import dataclass

from tk_spacy.ensemble.jackknife import LISTING_SECONDS
from tk_spacy.parsers.names import DEFAULT_PARSERS
from tk_spacy.parsers.registry import make_parsers
from tk_spacy.tagging.kinds import DEFAULT as DEFAULT_TAGGER
from tk_spacy.tagging.kinds import make_tagger
from tk_spacy.workflows.train.arrangement import folds_for
from tk_spacy.workflows.train.estimate import RERANKER_SECONDS, spread

MEDIAN_WORDS, DEVIATION = 30_000, 1.3
"""Of train; UD has from some hundred words to over a million."""
LEAST, MOST = 1_000, 500_000
BYTES_A_WORD, PARSER_BYTES = 80, 25e6


@dataclass(frozen=True)
class Training:
    """Seconds of one treebank's tasks: those of its tagger, of its parsers, lists, and the rest."""

    tags: list[float]
    parsers: list[float]
    lists: list[float]
    rest: float
    bytes: float

    @property
    def total(self) -> float:
        return sum(self.tags) + sum(self.parsers) + sum(self.lists) + self.rest


def training(words: int, parsers: list, tagger: object) -> Training:
    folds = folds_for(words)
    seen = words - words // folds
    each = [parser.seconds(seen) for parser in parsers]
    listing = len(parsers) * LISTING_SECONDS * words / folds
    moved = words * BYTES_A_WORD * 2 + PARSER_BYTES * 2
    return Training(
        [tagger.seconds(words)] + [tagger.seconds(seen)] * folds,
        [parser.seconds(words) for parser in parsers] + each * folds,
        [listing] * folds,
        words * RERANKER_SECONDS,
        moved * (1 + folds) * (1 + len(parsers)),
    )


def by_runs(trainings: list[Training], workers: int, overhead: float) -> float:
    """Wall seconds where each run is one task, the longest first (`tk-spacy sweep`)."""
    return spread([one.total + overhead for one in trainings], workers)


def by_parts(trainings: list[Training], workers: int, overhead: float) -> float:
    """Wall seconds where the tasks of all runs go to the workers, the longest chain first."""
    stages = [[t.tags, t.parsers, t.lists, [t.rest]] for t in trainings]
    left = [[sum(map(max, own[i:])) for i in range(len(own))] for own in stages]
    ready = [(-left[i][0], i, 0, s) for i, own in enumerate(stages) for s in own[0]]
    heapq.heapify(ready)
    waiting = [len(own[0]) for own in stages]
    running: list[tuple[float, int, int]] = []
    now, free = 0.0, workers
    while ready or running:
        while ready and free:
            _, i, stage, seconds = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds + overhead, i, stage))
            free -= 1
        now, i, stage = heapq.heappop(running)
        free += 1
        waiting[i] -= 1
        if not waiting[i] and stage + 1 < len(stages[i]):
            waiting[i] = len(stages[i][stage + 1])
            for seconds in stages[i][stage + 1]:
                heapq.heappush(ready, (-left[i][stage + 1], i, stage + 1, seconds))
    return now


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--treebanks", type=int, default=100)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 10, 100, 200])
    options.add_argument("--overhead", type=float, default=0.01, help="seconds a task")
    options.add_argument("--bandwidth", type=float, default=1e9 / 8, help="bytes a second")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    rng = random.Random(given.seed)
    sizes = [
        int(min(MOST, max(LEAST, rng.lognormvariate(0, DEVIATION) * MEDIAN_WORDS)))
        for _ in range(given.treebanks)
    ]
    parsers = list(make_parsers(DEFAULT_PARSERS))
    trainings = [training(words, parsers, make_tagger(DEFAULT_TAGGER)) for words in sizes]
    work = sum(one.total for one in trainings)
    print(f"{given.treebanks} treebanks, {sum(sizes):,} words, the largest {max(sizes):,}")
    longest = max(trainings, key=lambda one: one.total)
    chain = max(longest.tags), max(longest.parsers), max(longest.lists), longest.rest
    print(f"work: {work / 3600:.1f} hours of one core; longest run {longest.total / 3600:.1f} h")
    names = "tagger, parser, lists, reranker"
    print(f"its longest chain ({names}): {', '.join(f'{s / 3600:.2f}' for s in chain)} h")
    tasks = sum(len(t.tags) + len(t.parsers) + len(t.lists) + 1 for t in trainings)
    moved = sum(one.bytes for one in trainings)
    print(f"{tasks} tasks; scheduler {tasks * given.overhead:.0f} s in all")
    minutes = moved / given.bandwidth / 60
    print(f"without shared files {moved / 1e9:.0f} GB by the scheduler: {minutes:.0f} minutes")
    for workers in given.workers:
        for name, way in (("runs", by_runs), ("parts", by_parts)):
            wall = way(trainings, workers, given.overhead)
            busy = 100 * work / wall / workers
            print(f"{workers:4} workers, by {name:5}: {wall / 3600:6.2f} h, {busy:3.0f} % busy")


if __name__ == "__main__":
    main()
