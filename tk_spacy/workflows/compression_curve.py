"""What compressing costs and gives: accuracy, speed and size of a model's forms, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tk_spacy.evaluation.attachment import evaluate
from tk_spacy.features.encoder import EncodedList
from tk_spacy.kbest.candidates import CandidateList
from tk_spacy.kernels.scorer import SupportScorer
from tk_spacy.reranker.model import Pair, Reranker
from tk_spacy.treebank.conllu import Sentence
from tk_spacy.utils.array_types import Float64
from tk_spacy.utils.model_dirs import EXPLICIT, KERNEL_MAP, SUPPORT
from tk_spacy.utils.plotting import save_figure
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.tables import MEBIBYTE, Column, Table

STAGE = "curve"
EXACT, PRUNED, HASHED, BESIDE, NONE = "exact", "pruned", "hashed", "another model", "no kernel"
WAYS = (EXACT, PRUNED, HASHED, BESIDE, NONE)
KERNEL_FILES = (SUPPORT, KERNEL_MAP, EXPLICIT)
"""Of the kernel, or of what is in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One form of a model.

    way: of WAYS.  size: number of support parts or explicit features, or bits of the hash.
    uas, las: of the reranker alone; final_uas, final_las: of the final system; percent of all
    words.  tokens_per_second: of encoding, scoring and choosing from lists that are read;
    kernel_tokens_per_second: of the kernel alone; both medians of runs with nothing kept from
    earlier ones.  bytes: of the model's files; kernel_bytes: of those of the kernel, or of what is
    in its place.
    """

    name: str
    way: str
    size: int
    uas: float
    las: float
    final_uas: float
    final_las: float
    tokens_per_second: float
    kernel_tokens_per_second: float | None
    bytes: int
    kernel_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def measure(
    forms: Mapping[str, tuple[str, int, Reranker]],
    gold: Sequence[Sentence],
    lists: Sequence[Pair],
    *,
    repeat: int = 5,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[Point]:
    """The points of a curve, in the order of the forms.

    forms: by name the way, the size and the model.  gold, lists: aligned; the tags are
    those of the lists' sentences.  repeat: timings of each
    form; the forms take turns, so that what else the machine does meets all of them.
    """
    progress = progress or Progress()
    progress.begin(STAGE)
    # What the combiner makes of the lists is the same for all forms with that combiner, and is not
    # timed.
    completed: dict[int, list[Pair]] = {}
    for _, _, reranker in forms.values():
        if id(reranker.combiner) not in completed:
            completed[id(reranker.combiner)] = [
                (sentence, reranker.completed(sentence, trees)) for sentence, trees in lists
            ]
    words = sum(map(len, gold))
    whole: dict[str, list[float]] = {name: [] for name in forms}
    kernel: dict[str, list[float]] = {name: [] for name in forms}
    scores: dict[str, list[Float64]] = {}
    for turn in range(repeat):
        for i, (name, (_, _, reranker)) in enumerate(forms.items()):
            fresh, pairs = _fresh(reranker), completed[id(reranker.combiner)]
            started = time.perf_counter()
            scores[name] = fresh.batch_scores(pairs, n_threads=n_threads)
            for pair, own in zip(pairs, scores[name], strict=True):
                _ = fresh.decide(*pair, own, n_threads=n_threads).row
            whole[name].append(time.perf_counter() - started)
            seconds = _kernel_seconds(_fresh(reranker), pairs, n_threads)
            if seconds is not None:
                kernel[name].append(seconds)
            progress.update(STAGE, turn * len(forms) + i + 1, repeat * len(forms))
    progress.end(STAGE)
    points = []
    for name, (way, size, reranker) in forms.items():
        pairs = completed[id(reranker.combiner)]
        own_best = [
            (sentence, trees, int(own.argmax()))
            for (sentence, trees), own in zip(pairs, scores[name], strict=True)
        ]
        alone = evaluate(gold, _chosen(own_best))
        best = evaluate(gold, _chosen(reranker.choices(pairs, n_threads=n_threads)))
        files = reranker.to_files()
        times = kernel[name]
        points.append(
            Point(
                name=name,
                way=way,
                size=size,
                uas=alone.uas,
                las=alone.las,
                final_uas=best.uas,
                final_las=best.las,
                tokens_per_second=words / statistics.median(whole[name]),
                kernel_tokens_per_second=words / statistics.median(times) if times else None,
                bytes=sum(map(len, files.values())),
                kernel_bytes=sum(len(files.get(file, b"")) for file in KERNEL_FILES),
            )
        )
    return points


def without_kernel(reranker: Reranker) -> Reranker:
    """The same weights of manual and list features, without the kernel's scores."""
    settings = replace(reranker.settings, kernel_parts=(), budget=None)
    support = replace(reranker.support, types={}, skips={}).compact()
    return replace(reranker, settings=settings, support=support, examples=None, kernel_map=None)


