"""`tk-spacy info`: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.workflows.info import info


def info_cli(
    model: Annotated[
        Path, typer.Argument(help="Directory that `tk-spacy train` or `train-parser` made.")
    ],
    features: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="List the N strongest features of a model that `tk-spacy select` made.",
            show_default="none",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Show what a model was made of, its settings, sizes and scores.

    tk-spacy info model

    tk-spacy info model --json | jq .combination

    tk-spacy info selected --features 100
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        shell.result(*info(model, features=features))
