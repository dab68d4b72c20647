"""Speed of kernel scoring: straightforward loops and the compiled form on the same arcs.

All leave out the arcs that all trees of a list share, and score each other arc of a list once (the
paper's section 4, "exclusive parts" and its cache of a list).  Its cache between iterations saves
work in training only: here every list is scored once.

They are timed in turns, so that a busy machine burdens all alike, and must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tk_spacy.kernels.compiled.all_arcs import score_all_arcs
from tk_spacy.kernels.compiled.node_groups import NodeGroups
from tk_spacy.kernels.compiled.scoring import CompiledParts
from tk_spacy.kernels.scorer import add_compiled_scores, compile_parts
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.benchmark.data import ARC_KINDS, Arcs, SupportArcs
from tk_spacy.workflows.benchmark.loop_scoring import add_column_scores, add_pair_scores

TOLERANCE = 1e-6
"""Of the sum of |weight| * kernel: what single precision may cost the compiled form."""
LOOP_SECONDS, ALL_ARCS_SECONDS = 3.0, 1.0
"""What one pass of the slower loop, and one over all arcs of sentences, should take at most."""
ALL_ARCS_WORDS = 300
"""Words of a sentence whose pairs are scored, at most."""
LEAST_ARCS = 64
"""Arcs of which the loop's speed is first guessed."""

LOOP, COLUMNS = "loop, pair by pair", "loop, by columns"
COLD, WARM, ALL_ARCS = "compiled, cold", "compiled, warm", "all arcs"


@dataclass(frozen=True, slots=True)
class Timing:
    """Repeated timings of one thing; each a pass over so many words and arcs."""

    words: int
    arcs: int
    seconds: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values, with what follows from the times: medians, least and most."""
        middle = median(self.seconds)
        return {
            **asdict(self),
            "seconds": list(self.seconds),
            "tokens_per_second": self.words / middle,
            "tokens_per_second_range": [
                self.words / max(self.seconds),
                self.words / min(self.seconds),
            ],
            "us_per_arc": 1e6 * middle / self.arcs,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was measured with one size of the support and one number of threads.

    timings: of LOOP, COLUMNS, COLD (no rows kept from before), WARM (all of the text's rows kept
        where there is room), and ALL_ARCS (of sentences, every pair of words as an arc, cold).
    ratios: of LOOP and COLUMNS, for each repeat the loop's time over the compiled form's (cold) on
        the same arcs.
    largest_error: over those arcs, the difference of a loop's score and the compiled form's as a
        share of what is tolerated.
    compile_seconds, nbytes: of the compiled form; with the rows kept after the warm pass.
    """

    size: int
    threads: int
    timings: dict[str, Timing]
    ratios: dict[str, tuple[float, ...]]
    largest_error: float
    compile_seconds: float
    nbytes: int

    @property
    def agrees(self) -> bool:
        """Whether all ways of scoring gave the same."""
        return self.largest_error <= 1.0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "size": self.size,
            "threads": self.threads,
            "timings": {name: timing.to_dict() for name, timing in self.timings.items()},
            "ratios": {
                name: {"median": median(values), "range": [min(values), max(values)]}
                for name, values in self.ratios.items()
            },
            "agrees": self.agrees,
            # NaN is no JSON, and no agreement either.
            "largest_error": self.largest_error if np.isfinite(self.largest_error) else None,
            "compile_seconds": self.compile_seconds,
            "bytes": self.nbytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """All rows, and what they are about (JSON values)."""

    rows: Sequence[Row]
    about: dict[str, Any] = field(default_factory=dict)

    def growth(self) -> list[dict[str, Any]]:
        """How time grows with the support's size: t ~ size ** exponent, by least squares.

        None for fewer than two sizes.
        """
        found = []
        for threads in dict.fromkeys(row.threads for row in self.rows):
            rows = [row for row in self.rows if row.threads == threads]
            for name in rows[0].timings:
                sizes = np.log([row.size for row in rows])
                timings = [row.timings[name] for row in rows]
                times = np.log([median(timing.seconds) / timing.arcs for timing in timings])
                distinct = len(set(sizes.tolist()))
                exponent = float(np.polyfit(sizes, times, 1)[0]) if distinct > 1 else None
                found.append({"threads": threads, "way": name, "exponent": exponent})
        return found

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            **self.about,
            "tolerance": TOLERANCE,
            "agrees": all(row.agrees for row in self.rows),
            "rows": [row.to_dict() for row in self.rows],
            "growth": self.growth(),
        }


class Loop:
    """A support as a straightforward loop reads it: pair by pair, or by columns."""

    def __init__(self, support: SupportArcs, *, by_columns: bool) -> None:
        head, label, distance, length, modifier = support.columns
        nodes = support.nodes
        self._score = add_column_scores if by_columns else add_pair_scores
        self._heads = np.ascontiguousarray(nodes[head].T if by_columns else nodes[head])
        self._modifiers = np.ascontiguousarray(nodes[modifier].T if by_columns else nodes[modifier])
        self._edges = np.stack([label, distance, length])
        self._skips = [int(support.skips[0]), int(support.skips[2])]
        self._weights = support.weights

    def score(self, arcs: Arcs, n_threads: int, *, absolute: bool = False) -> Float64:
        """The scores of arcs; absolute: the sums of |weight| * kernel instead."""
        nodes, parts = arcs.together()
        out = np.zeros(len(parts))
        self._score(
            nodes,
            parts,
            self._heads,
            self._modifiers,
            self._edges,
            np.abs(self._weights) if absolute else self._weights,
            out,
            skips=self._skips,
            n_threads=n_threads,
        )
        return out


