"""Tables and plot of a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tk_spacy.utils.plotting import save_figure
from tk_spacy.utils.tables import MEBIBYTE, Cell, Column, Table
from tk_spacy.workflows.benchmark.timing import ALL_ARCS, COLD, COLUMNS, LOOP, WARM, Benchmark

COLOURS = ("C3", "C4", "C0", "C2", "C1")


def benchmark_tables(benchmark: Benchmark) -> list[Table]:
    """Tokens/s, the compiled form beside the loop, and growth."""
    rows = [row.to_dict() for row in benchmark.rows]
    return [
        _speed_table(rows, benchmark.about),
        _compiled_table(rows),
        _growth_table(benchmark.growth()),
    ]


def _speed_table(rows: list[dict[str, Any]], about: dict[str, Any]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        for way, timing in row["timings"].items():
            least, most = timing["tokens_per_second_range"]
            cells.append(
                (
                    row["size"], row["threads"], way, timing["tokens_per_second"], least, most,
                    timing["us_per_arc"],
                )
            )  # fmt: skip
    return Table(
        title="Kernel scoring",
        columns=(
            Column("support parts", "size"),
            Column("threads", "threads"),
            Column("way", "way", align="left"),
            Column("tokens/s, median", "tokens_per_second", digits=0),
            Column("least", "least", digits=0),
            Column("most", "most", digits=0),
            Column("µs an arc", "us_per_arc"),
        ),
        rows=tuple(cells),
        notes=tuple(about.get("notes", ())),
    )


def _compiled_table(rows: list[dict[str, Any]]) -> Table:
    cells: list[tuple[Cell, ...]] = [
        (
            row["size"],
            row["threads"],
            *(
                value
                for way in (LOOP, COLUMNS)
                for value in (row["ratios"][way]["median"], *row["ratios"][way]["range"])
            ),
            row["compile_seconds"],
            row["bytes"] / MEBIBYTE,
            "not a number" if row["largest_error"] is None else f"{row['largest_error']:.3f}",
        )
        for row in rows
    ]
    notes = (
        "times faster: the loop's time over the compiled form's, cold, on the same arcs (median, "
        "least and most); pair by pair, all properties of all pairs are compared; by columns, "
        "many support parts at a time, and those that the word lacks are passed over; memory: "
        "the compiled form with the rows that it keeps; error: the largest difference of an arc's "
        "two scores, as a share of what is tolerated (1e-6 of the sum of |weight| * kernel).",
    )
    return Table(
        title="The compiled form beside the loops",
        columns=(
            Column("support parts", "size"),
            Column("threads", "threads"),
            Column("times faster than pair by pair", "ratio", digits=1),
            Column("least", "least", digits=1),
            Column("most", "most", digits=1),
            Column("than by columns", "columns_ratio", digits=1),
            Column("least", "columns_least", digits=1),
            Column("most", "columns_most", digits=1),
            Column("compiled in, s", "compile_seconds"),
            Column("memory, MiB", "mebibytes", digits=1),
            Column("error", "largest_error"),
        ),
        rows=tuple(cells),
        notes=notes,
    )


def _growth_table(growth: list[dict[str, Any]]) -> Table:
    return Table(
        title="Growth of the time with the support",
        columns=(
            Column("threads", "threads"),
            Column("way", "way", align="left"),
            Column("exponent", "exponent"),
        ),
        rows=tuple((item["threads"], item["way"], item["exponent"]) for item in growth),
        notes=("exponent: the time grows as the number of support parts to that power.",),
    )


def write_plot(path: Path, benchmark: Benchmark) -> None:
    """Tokens/s over the support's size, both on logarithmic axes, with least and most as bars."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (optional)

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    rows = [row.to_dict() for row in benchmark.rows]
    for way, colour in zip((LOOP, COLUMNS, COLD, WARM, ALL_ARCS), COLOURS, strict=True):
        for i, threads in enumerate(dict.fromkeys(row["threads"] for row in rows)):
            chosen = sorted(
                (row for row in rows if row["threads"] == threads), key=lambda row: row["size"]
            )
            timings = [row["timings"][way] for row in chosen]
            middle = [timing["tokens_per_second"] for timing in timings]
            ends = [timing["tokens_per_second_range"] for timing in timings]
            below = [m - low for m, (low, _) in zip(middle, ends, strict=True)]
            above = [high - m for m, (_, high) in zip(middle, ends, strict=True)]
            axes.errorbar(
                [row["size"] for row in chosen],
                middle,
                yerr=[below, above],
                color=colour,
                marker="os^Dv"[i % 5],
                linestyle=("-", "--", ":", "-.")[i % 4],
                capsize=3,
                label=f"{way}, {threads} thread{'s' if threads > 1 else ''}",
            )
    # Not before: empty axes have limits of their own.
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("support parts")
    axes.set_ylabel("tokens/s")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    save_figure(path, figure)