def _fresh(reranker: Reranker) -> Reranker:
    """The model compiled, and with nothing kept from scoring."""
    fresh = replace(reranker)
    if isinstance(fresh._scorer, SupportScorer):
        fresh._scorer.compiled()
    return fresh


def _kernel_seconds(
    reranker: Reranker, pairs: Sequence[tuple[Sentence, CandidateList]], n_threads: int | None
) -> float | None:
    """Time of the kernel's scores of all parts; None without a kernel."""
    if not reranker.settings.kernel_parts or reranker.explicit is not None:
        return None
    encoded: list[EncodedList] = reranker.encode_all(pairs)
    out = [[np.zeros(len(parts.slots)) for parts in item.kernel] for item in encoded]
    started = time.perf_counter()
    reranker._scorer.add_scores(
        [item.sentence.nodes for item in encoded],
        [[parts.slots for parts in item.kernel] for item in encoded],
        out,
        n_threads=n_threads,
    )
    return time.perf_counter() - started


def _chosen(
    choices: Iterable[tuple[Sentence, CandidateList, int]],
) -> list[Sentence]:
    return [
        sentence.with_tree(trees.heads[row], trees.deprels(row)) for sentence, trees, row in choices
    ]


def curve_table(points: Sequence[Point], *, title: str, notes: tuple[str, ...] = ()) -> Table:
    """One row a point."""
    return Table(
        title=title,
        columns=(
            Column("form", "name", align="left"),
            Column("UAS", "uas"),
            Column("LAS", "las"),
            Column("final UAS", "final_uas"),
            Column("final LAS", "final_las"),
            Column("tokens/s", "tokens_per_second", digits=0),
            Column("kernel alone, tokens/s", "kernel_tokens_per_second", digits=0),
            Column("model, MiB", "mebibytes"),
            Column("kernel, MiB", "kernel_mebibytes"),
        ),
        rows=tuple(
            (
                p.name, p.uas, p.las, p.final_uas, p.final_las, p.tokens_per_second,
                p.kernel_tokens_per_second, p.bytes / MEBIBYTE, p.kernel_bytes / MEBIBYTE,
            )
            for p in points
        ),
        notes=notes,
    )  # fmt: skip


def write_plot(path: Path, points: Sequence[Point]) -> None:
    """LAS of the reranker alone over the kernel's tokens/s and over its size."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (optional)

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for i, way in enumerate(WAYS):
        chosen = [p for p in points if p.way == way]
        if way == NONE:
            for axes in (left, right):
                for p in chosen:
                    axes.axhline(p.las, color="grey", linestyle=":", label=way)
            continue
        for axes, values in (
            (left, [p.kernel_tokens_per_second or np.nan for p in chosen]),
            (right, [p.kernel_bytes / MEBIBYTE for p in chosen]),
        ):
            if chosen:
                las = [p.las for p in chosen]
                axes.plot(values, las, marker="os^Dv"[i], color=f"C{i}", label=way)
                for p, x in zip(chosen, values, strict=True):
                    axes.annotate(
                        f"{p.size:,}", (x, p.las), fontsize="x-small",
                        xytext=(3, 3), textcoords="offset points",
                    )  # fmt: skip
    left.set_xlabel("kernel alone, tokens/s")
    right.set_xlabel("kernel's files, MiB")
    left.set_ylabel("LAS of the reranker, %")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.grid(visible=True, which="both", alpha=0.3)
    left.legend(fontsize="small")
    save_figure(path, figure)
