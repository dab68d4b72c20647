"""The command line application: `tk-spacy`."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from tk_spacy.about import __version__
from tk_spacy.cli.streams import standard_streams
from tk_spacy.parallel.memory import keep_freed_memory

COMMANDS = {
    "train": "tk_spacy.cli.train:train_cli",
    "sweep": "tk_spacy.cli.sweep:sweep_cli",
    "init-config": "tk_spacy.cli.init_config:init_config_cli",
    "rerank": "tk_spacy.cli.rerank:rerank_cli",
    "kbest": "tk_spacy.cli.kbest:kbest_cli",
    "train-parser": "tk_spacy.cli.train_parser:train_parser_cli",
    "add-kernel": "tk_spacy.cli.add_kernel:add_kernel_cli",
    "parse": "tk_spacy.cli.parse:parse_cli",
    "evaluate": "tk_spacy.cli.evaluate:evaluate_cli",
    "info": "tk_spacy.cli.info:info_cli",
    "audit": "tk_spacy.cli.audit:audit_cli",
    "explain": "tk_spacy.cli.explain:explain_cli",
    "projectivize": "tk_spacy.cli.projectivize:projectivize_cli",
    "compress": "tk_spacy.cli.compress:compress_cli",
    "select": "tk_spacy.cli.select:select_cli",
    "benchmark": "tk_spacy.cli.benchmark:benchmark_cli",
    "demo": "tk_spacy.cli.demo:demo_cli",
}
"""Where each command is, in the order in which they are told."""

HELP = """
Train a dependency parser on a treebank alone, and a template-kernel reranker of its k best parses.

A typical session, from a Universal Dependencies treebank to better trees:

    tk-spacy train train.conllu --dev dev.conllu --test test.conllu --output model

    tk-spacy rerank model new.conllu --output parsed.conllu

    tk-spacy evaluate gold.conllu parsed.conllu

No treebank at hand? `tk-spacy demo` makes one up and runs the whole path on it.
"""


class _Command(typer.core.TyperCommand):
    """A command that takes no empty words: as a path they would be the current directory."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "" in args:
            raise typer.BadParameter(
                "an argument is empty; give it a value (a variable of the shell may be unset), or "
                'leave it out; for no items at all write "none"',
                ctx=ctx,
            )
        return super().parse_args(ctx, args)


class _Commands(dict[str, Any]):
    """The commands by name, each imported when it is asked for: a command waits for no other."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            one = typer.Typer(add_completion=False, **STYLE)
            one.command(name, cls=_Command)(pkgutil.resolve_name(COMMANDS[name]))
            self[name] = typer.main.get_command(one)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  (this is `get`)

    def values(self) -> Any:
        return [self[name] for name in self]

    def items(self) -> Any:
        return [(name, self[name]) for name in self]


class _Group(typer.core.TyperGroup):
    """The program: its commands are looked up by `_Commands`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()


STYLE: dict[str, Any] = {
    "rich_markup_mode": "markdown",
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

app = typer.Typer(
    cls=_Group,
    name="tk-spacy",
    help=HELP,
    no_args_is_help=True,
    **STYLE,
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


def main(args: Sequence[str] | None = None, *, prog_name: str = "tk-spacy") -> None:
    """Entry point of the console script `tk-spacy`; ends the process.

    args: the words after the program's name, None for those of the process.
    prog_name: what help calls the program.
    """
    keep_freed_memory()
    with standard_streams():
        app(args, prog_name=prog_name)
