"""What the commands that work through files have in common: options, progress, table, failures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import EXIT_ERROR, Shell
from tk_spacy.cli.streams import is_stdout, standard_input
from tk_spacy.errors import UserError
from tk_spacy.utils.tables import Cell, Column, Table
from tk_spacy.workflows.files.batch import total
from tk_spacy.workflows.files.worker import FileResult

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

ParserFile = Annotated[
    list[str] | None,
    typer.Option(
        "--parser-file",
        metavar="NAME=FILE",
        help="Another parser's trees of the input, where the model was trained with such a parser "
        "(file:NAME): CoNLL-U or a k-best file; for several inputs a directory with files of their "
        "names.",
    ),
]
# Its name before there were parsers, not views.
OldParserFile = Annotated[list[str] | None, typer.Option("--view-file", hidden=True)]


def named_files(values: Sequence[str] | None, old: Sequence[str] | None = None) -> dict[str, Path]:
    """The files of --parser-file by their names.  Raises UserError for what is no NAME=FILE.

    old: those of the option by its old name.
    """
    files: dict[str, Path] = {}
    for value in (*(values or ()), *(old or ())):
        name, _, path = value.partition("=")
        if not name or not path or name in files:
            raise UserError(f"--parser-file {value}: write NAME=FILE, once for each name")
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
        skipped = sum(result.status == "skipped" for result in results)
        if skipped:
            shell.say(f"{skipped} skipped: the output is there already (--overwrite replaces it).")
        for result in failed:
            shell.error(result.error or result.source)
    if failed:
        raise typer.Exit(EXIT_ERROR)


def batch_table(
    files: Sequence[Mapping[str, Any]],
    total: Mapping[str, Any],
    *,
    reranked: bool = True,
) -> Table:
    """One row for each file, as `file_work.FileResult.to_dict` has it, and their sum.

    reranked: whether trees were chosen, so that there is something to compare with.
    """
    title = "Reranked files" if reranked else "Parsed files"
    scored = any(row["scores"] for row in files)
    systems = ("parser", "final") if reranked else ("final",)
    columns = [
        Column("file", "input", align="left"),
        Column("", "status", align="left"),
        Column("sents.", "sentences"),
        Column("words", "words"),
        Column("tokens/s", "tokens_per_second"),
    ]
    if reranked:
        columns.append(Column("changed words", "changed"))
    if scored:
        columns += [
            Column(metric.upper() if system == systems[0] else "→", f"{metric}_{system}")
            for metric in ("uas", "las")
            for system in systems
        ]
    rows = [_batch_row(row, columns) for row in files]
    if len(files) > 1:
        folder = os.path.commonpath([Path(row["input"]).parent for row in files])
        title = f"{title} of {folder}" if folder else title
        rows = [(os.path.relpath(str(row[0]), folder or os.curdir), *row[1:]) for row in rows]
        rows.append(_batch_row({**total, "input": "total", "status": ""}, columns))
    notes = ["Scores of the base parser → of the reranked trees."] if scored and reranked else []
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), notes=tuple(notes))


def _batch_row(row: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Cell, ...]:
    cells: dict[str, Cell] = {"input": row["input"], "status": row["status"]}
    if row["sentences"]:
        cells |= {name: row[name] for name in ("sentences", "words", "changed")}
        cells["tokens_per_second"] = round(row["words"] / max(row["seconds"], 1e-9))
    for system, scores in (row["scores"] or {}).items():
        cells |= {f"{metric}_{system}": score for metric, score in scores.items()}
    return tuple(cells.get(column.key) for column in columns)
