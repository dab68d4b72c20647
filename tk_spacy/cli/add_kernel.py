"""`tk-spacy add-kernel`: the kernel of a reranker inside the decoder of a sampling parser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads
from tk_spacy.cli.training import dev_table
from tk_spacy.utils.tables import Column, Table
from tk_spacy.workflows.add_kernel import STAGE, add_kernel


def add_kernel_cli(
    parser: Annotated[
        Path,
        typer.Argument(help="Directory that `tk-spacy train-parser` or `tk-spacy train` made."),
    ],
    model: Annotated[
        Path, typer.Argument(help="Directory that `tk-spacy train` made, with a reranker's kernel.")
    ],
    dev: Annotated[
        Path, typer.Option("--dev", metavar="DEV.conllu", help="Treebank part that tells gamma.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="NEW", help="Directory of the parser to write."),
    ],
    arcs_only: Annotated[
        bool,
        typer.Option(
            "--arcs-only", help="Leave out what the kernel says of siblings and grandparents."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a parser that is there already.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Put the kernel of a reranker into the decoder of a sampling parser.

    Before the search, gamma times the kernel's score of each arc is added to the parser's own, so
    that the search itself, and lists of the k best trees, heed it. A kernel of siblings and
    grandparents (train --set reranker.kernel_parts=arc,sibling,grandparent) scores those of the
    trees found, and the search goes on with what it says, a few times. Of a grid of gammas, 0 among
    them, the one with the best LAS on dev is taken; with 0 the parser stays as it was.

        tk-spacy add-kernel parser model --dev dev.conllu -o new-parser
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        with progress_of(shell) as progress:
            progress.begin(STAGE)
            told = add_kernel(
                parser, model, dev, output, arcs_only=arcs_only, overwrite=overwrite,
                n_threads=threads,
                progress=lambda done, total: progress.update(STAGE, done, total),
            )  # fmt: skip
            progress.end(STAGE)
        shell.result([_table(told)], told)
        for note in told["notes"]:
            shell.warn(note)
        names = ", ".join(told["kernel_parts"])
        if told["replaced"]:
            shell.say(f"{parser} has a kernel of its own, which is not in the new parser.")
        shell.say(f"Gamma {told['gamma']:.4g}, {told['support_parts']:,} support parts ({names}).")
        shell.say(f"Parser: {output}")


def _table(told: dict[str, Any]) -> Table:
    tried = (Column("gamma", "gamma"), Column("relative to the spreads", "relative"))
    rows = (
        ((f"{row['gamma']:.4g}", f"{row['relative']:.3g}"), row, row["gamma"] == told["gamma"])
        for row in told["scores"]
    )
    return dev_table(tried, rows, mark="taken")
