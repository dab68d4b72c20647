"""What the commands that work through files have in common: options, progress, table, failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.batch import total
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import EXIT_ERROR, Shell
from tk_spacy.cli.streams import is_stdout, standard_input
from tk_spacy.errors import UserError
from tk_spacy.file_work import FileResult
from tk_spacy.report import batch_table

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File (- for standard output), or directory for several files.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Do files of a directory again whose output is there."),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, help="Files at a time, each in a process of its own."),
]

ViewFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="Another parser's trees of the input, where the model was trained with such a view "
        "(file:NAME): CoNLL-U or a k-best file; for several inputs a directory with files of their "
        "names.",
    ),
]


def named_files(values: Sequence[str] | None) -> dict[str, Path]:
    """The files of --view-file by their names.  Raises UserError for what is no NAME=FILE."""
    files: dict[str, Path] = {}
    for value in values or ():
        name, _, path = value.partition("=")
        if not name or not path or name in files:
            raise UserError(f"--view-file {value}: write NAME=FILE, once for each name")
        files[name] = Path(path)
    return files


def run_on_files(
    work: Callable[..., list[FileResult]],
    inputs: Sequence[Path],
    output: Path,
    *,
    reranked: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do the work, show its results, and end with an error where files failed.

    work: takes inputs, output, and the keyword `progress`.  reranked: whether it chooses among
    trees.
    """
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=is_stdout(output))
    with shell.guard(on_interrupt=lambda: "finished files are kept"):
        with standard_input(inputs) as given, progress_of(shell) as progress:
            results = work(given.paths, output, progress=progress)
        for result in results:
            result.source = given.named(result.source)
            result.error = result.error and given.named(result.error)
        rows = [result.to_dict() for result in results]
        whole = total(results).to_dict()
        table = batch_table(rows, whole, reranked=reranked)
        shell.result([table], {"files": rows, "total": whole})
        failed = [result for result in results if result.status == "failed"]
        for result in failed:
            shell.error(result.error or result.source)
    if failed:
        raise typer.Exit(EXIT_ERROR)
