"""The paper's own setting, and what our defaults add to it, one after the other.

    python tests/benchmark_paper.py TREEBANK ... --work DIR [--steps 12] [--part test] [--threads 2]

TREEBANK is a folder of a UD release.  Each step of `STEPS` is a training with `--preset paper` and
all changes up to that step; the last one is our default with gold tags.  Parsers and lists are made
once for all steps that have the same ones, and are kept in DIR with the models; a step whose report
is there is not trained again, so that a stopped run goes on, and with everything trained the tables
alone are printed: the paper's Tables 2 and 3, then the steps of each treebank.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.errors import UserError
from tk_spacy.evaluation.attachment import Scores
from tk_spacy.evaluation.report import (
    BASE_PARSER,
    BASE_RERANKER,
    FINAL,
    KERNEL_RERANKER,
    ORACLE,
    TrainReport,
)
from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.parsers.names import DEFAULT_PARSERS
from tk_spacy.utils.progress import Progress
from tk_spacy.utils.tables import Column, Table, show_seconds
from tk_spacy.workflows.model import REPORT_JSON
from tk_spacy.workflows.train.config import train_options
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

STEPS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("the paper's setting", {}),
    ("features of the list", {"reranker.list_features": LIST_FEATURES}),
    ("loss on labels too", {"reranker.loss": "labelled"}),
    ("competitor by score and loss", {"reranker.competitor": "violator"}),
    ("kernel scaled", {"reranker.kernel_scale": None}),
    ("frames and spans as manual features", {"reranker.manual_parts": None}),
    ("lists of one tree left out", {"reranker.count_single": False}),
    (
        "scaled scores, our grid, LAS, five folds of tuning",
        {
            "training.paper_grid": False,
            "training.raw_scores": False,
            "training.tuning_metric": "las",
            "training.tuning_folds": None,
        },
    ),
    (
        "crossing arcs in the base parser, folds by the treebank's size",
        {"parsers.sampling.crossing": True, "lists.folds": None},
    ),
    ("our parsers, lists of 8", {"parsers.names": DEFAULT_PARSERS, "lists.k": None}),
    ("arc combiner", {"reranker.combiner": True}),
    ("penalties on ill-formed trees: our defaults", {"training.penalties": True}),
)
"""What each step changes, by dotted names of settings; null is what suits the lists."""

TABLE_2 = (BASE_PARSER, BASE_RERANKER, KERNEL_RERANKER, FINAL)
OF_LISTS = ("parsers.", "lists.")
"""How the settings begin that other parsers or lists come from."""

app = typer.Typer(add_completion=False)


def changes_of(step: int) -> dict[str, Any]:
    """All settings that a step, from 0 on, has at another value than the paper's."""
    changes: dict[str, Any] = {}
    for _, more in STEPS[: step + 1]:
        changes |= more
    if changes.get("parsers.names") is not None:
        changes.pop("parsers.sampling.crossing", None)  # it has no effect on other parsers
    return changes


def lists_of(step: int) -> str:
    """The name of the work directory that a step shares with others."""
    last = max(
        i
        for i, (_, changes) in enumerate(STEPS[: step + 1])
        if i == 0 or any(name.startswith(OF_LISTS) for name in changes)
    )
    return f"lists-{last:02}"


def options_of(
    treebank: Path, work: Path, step: int, *, threads: int | None = None
) -> TrainOptions:
    """The options of a step's training."""
    folder = work / treebank.name
    return train_options(
        None,
        {
            "paths.train": (treebank,),
            "paths.output": folder / f"step-{step:02}",
            "paths.workdir": folder / lists_of(step),
            "training.preset": "paper",
            "tags.source": "gold",
            "machine.threads": threads,
            "machine.processes": threads,
            **changes_of(step),
        },
    )


class Lines(Progress):
    """A line for each stage that begins, and each note."""

    def begin(self, stage: str) -> None:
        typer.echo(f"  {stage}", err=True)

    def note(self, text: str) -> None:
        typer.echo(f"  {text}", err=True)

    warn = note


def trained(options: TrainOptions) -> TrainReport:
    """The report of a training, which is made where it is not there yet."""
    file = options.output / REPORT_JSON
    if not file.exists():
        return train_pipeline(options, progress=Lines())
    return TrainReport.from_dict(json.loads(file.read_text(encoding="utf-8")))


