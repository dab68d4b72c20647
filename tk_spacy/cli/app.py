"""The command line application: `tk-spacy`."""

from __future__ import annotations

from typing import Annotated

import typer

from tk_spacy.about import __version__
from tk_spacy.cli.add_kernel import add_kernel_cli
from tk_spacy.cli.benchmark import benchmark_cli
from tk_spacy.cli.compress import compress_cli
from tk_spacy.cli.demo import demo_cli
from tk_spacy.cli.evaluate import evaluate_cli
from tk_spacy.cli.info import info_cli
from tk_spacy.cli.init_config import init_config_cli
from tk_spacy.cli.kbest import kbest_cli
from tk_spacy.cli.parse import parse_cli
from tk_spacy.cli.rerank import rerank_cli
from tk_spacy.cli.train import train_cli
from tk_spacy.cli.train_parser import train_parser_cli

HELP = """
Train a dependency parser on a treebank alone, and a template-kernel reranker of its k best parses.

A typical session, from a Universal Dependencies treebank to better trees:

    tk-spacy train train.conllu --dev dev.conllu --test test.conllu --output model

    tk-spacy rerank model new.conllu --output parsed.conllu

    tk-spacy evaluate gold.conllu parsed.conllu

No treebank at hand? `tk-spacy demo` makes one up and runs the whole path on it.
"""

app = typer.Typer(
    name="tk-spacy",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tk-spacy {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


for name, command in (
    ("train", train_cli),
    ("init-config", init_config_cli),
    ("rerank", rerank_cli),
    ("kbest", kbest_cli),
    ("train-parser", train_parser_cli),
    ("add-kernel", add_kernel_cli),
    ("parse", parse_cli),
    ("evaluate", evaluate_cli),
    ("info", info_cli),
    ("compress", compress_cli),
    ("benchmark", benchmark_cli),
    ("demo", demo_cli),
):
    app.command(name)(command)


def main() -> None:
    """Entry point of the console script `tk-spacy`."""
    app(prog_name="tk-spacy")