class Compiled:
    """A support compiled, with what it kept forgotten on demand."""

    def __init__(self, support: SupportArcs, groups: Sequence[Sequence[int]]) -> None:
        self._groups = NodeGroups(groups, support.nodes.shape[1])
        ids, singles = self._groups.encode(support.nodes)
        self.parts: CompiledParts = compile_parts(
            ARC_KINDS,
            support.skips,
            self._groups,
            columns=support.columns,
            weights=support.weights,
            ids=ids,
            singles=singles,
        )

    def forget(self) -> None:
        """As when nothing was scored yet."""
        self._groups.clear()
        self.parts.keeper.clear()

    def score(self, arcs: Arcs, n_threads: int) -> Float64:
        """The scores of arcs."""
        out = [np.zeros(len(slots)) for slots in arcs.slots]
        add_compiled_scores(
            arcs.nodes,
            [[slots] for slots in arcs.slots],
            [[scores] for scores in out],
            self._groups,
            [self.parts],
            n_threads=n_threads,
        )
        return np.concatenate(out)

    def score_pairs(self, arcs: Arcs, n_threads: int) -> None:
        """Scores every pair of words of the sentences as an arc."""
        for nodes in arcs.nodes:
            ids, singles = self._groups.encode(nodes[:-1])
            score_all_arcs(self.parts, ids, singles, n_threads=n_threads)


def run_benchmark(
    supports: Sequence[SupportArcs],
    arcs: Arcs,
    groups: Sequence[Sequence[int]],
    *,
    threads: Sequence[int],
    repeat: int,
    progress: Progress | None = None,
) -> Benchmark:
    """Times all ways of scoring arcs with each support and number of threads.

    The loops take as many of the arcs as one pass of LOOP_SECONDS allows; the compiled form is
    timed on these too, for the ratio, and on all of them.  groups: see SupportScorer.
    """
    progress = progress or Progress()
    rows: list[Row] = []
    for support in supports:
        stage = f"{len(support):,} support parts"
        progress.begin(stage)
        steps = len(threads) * repeat
        loop = Loop(support, by_columns=False)
        columns = Loop(support, by_columns=True)
        start = time.perf_counter()
        compiled = Compiled(support, groups)
        compile_seconds = time.perf_counter() - start
        few = _as_many_as_fit(loop, arcs)
        pairs = _sentences_that_fit(compiled, arcs)
        tolerated = TOLERANCE * loop.score(few, max(threads), absolute=True)
        for i, n_threads in enumerate(threads):
            own = compiled.score(few, n_threads)
            error = np.maximum(
                np.abs(loop.score(few, n_threads) - own),
                np.abs(columns.score(few, n_threads) - own),
            )
            ways = ("few", LOOP, COLUMNS, COLD, WARM, ALL_ARCS)
            times: dict[str, list[float]] = {way: [] for way in ways}
            for j in range(repeat):
                times[LOOP].append(_seconds(loop.score, few, n_threads))
                times[COLUMNS].append(_seconds(columns.score, few, n_threads))
                compiled.forget()
                times["few"].append(_seconds(compiled.score, few, n_threads))
                compiled.forget()
                times[COLD].append(_seconds(compiled.score, arcs, n_threads))
                times[WARM].append(_seconds(compiled.score, arcs, n_threads))
                nbytes = compiled.parts.nbytes
                compiled.forget()
                times[ALL_ARCS].append(_seconds(compiled.score_pairs, pairs, n_threads))
                progress.update(stage, i * repeat + j + 1, steps)
            n_pairs = sum((len(nodes) - 1) * (len(nodes) - 2) for nodes in pairs.nodes)
            counted = {
                LOOP: (few.words, len(few)),
                COLUMNS: (few.words, len(few)),
                COLD: (arcs.words, len(arcs)),
                WARM: (arcs.words, len(arcs)),
                ALL_ARCS: (pairs.words, n_pairs),
            }
            ratios = {
                way: tuple(a / b for a, b in zip(times[way], times["few"], strict=True))
                for way in (LOOP, COLUMNS)
            }
            rows.append(
                Row(
                    size=len(support),
                    threads=n_threads,
                    timings={
                        name: Timing(*counts, tuple(times[name]))
                        for name, counts in counted.items()
                    },
                    ratios=ratios,
                    largest_error=float(np.max(error / np.maximum(tolerated, 1e-300))),
                    compile_seconds=compile_seconds,
                    nbytes=nbytes,
                )
            )
        progress.end(stage)
    return Benchmark(rows=rows)


def _seconds(work: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    work(*arguments)
    return max(time.perf_counter() - start, 1e-9)


def _as_many_as_fit(loop: Loop, arcs: Arcs) -> Arcs:
    """The first sentences that the loop scores in LOOP_SECONDS on one thread."""
    sample = arcs.first(LEAST_ARCS)
    loop.score(sample, 1)
    each = _seconds(loop.score, sample, 1) / len(sample)
    return arcs.first(LOOP_SECONDS / each)


def _sentences_that_fit(compiled: Compiled, arcs: Arcs) -> Arcs:
    """The first sentences of which all arcs are scored in ALL_ARCS_SECONDS on one thread.

    Of long ones the first words only: memory grows with the square of their number.
    """
    spent = 0.0
    nodes: list[NDArray[np.int32]] = []
    while len(nodes) < len(arcs.nodes) and spent < ALL_ARCS_SECONDS:
        nodes.append(arcs.nodes[len(nodes)][: ALL_ARCS_WORDS + 2])
        spent += _seconds(compiled.score_pairs, Arcs(nodes[-1:], arcs.slots[:1]), 1)
    return Arcs(nodes, arcs.slots[: len(nodes)])
