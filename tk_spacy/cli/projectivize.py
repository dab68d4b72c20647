"""`tk-spacy projectivize`: projective trees in the place of all others, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.file_commands import DepsOption, Output, chosen, deps_notes, tell
from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.cli.streams import standard_input
from tk_spacy.treebank.enhanced import DEPS_CHOICES
from tk_spacy.trees.pseudo_projective import SCHEMES
from tk_spacy.utils.atomic_files import names_stdout
from tk_spacy.utils.tables import Cell, Column, Table
from tk_spacy.workflows.projectivize import ProjectedFile, projectivize_files


def projectivize_cli(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="CoNLL-U files with trees, or directories with such files; - for standard input.",
        ),
    ],
    output: Output,
    scheme: Annotated[
        str,
        typer.Option(
            metavar="|".join(SCHEMES),
            help="What labels tell of lifted arcs. path: that an arc is lifted (nmod↑), and the "
            "path that it was lifted along (obl↓). head: the label of the old head (nmod↑obl). "
            "head+path: both, with the most labels and the fewest arcs lost.",
        ),
    ] = "path",
    undo: Annotated[
        bool,
        typer.Option("--undo", help="The way back, with the --scheme of the way there."),
    ] = False,
    deps: DepsOption = "blank",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there already.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Make all trees projective, with labels that tell what they were, or undo that.

    For parsers that know no crossing arcs: arcs that are not projective are lifted, the shortest
    first, each to the head of its head (pseudo-projective transformation, Nivre and Nilsson 2005).
    Train the parser on what comes out; --undo puts the arcs of its trees back. Sentences with
    projective trees are kept byte by byte, and of all others everything but HEAD, DEPREL and, as
    --deps says, DEPS. All files are written, or none.

        tk-spacy projectivize train.conllu -o projective.conllu

        tk-spacy projectivize parsed.conllu -o undone.conllu --undo

    Arcs lost are those that --undo would not put back where they were, or had to leave where they
    are.
    """
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=names_stdout(output))
    with shell.guard():
        with standard_input(inputs) as given, progress_of(shell) as progress:
            results = projectivize_files(
                given.paths,
                output,
                scheme=chosen("--scheme", scheme, SCHEMES),
                undo=undo,
                deps=chosen("--deps", deps, DEPS_CHOICES),
                overwrite=overwrite,
                progress=progress,
            )
        for result in results:
            result.input = given.named(result.input)
        total = reduce(add, results, ProjectedFile("", ""))
        total.input = "total"
        rows = [*results, total] if len(results) > 1 else results
        notes = deps_notes(total.deps, deps)
        document = {
            "scheme": scheme,
            "undo": undo,
            "files": [result.to_dict() for result in results],
            "total": {**total.to_dict(), "input": "", "output": ""},
            "notes": notes,
        }
        shell.result([_table(rows, scheme, undo=undo)], document)
        tell(shell, [], total.deps, deps)


def _table(rows: Sequence[ProjectedFile], scheme: str, *, undo: bool) -> Table:
    columns = (
        Column("file", "input", align="left"),
        Column("sents.", "sentences"),
        Column("changed", "changed"),
        Column("%", "changed_percent"),
        Column("words", "words"),
        Column("arcs marked" if undo else "arcs lifted", "lifted"),
        Column("%", "lifted_percent"),
        Column("arcs lost", "lost"),
    )
    title = f"Lifted arcs{' put back' if undo else ''}, scheme {scheme}"
    return Table(title=title, columns=columns, rows=tuple(_row(row) for row in rows))


def _row(row: ProjectedFile) -> tuple[Cell, ...]:
    return (
        row.input,
        row.sentences,
        row.changed,
        100 * row.changed / row.sentences,
        row.words,
        row.lifted,
        100 * row.lifted / row.words,
        row.lost,
    )
