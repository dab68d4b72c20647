"""`tk-spacy audit`: the mistakes in a treebank, most suspicious first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, split
from tk_spacy.cli.streams import standard_input
from tk_spacy.errors import OptionError
from tk_spacy.parsers.names import DEFAULT_PARSERS
from tk_spacy.utils.atomic_files import names_stdout
from tk_spacy.workflows.audit import ENTRIES, apply, audit
from tk_spacy.workflows.audit_parsing import default_place

SHOWN = 20


def audit_cli(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="TREEBANK", help="CoNLL-U files with trees, judged together; - for stdin."
        ),
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="NAME",
            help="NAME.tsv: every word, the most suspicious first. NAME.json: the entries with "
            "what argues for them. NAME.html: a page of them, with trees. May be given repeatedly. "
            "With --apply, once: the copy of the treebank.",
        ),
    ] = None,
    ignore: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Rows of an earlier NAME.tsv, header included, that were looked at and are right.",
        ),
    ] = None,
    chosen: Annotated[
        Path | None,
        typer.Option(
            "--apply",
            metavar="FILE",
            help="Rows of an earlier NAME.tsv, header included: write the treebank with what they "
            "propose to --output.",
        ),
    ] = None,
    parsers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Parsers to train on parts of the treebank, so that each judges sentences that "
            f"it never saw, as {','.join(DEFAULT_PARSERS)}; see `tk-spacy train --parsers`. They "
            "make the audit a little better and take as long as a training.",
            show_default="none",
        ),
    ] = None,
    workdir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the trained parsers here; the same command goes on there after a stop.",
            show_default="a directory beside the first output, removed at the end",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="Words that entries are made of, at most.")
    ] = ENTRIES,
    shown: Annotated[int, typer.Option(min=1, help="Entries to show.")] = SHOWN,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the mistakes in a treebank, most suspicious first.

    What speaks against an arc: a relation that is rare for such words, a head that is, a broken
    rule of UD, the same words annotated in another way elsewhere, and, with --parsers, what parsers
    that never saw the sentence make of it. Scattered mistakes and systematic inconsistencies (one
    pattern with many entries, and the query that finds it in Grew) are two lists.

        tk-spacy audit treebank.conllu -o audit.tsv -o audit.html

        tk-spacy audit treebank.conllu --apply chosen.tsv --output mended.conllu

    A table of rows to apply or to ignore is made from audit.tsv by keeping its header and the rows
    wanted. --apply changes nothing but HEAD and DEPREL of the words chosen, and writes nothing
    unless all trees are trees then.
    """
    named = outputs or []
    taken = chosen is not None and any(map(names_stdout, named))
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=taken)

    def how_to_resume() -> str:
        if parsers is None or chosen is not None:
            return ""
        work = workdir or (default_place(named[0]) if named else None)
        if work is None or not work.exists():
            return ""
        return f"run the same command again to resume the work in {work}"

    with shell.guard(on_interrupt=how_to_resume):
        if chosen is not None:
            if not named:
                raise OptionError("--apply writes a copy; name it by --output")
            if len(named) > 1:
                raise OptionError(f"--apply writes one copy, not {len(named)}; give one --output")
            if len(inputs) > 1:
                raise OptionError(f"--apply takes one treebank, not {len(inputs)}; give one")
            given_in_vain = {
                "ignore": ignore is not None, "parsers": parsers is not None,
                "workdir": workdir is not None, "most": most != ENTRIES, "shown": shown != SHOWN,
            }  # fmt: skip
            for name, is_given in given_in_vain.items():
                if is_given:
                    raise OptionError(
                        f"--apply judges nothing, so --{name} does nothing; leave it out"
                    )
            with standard_input(inputs) as given:
                told = apply(given.paths[0], chosen, named[0])
            shell.result([], told)
            shell.say(f"{told['changed']} words changed: {named[0]}")
            return
        with standard_input(inputs) as given, progress_of(shell) as progress:
            found = audit(
                given.paths,
                output=named,
                ignore=ignore,
                most=most,
                parsers=() if parsers is None else split(parsers),
                workdir=workdir,
                progress=progress,
            )
        shell.result(found.tables(shown), found.to_dict())
        if named:
            shell.say(f"Written: {', '.join(map(str, named))}")
