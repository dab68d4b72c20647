"""`tk-spacy sweep`: many trainings by a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.cluster_options import Cluster, SharedFiles, on_cluster
from tk_spacy.cli.shell import EXIT_ERROR, Json, Quiet, Shell, Threads
from tk_spacy.utils.tables import Column, Table
from tk_spacy.workflows.sweep.runs import RunResult, results_file, sweep
from tk_spacy.workflows.sweep.table import TableMistakes


def sweep_cli(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Runs: .csv or .tsv with the names of the columns in its first row, or .toml with "
            "a [[run]] each.",
        ),
    ],
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE.tsv",
            help="Where the results are written, whole after each run.",
            show_default="TABLE.results.tsv",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Do all runs again, and replace their models.")
    ] = False,
    processes: Annotated[
        int,
        typer.Option("--processes", min=1, help="Runs at a time, each in a process of its own."),
    ] = 1,
    cluster: Cluster = None,
    shared_files: SharedFiles = True,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train by a table of runs, over treebanks and settings, and show what each gave.

    Columns are treebank, output, preset, parsers, seed, dev, test, and any setting by its dotted
    name, as `tk-spacy init-config` writes them; an empty cell leaves a setting at its default:

        treebank,output,preset,seed,parsers.sampling.order

        UD_Greek-GDT,models/greek-1,quick,1,2

        UD_Tamil-TTB,models/tamil-1,quick,1,

    The whole table is checked before the first run begins. Runs whose model is there, made from the
    same files with the same settings, are skipped, and those that were stopped go on where they
    were, so the same command again does what is missing. A run that fails does not stop the others:

        tk-spacy sweep runs.csv --processes 2

        tk-spacy sweep runs.csv --cluster tcp://head:8786
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard(on_interrupt=lambda: "run the same command again: finished runs are kept"):
        try:
            with (
                progress_of(shell) as progress,
                on_cluster(cluster, shared_files=shared_files, progress=progress),
            ):
                found = sweep(
                    table, results=results, overwrite=overwrite, processes=processes,
                    n_threads=threads, progress=progress,
                )  # fmt: skip
        except TableMistakes as error:
            for mistake in error.mistakes[:-1]:
                shell.error(mistake)
            if as_json or not error.mistakes:
                raise
            shell.error(error.mistakes[-1])
            raise typer.Exit(EXIT_ERROR) from error
        rows = [result.to_dict() for result in found]
        failed = [row for row in rows if row["status"] == "failed"]
        written = results or results_file(table)
        shell.result([_table(found)], {"results": str(written), "runs": rows})
        shell.say(f"Results: {written}")
        for row in failed:
            shell.error(row["error"])
    if failed:
        raise typer.Exit(EXIT_ERROR)


def _table(results: list[RunResult]) -> Table:
    rows = [result.to_dict() for result in results]
    columns = (
        Column("output", "output", align="left"),
        Column("", "status", align="left"),
        Column("UAS dev", "uas_dev"),
        Column("LAS dev", "las_dev"),
        Column("minutes", "minutes", digits=1),
        Column("MB", "megabytes", digits=0),
    )
    shown = tuple(
        (
            row["output"],
            row["status"],
            row["uas_dev"],
            row["las_dev"],
            None if row["seconds"] is None else row["seconds"] / 60,
            row["megabytes"],
        )
        for row in rows
    )
    return Table(title="Runs", columns=columns, rows=shown)