def short(treebank: str) -> str:
    """UD_Greek-GDT as Greek-GDT."""
    return treebank.removeprefix("UD_")


def columns(first: str, treebanks: Sequence[str]) -> tuple[Column, ...]:
    """A column of names and one of each treebank."""
    named = [Column(short(name), name) for name in treebanks]
    return (Column(first, "name", align="left"), *named)


def table_2(reports: Mapping[str, TrainReport], part: str) -> Table:
    """The paper's Table 2, and the oracle: UAS without punctuation, by treebank."""
    found = [report.parts[part].scores for report in reports.values()]
    return Table(
        title=f"Table 2: UAS without punctuation on {part}, gold tags, the paper's setting",
        columns=columns("", list(reports)),
        rows=tuple(
            (system, *(scores[system].uas_nopunct for scores in found))
            for system in (*TABLE_2, ORACLE)
        ),
    )


def table_3(reports: Mapping[str, TrainReport]) -> Table:
    """The paper's Table 3, by treebank; tokens a second of choosing among ready lists."""
    runs = [report.run_time for report in reports.values()]
    return Table(
        title="Table 3: runtime of the kernel reranker, the paper's setting",
        columns=columns("", list(reports)),
        rows=(
            ("sentences", *(f"{run.sentences:,}" for run in runs)),
            ("mean sentence length", *(f"{run.mean_length:.0f}" for run in runs)),
            ("support parts", *(f"{run.support_parts:,}" for run in runs)),
            ("training time", *(show_seconds(run.training_seconds) for run in runs)),
            ("tokens/sec", *(f"{run.tokens_per_second:,.0f}" for run in runs)),
            ("threads", *(f"{run.threads}" for run in runs)),
        ),
    )


def steps_table(treebank: str, reports: Sequence[TrainReport], part: str) -> Table:
    """UAS / LAS of all words, a row a step."""
    rows = []
    for (name, _), report in zip(STEPS, reports, strict=False):
        scores = report.parts[part].scores
        betas = [f"{beta:g}" for beta in report.betas.values() if beta]
        rows.append(
            (
                name if not rows else f"+ {name}",
                *(shown(scores.get(system)) for system in TABLE_2),
                f"{report.run_time.support_parts:,}",
                ", ".join(betas) or "0",
            )
        )
    return Table(
        title=f"{short(treebank)} {part}, gold tags: UAS / LAS of all words",
        columns=(
            Column("step, with all above it", "step", align="left"),
            *(Column(system, system) for system in TABLE_2),
            Column("support parts", "support_parts"),
            Column("beta", "beta"),
        ),
        rows=tuple(rows),
    )


def shown(scores: Scores | None) -> str | None:
    """UAS and LAS in a cell."""
    return None if scores is None else f"{scores.uas:.2f} / {scores.las:.2f}"


def tables(reports: Mapping[str, Sequence[TrainReport]], part: str) -> Iterator[Table]:
    """All tables; reports: of each treebank's steps."""
    first = {name: steps[0] for name, steps in reports.items()}
    yield table_2(first, part)
    yield table_3(first)
    for name, steps in reports.items():
        yield steps_table(name, steps, part)


@app.command()
def main(
    treebanks: list[Path],
    work: Annotated[Path, typer.Option(help="where parsers, lists and models are kept")],
    steps: Annotated[int, typer.Option(min=1, max=len(STEPS), help="the first so many")] = len(
        STEPS
    ),
    part: Annotated[str, typer.Option(help="dev or test")] = "test",
    threads: int | None = None,
) -> None:
    """Train what is not trained yet, and print the tables as Markdown."""
    reports: dict[str, list[TrainReport]] = {}
    try:
        for treebank in treebanks:
            reports[treebank.name] = []
            for step in range(steps):
                typer.echo(f"{treebank.name}, {STEPS[step][0]}", err=True)
                options = options_of(treebank, work, step, threads=threads)
                reports[treebank.name].append(trained(options))
    except UserError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo("\n".join(table.to_markdown() for table in tables(reports, part)))


if __name__ == "__main__":
    app()
