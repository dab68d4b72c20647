"""`tk-spacy init-config`: all settings of a training as a file, with comments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.errors import UserError
from tk_spacy.utils.atomic_files import atomic_output, names_stdout
from tk_spacy.workflows.train.config_schema import SETTINGS
from tk_spacy.workflows.train.config_text import default_config


def init_config_cli(
    output: Annotated[
        Path, typer.Argument(metavar="OUT.cfg", help="File to write; - for standard output.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there already.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write all settings of `tk-spacy train` with their defaults, a comment above each.

    Keep what you change, leave out what you do not, and train with it:

        tk-spacy init-config my.cfg

        tk-spacy train train.conllu --dev dev.conllu -o model --config my.cfg

    Single settings can be changed without a file:

        tk-spacy train train.conllu --dev dev.conllu -o model --set reranker.iterations=5
    """
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=names_stdout(output))
    with shell.guard():
        if not names_stdout(output) and output.exists() and not overwrite:
            raise UserError(f"{output}: exists already; --overwrite replaces it")
        with atomic_output(output) as file:
            file.write(default_config().encode("utf-8"))
        shell.result([], {"output": str(output), "settings": len(SETTINGS)})
        shell.say(f"{len(SETTINGS)} settings: {output}")
