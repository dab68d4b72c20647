"""`tk-spacy demo`: the whole path on a made-up treebank."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.parser_options import SAMPLING_DEFAULT
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads
from tk_spacy.cli.training import changed, chosen_parsers, of_parsers, show_training
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.parsers.names import BIAFFINE, DEFAULT_PARSERS, SPACY
from tk_spacy.parsers.specs import kinds, parse_specs
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.treebank.synthetic import write_treebank
from tk_spacy.utils.progress import Progress
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

BIAFFINE_EPOCHS = 10
"""A third of what it takes by default: a demonstration is not to be waited for."""

SYNTHETIC = (
    "THE DATA ARE SYNTHETIC: sentences of an invented language, made up by a program. The scores "
    "show that the path works, and say nothing about any real language."
)


def demo(
    directory: Path,
    *,
    sentences: int = 600,
    seed: int = 0,
    parsers: tuple[str, ...] = DEFAULT_PARSERS,
    epochs: int | None = None,
    max_steps: int | None = None,
    threads: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> TrainReport:
    """Write a synthetic treebank into a directory and train on it, with small parsers.

    The directory then holds the treebank's three files and `model`.  The same arguments give the
    same scores.  Raises UserError where there is a model already.
    """
    model = directory / "model"
    parse_specs(parsers)
    if model.exists():
        raise UserError(f"{model}: exists already; choose another directory")
    files = write_treebank(
        directory,
        train=sentences,
        dev=max(20, sentences // 4),
        test=max(20, sentences // 2),
        seed=seed,
    )
    with resources.as_file(resources.files("tk_spacy.configs") / "small.cfg") as config:
        of_spacy = {"config": config, "backward": False} if SPACY in kinds(parsers) else {}
        options = TrainOptions(
            train=files["train"],
            dev=files["dev"],
            test=files["test"],
            output=model,
            parsers=parsers,
            parser_settings=of_parsers(
                sampling=changed(epochs=epochs),
                biaffine={"epochs": BIAFFINE_EPOCHS} if BIAFFINE in kinds(parsers) else {},
            ),
            **of_spacy,  # type: ignore[arg-type]
            max_steps=max_steps,
            folds=3,
            settings=Settings(iterations=5),
            left_open=LEFT_OPEN,
            title="the synthetic treebank",
            seed=seed,
            threads=threads,
            processes=processes,
        )
        return train_pipeline(options, progress=progress)


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
            show_default=",".join(DEFAULT_PARSERS),
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the treebank of the sampling parser's training.",
            show_default=str(SAMPLING_DEFAULT.epochs),
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps of the spaCy parsers' training.",
            show_default="150, a few seconds each",
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
    """Run the whole path on a synthetic treebank, in a few minutes.

    Makes up a treebank of a language with cases, agreement and free word order, trains three small
    parsers and a reranker on it, and shows what each step gains. The data are synthetic: the scores
    say nothing about any real language.

        tk-spacy demo

        tk-spacy demo playground && tk-spacy info playground/model
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard(), ExitStack() as stack:
        shell.note(SYNTHETIC)
        if directory is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tk-spacy-demo-")))
        else:
            place = directory
        with progress_of(shell) as progress:
            report = demo(
                place,
                sentences=sentences,
                seed=seed,
                parsers=chosen_parsers(parsers),
                epochs=epochs,
                max_steps=max_steps,
                threads=threads,
                processes=processes,
                progress=progress,
            )
        kept = None if directory is None else place / "model"
        show_training(shell, report, kept, extra={"synthetic": True})
        shell.say(SYNTHETIC)
