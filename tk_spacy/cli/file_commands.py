"""What the commands that work through files have in common: options, progress, table, failures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.cluster_options import on_cluster
from tk_spacy.cli.shell import EXIT_ERROR, Shell
from tk_spacy.cli.streams import standard_input
from tk_spacy.errors import OptionError, UserError
from tk_spacy.treebank.data_notes import missing_note
from tk_spacy.treebank.enhanced import DEPS_CHOICES, DepsCount
from tk_spacy.utils.atomic_files import names_stdout
from tk_spacy.utils.tables import Cell, Column, Table
from tk_spacy.utils.validation import Choice, check_choice
from tk_spacy.workflows.files.batch import total
from tk_spacy.workflows.files.inputs import INPUT_FORMS
from tk_spacy.workflows.files.tagging import TAG_CHOICES
from tk_spacy.workflows.files.worker import FileResult

Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File (- for standard output), or directory for several files.",
    ),
]
"""A text: a Path forgets the "/" that makes a directory of OUT."""
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace results, also such as are up to date, or as tk-spacy did not make.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, help="Files at a time, each in a process of its own."),
]
Cores = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        help="Cores to use for a file: on Linux its sentences are shared among so many processes, "
        "elsewhere parts of the work among so many threads; the results do not depend on it.",
        show_default="all",
    ),
]

WellFormed = Annotated[
    bool,
    typer.Option(
        "--well-formed",
        help="Choose only among the trees of a list that break the fewest of UD's constraints (one "
        "subject and one object a head, function words and punctuation without dependents, ...), "
        "repaired copies of the best trees among them.",
    ),
]

DepsOption = Annotated[
    str,
    typer.Option(
        "--deps",
        metavar="|".join(DEPS_CHOICES),
        help="The column DEPS (enhanced dependencies), which belongs to the trees of the input. "
        "blank: leave it empty. copy: HEAD:DEPREL of the new trees. keep: as in the input. Empty "
        "nodes (5.1), which only DEPS refers to, stay with keep alone.",
    ),
]

TagsOption = Annotated[
    str,
    typer.Option(
        "--tags",
        metavar="|".join(TAG_CHOICES),
        help="Whose UPOS, XPOS, FEATS and LEMMA the words are parsed with, and get. gold: the "
        "file's. own: the model's own tagger's, whatever the file has. auto: the file's where it "
        "has some, else the tagger's.",
    ),
]

KEPT = "finished files are kept, and what is done of a large one: run the same command again"
"""For who stops a command."""

_INPUT_FORMS = (
    "What the files are. text: plain text (UTF-8), split into sentences and words by the model's "
    "own tokenizer. vertical: one word a line, a blank line after each sentence. conllu: CoNLL-U. "
    "auto: what a file's name and first lines tell."
)

InputOption = Annotated[
    str,
    typer.Option(
        "--input",
        metavar="|".join(INPUT_FORMS),
        help=f"{_INPUT_FORMS} Directories are searched for .txt files with text and vertical, else "
        "for .conllu files.",
    ),
]

OneInputOption = Annotated[
    str,
    typer.Option(
        "--input",
        metavar="|".join(INPUT_FORMS),
        help=_INPUT_FORMS.replace("the files are", "the file is"),
    ),
]
"""Of a command that takes no directories."""

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
    output: str,
    *,
    reranked: bool,
    deps: str,
    cluster: str | None = None,
    shared_files: bool = True,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do the work, show its results, and end with an error where files failed.

    work: takes inputs, output, and the keywords `deps` and `progress`.  reranked: whether it
        chooses among trees.
    """
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=names_stdout(output))
    with shell.guard(on_interrupt=lambda: KEPT):
        with (
            standard_input(inputs) as given,
            progress_of(shell) as progress,
            on_cluster(cluster, shared_files=shared_files, progress=progress),
        ):
            results = work(
                given.paths, output, deps=chosen("--deps", deps, DEPS_CHOICES), progress=progress
            )
        for result in results:
            result.input = given.named(result.input)
            result.error = result.error and given.named(result.error)
        rows = [result.to_dict() for result in results]
        counted = total(results)
        whole = counted.to_dict()
        notes, told = missing_notes(results), tags_notes(results)
        table = batch_table(rows, whole, reranked=reranked)
        shell.result(
            [table],
            {
                "files": rows,
                "total": whole,
                "notes": [*notes, *told, *deps_notes(counted.deps, deps)],
            },
        )
        for note in told:
            shell.note(note)
        tell(shell, notes, counted.deps, deps)
        failed = [result for result in results if result.status == "failed"]
        skipped = sum(result.status == "skipped" for result in results)
        if skipped:
            shell.say(f"{skipped} skipped: up to date (--overwrite makes them again).")
        if counted.resumed:
            shell.say(f"{counted.resumed:,} sentences are from a run that was stopped.")
        for result in failed:
            shell.error(result.error or result.input)
    if failed:
        raise typer.Exit(EXIT_ERROR)


