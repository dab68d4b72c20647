"""What the commands that work through files have in common: options, progress, table, failures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.batch import total
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import EXIT_ERROR, Shell
from tk_spacy.file_work import FileResult
from tk_spacy.report import batch_table

Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="OUT", help="File, or directory for several files."),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Do files of a directory again whose output is there."),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, help="Files at a time, each in a process of its own."),
]


def run_on_files(
    work: Callable[..., list[FileResult]], *, reranked: bool, quiet: bool, as_json: bool
) -> None:
    """Do the work, show its results, and end with an error where files failed.

    work: takes the keyword `progress`.  reranked: whether it chooses among trees.
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard(on_interrupt=lambda: "finished files are kept"):
        with progress_of(shell) as progress:
            results = work(progress=progress)
        rows = [result.to_dict() for result in results]
        whole = total(results).to_dict()
        table = batch_table(rows, whole, reranked=reranked)
        shell.result([table], {"files": rows, "total": whole})
        failed = [result for result in results if result.status == "failed"]
        for result in failed:
            shell.error(result.error or result.source)
    if failed:
        raise typer.Exit(EXIT_ERROR)
