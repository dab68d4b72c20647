"""`tk-spacy add-kernel`: the kernel of a reranker inside the decoder of a sampling parser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads
from tk_spacy.cli.training import dev_table
from tk_spacy.errors import UserError
from tk_spacy.models import open_model, read_parser
from tk_spacy.places import check_output, check_outside
from tk_spacy.tables import Column, Table
from tk_spacy.treebank import load_treebank

STAGE = "tuning gamma"


def add_kernel(
    parser: Path,
    model: Path,
    dev: Path,
    output: Path,
    *,
    arcs_only: bool = False,
    overwrite: bool = False,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write a parser that adds the kernel of a model's reranker to its scores, as tuned on dev.

    arcs_only: without the kernel's siblings and grandparents.
    Returns what there is to tell.  Raises UserError for models, files and places that do not fit.
    """
    from tk_spacy.sampling.kernel_tuning import tune_gamma  # noqa: PLC0415
    from tk_spacy.sampling.search_kernel import SearchKernel  # noqa: PLC0415  (heavy)

    check_output(output, overwrite=overwrite)
    check_outside(output, [dev, parser, model])
    before = read_parser(parser)
    kernel = SearchKernel.of_reranker(open_model(model).reranker, arcs_only=arcs_only)
    if kernel.pairs and before.settings.order == 1:
        raise UserError(
            f"{parser} is of order 1, and its search has no place for the kernel's "
            f"{' and '.join(kernel.pairs)} parts; take its arcs alone (--arcs-only), or train a "
            "parser of order 2 or 3"
        )
    sentences = load_treebank(dev, single_root=before.settings.single_root)
    tuned, table = tune_gamma(before, kernel, sentences, n_threads=n_threads, progress=progress)
    about = {"kernel_of": str(model), "tuning": [asdict(row) for row in table]}
    replace(tuned, about={**before.about, **about}).to_disk(output)
    return {
        "model": str(output),
        "gamma": 0.0 if tuned.kernel is None else tuned.kernel.gamma,
        "support_parts": len(kernel.support),
        "kernel_parts": list(kernel.support.types),
        "replaced": before.kernel is not None,
        "scores": about["tuning"],
    }


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
    grandparents (train --kernel-parts arc,sibling,grandparent) scores those of the trees found, and
    the search goes on with what it says, a few times. Of a grid of gammas, 0 among them, the one
    with the best LAS on dev is taken; with 0 the parser stays as it was.

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
