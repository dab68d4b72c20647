"""The runs of a table, each a task; what became of them is written after each."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import FINAL, TrainReport
from tk_spacy.parallel.executor import (
    Surroundings,
    Task,
    TaskError,
    TasksFailed,
    make_executor,
)
from tk_spacy.utils.atomic_files import atomic_output
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.sweep.table import Run, read_table
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline
from tk_spacy.workflows.train.releases import report_of_the_same

STAGE = "runs"
PARTS = ("dev", "test")
MEGABYTE = 1e6
Status = Literal["waiting", "trained", "up to date", "failed"]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run.  report: of its training; error: one line."""

    run: Run
    status: Status = "waiting"
    report: TrainReport | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values: scores of the final system in percent, None where there are none."""
        options, report = self.run.options, self.report
        row: dict[str, Any] = {
            "run": self.run.place,
            "treebank": ", ".join(map(str, options.train_paths)),
            "output": str(options.output),
            "preset": options.preset,
            "parsers": ",".join(options.parsers),
            "seed": options.seed,
            "status": self.status,
        }
        for part in PARTS:
            found = None if report is None else report.parts.get(part)
            row[f"uas_{part}"] = None if found is None else found.scores[FINAL].uas
            row[f"las_{part}"] = None if found is None else found.scores[FINAL].las
        row["seconds"] = None if report is None else report.run_time.total_seconds
        row["megabytes"] = None if report is None else report.run_time.peak_bytes / MEGABYTE
        row["error"] = self.error
        return row


def sweep(
    table: Path,
    *,
    results: Path | None = None,
    overwrite: bool = False,
    processes: int = 1,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[RunResult]:
    """Do the runs of a table that are not done; each is one task, on one thread where several run.

    table: see `read_table`, which checks it as a whole first.
    results: TSV of what became of each run, written whole after each; None for a file beside the
        table, see `results_file`.
    processes: runs at a time; a cluster's workers where `executing` names one.

    A run whose model is there, made from the same files with the same settings and version, is not
    done again; one that was stopped goes on from its work directory.  One that fails has its reason
    in its result, and the others are done.
    """
    progress = progress or Progress()
    runs = read_table(table, overwrite=overwrite)
    results = results or results_file(table)
    found = {run.name: RunResult(run) for run in runs}
    for run in runs:
        report = None if overwrite else report_of_the_same(run.options)
        if report is not None:
            found[run.name] = RunResult(run, "up to date", report)
    _write(results, list(found.values()))
    todo = [run for run in runs if found[run.name].report is None]
    tasks = [_task(run) for run in todo]
    if len(todo) < len(runs):
        progress.note(f"{len(runs) - len(todo)} of {len(runs)} runs are up to date")
    executor = make_executor(tasks, processes=processes, n_threads=n_threads)
    progress.begin(STAGE)
    by_name = {run.name: run for run in todo}
    done = 0

    def note(result: RunResult) -> None:
        nonlocal done
        found[result.run.name] = result
        done += 1
        if result.error is not None:
            progress.warn(result.error)
        _write(results, list(found.values()))
        progress.update(STAGE, done, len(todo))

    def on_report(name: str, value: tuple[str, int, int]) -> None:
        stage, step, of = value
        progress.update(f"  {by_name[name].options.output.name}, {stage}", step, of)

    try:
        for name, value in executor.run(tasks, report=on_report):
            run = by_name[name]
            if isinstance(value, str):
                note(RunResult(run, "failed", error=f"{run.place}: {value}"))
            else:
                note(RunResult(run, "trained", TrainReport.from_dict(value)))
    except TasksFailed as error:
        for name, text in error.failed.items():
            run = by_name[name]
            note(RunResult(run, "failed", error=f"{run.place}: {text}"))
    except TaskError as error:
        raise UserError(f"{error}; finished runs are kept, run the same command again") from error
    progress.end(STAGE)
    return list(found.values())


def results_file(table: Path) -> Path:
    """Where results are written if nothing else is said: runs.csv has runs.results.tsv."""
    return table.with_name(f"{table.stem}.results.tsv")


def _task(run: Run) -> Task:
    # Its work directory stands beside the output, so that it goes on from there wherever it runs.
    options = run.options
    given = [*options.train_paths, *options.kept_paths]
    reads = [path for path in (*given, options.work_directory, options.output) if path.exists()]
    return Task(
        name=run.name,
        work=_train,
        args=(options,),
        cost=sum(path.stat().st_size for path in _files(options)),
        reads=tuple(dict.fromkeys(reads)),
        writes=(options.output, options.work_directory),
    )


def _files(options: TrainOptions) -> list[Path]:
    return [
        file
        for path in options.train_paths
        for file in ([path] if path.is_file() else path.glob("*-train.conllu"))
    ]


def _train(here: Surroundings, options: TrainOptions) -> dict[str, Any] | str:
    """The report of a run as JSON values, or the mistake that it failed by, one line."""
    alone = replace(options, processes=1, threads=here.n_threads or options.threads)
    try:
        return train_pipeline(alone, progress=_Told(here)).to_dict()
    except UserError as error:
        return " ".join(str(error).split())


class _Told(Progress):
    """Tells the stages of a run as its reports."""

    def __init__(self, here: Surroundings) -> None:
        self._report = here.report

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._report((stage, 0, 1))

    def end(self, stage: str) -> None:
        """A stage has ended well."""
        self._report((stage, 1, 1))


def _write(path: Path, results: list[RunResult]) -> None:
    rows = [result.to_dict() for result in results]
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(
            ["" if v is None else f"{v:.2f}" if isinstance(v, float) else v for v in row.values()]
        )
    with atomic_output(path) as out:
        out.write(text.getvalue().encode())
