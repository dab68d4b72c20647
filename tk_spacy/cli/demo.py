"""`tk-spacy demo`: the whole path on a made-up treebank."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads, split
from tk_spacy.cli.training import show_training
from tk_spacy.parsers.names import SAMPLING
from tk_spacy.utils.leftovers import temporary_directory
from tk_spacy.workflows.demo import MAX_STEPS, PARSER_SETTINGS, PARSERS, SYNTHETIC, demo

EXAMPLE = (
    "The test sentence whose tree gained most: head and relation by the main parser ->\n"
    "by the final system, where they differ."
)


def demo_cli(
    directory: Annotated[
        Path | None,
        typer.Argument(
            help="Where treebank and model are written and kept.",
            show_default="a temporary directory, removed at the end",
        ),
    ] = None,
    sentences: Annotated[int, typer.Option(min=100, help="Sentences of the training part.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the treebank and the training.")] = 0,
    parsers: Annotated[
        str | None,
        typer.Option(
            metavar="PARSER,...",
            help="Parsers: sampling, spacy, biaffine, or several.",
            show_default=",".join(PARSERS),
        ),
    ] = None,
    old_parsers: Annotated[str | None, typer.Option("--views", hidden=True)] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the treebank of the sampling parser's training.",
            show_default=str(PARSER_SETTINGS[SAMPLING]["epochs"]),
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps of the spaCy parsers' training.",
            show_default=str(MAX_STEPS),
        ),
    ] = None,
    threads: Threads = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Folds trained at a time.", show_default="one a core"),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run the whole path on a synthetic treebank, in about a minute.

    Makes up a treebank of a language with cases, agreement and free word order, trains three small
    parsers and a reranker on it, and shows what each step gains, last on one sentence's tree. The
    data are synthetic: the scores say nothing about any real language.

        tk-spacy demo

        tk-spacy demo playground && tk-spacy info playground/model
    """
    parsers = parsers if parsers is not None else old_parsers
    shell = Shell(quiet=quiet, as_json=as_json)

    def how_to_resume() -> str:
        if directory is None or not directory.exists():
            return ""
        return f"run the same command again to resume the work in {directory}"

    with shell.guard(on_interrupt=how_to_resume), ExitStack() as stack:
        shell.note(SYNTHETIC)
        place = directory or stack.enter_context(temporary_directory("demo"))
        with progress_of(shell) as progress:
            result = demo(
                place,
                sentences=sentences,
                seed=seed,
                parsers=PARSERS if parsers is None else split(parsers),
                epochs=epochs,
                max_steps=max_steps,
                threads=threads,
                processes=processes,
                progress=progress,
            )
        kept = None if directory is None else place / "model"
        example = None if result.example is None else result.example.to_dict()
        show_training(shell, result.report, kept, extra={"synthetic": True, "example": example})
        if result.example is not None:
            shell.say(f"\n{EXAMPLE}\n")
            for line in result.example.lines():
                shell.say(line)
            shell.say("")
        shell.say(SYNTHETIC)
