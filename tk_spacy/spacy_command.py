"""`python -m spacy tk`: the program `tk-spacy` as a command of spaCy's.

spaCy imports this module with each of its own commands, so nothing of ours comes with it.
"""

from __future__ import annotations

from typing import Any

import typer
from spacy.cli._util import app
from typer.core import TyperCommand


class _HandedOn(TyperCommand):
    """A command that reads none of its arguments: they are our program's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args


@app.command("tk", cls=_HandedOn, add_help_option=False)
def tk(ctx: typer.Context) -> None:
    """Train parsers on a treebank, and rerank their trees: all of tk-spacy."""
    from tk_spacy.cli import main  # noqa: PLC0415

    main(ctx.args, prog_name=ctx.command_path)