def chosen(option: str, value: str, choices: Sequence[Choice]) -> Choice:
    """What an option says.  Raises OptionError where it is none of the choices."""
    try:
        return check_choice(option, value, choices)
    except UserError as error:
        raise OptionError(f"{option} {value}: choose from {', '.join(choices)}") from error


def tags_notes(results: Sequence[FileResult]) -> list[str]:
    """Whose tags the words of files have: a note for all files of which it is the same."""
    files: dict[str, list[str]] = {}
    for result in results:
        if result.tags is not None:
            files.setdefault(result.tags, []).append(result.input)
    return [f"{of_files(names)}: {note}" for note, names in files.items()]


def of_files(names: Sequence[str]) -> str:
    """Files for a message: the first one, and how many more."""
    return names[0] + (f" and {len(names) - 1} more" if names[1:] else "")


def missing_notes(results: Sequence[FileResult]) -> list[str]:
    """One note for each set of columns that files lack and the model has learnt to read."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for result in results:
        if result.missing:
            lacking.setdefault(result.missing, []).append(result.input)
    return [missing_note(missing, of_files(files)) for missing, files in lacking.items()]


def tell(shell: Shell, notes: Sequence[str], count: DepsCount, deps: str) -> None:
    """Warn of what notes say and of DEPS that contradict; what else became of them is a note."""
    for note in notes:
        shell.warn(note)
    for note in deps_notes(count, deps):
        (shell.warn if count.contradicting else shell.note)(note)


def deps_notes(count: DepsCount, deps: str) -> list[str]:
    """What became of DEPS, where there were any."""
    if count.contradicting:
        return [
            f"DEPS of {count.contradicting} words do not hold their new arcs, as they belong to "
            "other trees; --deps blank leaves the column empty, --deps copy copies the new arcs"
        ]
    if not count.replaced and not count.empty_nodes:
        return []
    done = []
    if count.replaced:
        how = "are copies of their new arcs" if deps == "copy" else "are blank"
        done.append(f"DEPS of {_counted(count.replaced, 'word')} {how} now")
    if count.empty_nodes:
        done.append(f"{_counted(count.empty_nodes, 'empty node')} left out")
    return [f"{', and '.join(done)}, as they belong to other trees (--deps keep keeps them)"]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def batch_table(
    files: Sequence[Mapping[str, Any]],
    total: Mapping[str, Any],
    *,
    reranked: bool = True,
) -> Table:
    """One row for each file, as `worker.FileResult.to_dict` has it, and their sum.

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
    done = [row for row in files if row["status"] == "done"]
    with_scores = sum(bool(row["scores"]) for row in done)
    if 0 < with_scores < len(done):
        which = f"{with_scores} files that have" if with_scores > 1 else "1 file that has"
        notes.append(f"The total's scores are those of the {which} trees.")
    return Table(title=title, columns=tuple(columns), rows=tuple(rows), notes=tuple(notes))


def _batch_row(row: Mapping[str, Any], columns: Sequence[Column]) -> tuple[Cell, ...]:
    cells: dict[str, Cell] = {"input": row["input"], "status": row["status"]}
    if row["sentences"]:
        cells |= {name: row[name] for name in ("sentences", "words", "changed")}
        cells["tokens_per_second"] = round(row["words"] / max(row["seconds"], 1e-9))
    for system, scores in (row["scores"] or {}).items():
        cells |= {f"{metric}_{system}": score for metric, score in scores.items()}
    return tuple(cells.get(column.key) for column in columns)
