"""`tk-spacy kbest`: the k best trees of a parser as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.file_commands import (
    KEPT,
    Cores,
    DepsOption,
    OldParserFile,
    OneInputOption,
    Overwrite,
    ParserFile,
    TagsOption,
    chosen,
    deps_notes,
    named_files,
    tell,
)
from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.cli.streams import standard_input
from tk_spacy.kbest.candidates import LONG_LIST, MAX_K
from tk_spacy.parsers.names import SEARCHES
from tk_spacy.treebank.data_notes import missing_note
from tk_spacy.treebank.enhanced import DEPS_CHOICES, DepsCount
from tk_spacy.utils.atomic_files import names_stdout
from tk_spacy.utils.tables import Column, Table
from tk_spacy.workflows.files.inputs import INPUT_FORMS
from tk_spacy.workflows.files.tagging import TAG_CHOICES
from tk_spacy.workflows.kbest import kbest

COUNTS = ("sentences", "words", "trees", "trees_per_sentence")


def kbest_cli(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Model of `tk-spacy train`, or any spaCy pipeline with a parser."
        ),
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="CoNLL-U or plain text (see --input); - for standard input."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.conllu",
            help="k-best file to write; - for standard output.",
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            min=1,
            max=MAX_K,
            help="Trees a sentence.",
            show_default=f"the model's, else {LONG_LIST}",
        ),
    ] = None,
    search: Annotated[
        str, typer.Option(help=f"How the parser looks for them: {', '.join(SEARCHES)}.")
    ] = "discrepancy",
    form: Annotated[
        str,
        typer.Option(
            help="compact: one sentence each, candidates as comments. expanded: one block for each "
            "tree, with '# rank' and '# score'."
        ),
    ] = "compact",
    parser_file: ParserFile = None,
    old_parser_file: OldParserFile = None,
    deps: DepsOption = "blank",
    tags: TagsOption = "auto",
    input_form: OneInputOption = "auto",
    overwrite: Overwrite = False,
    threads: Cores = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the k best trees of each sentence, with the parser's scores.

    The file is CoNLL-U that other tools read, with the best tree in HEAD and DEPREL. It serves as
    input of `tk-spacy rerank`, and of `tk-spacy train --set lists.train=FILE` if the parser never
    saw the sentences.

        tk-spacy kbest model in.conllu -o in.kbest.conllu --k 50

        tk-spacy kbest fr_core_news_sm in.conllu -o in.kbest.conllu --form expanded

    Plain text is split into sentences and words by a model that `tk-spacy train` made:

        tk-spacy kbest model text.txt -o text.kbest.conllu
    """
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=names_stdout(output))
    with shell.guard(on_interrupt=lambda: KEPT):
        with standard_input([source]) as given, progress_of(shell) as progress:
            counted = kbest(
                pipeline,
                given.paths[0],
                output,
                k=k,
                search=search,  # type: ignore[arg-type]  # checked there
                form=form,  # type: ignore[arg-type]
                parser_files=named_files(parser_file, old_parser_file),
                deps=chosen("--deps", deps, DEPS_CHOICES),
                tags=chosen("--tags", tags, TAG_CHOICES),
                input_form=chosen("--input", input_form, INPUT_FORMS),
                overwrite=overwrite,
                n_threads=threads,
                progress=progress,
            )
        table = Table(
            title=f"Candidates of {given.named(str(given.paths[0]))}",
            columns=(
                Column("sentences", "sentences"),
                Column("words", "words"),
                Column("trees", "trees"),
                Column("trees a sentence", "trees_per_sentence"),
            ),
            rows=(tuple(counted[name] for name in COUNTS),),
        )
        missing = counted["missing_columns"]
        notes = [missing_note(missing, given.named(str(given.paths[0])))] if missing else []
        told = [f"{given.named(str(given.paths[0]))}: {counted['tags']}"] if counted["tags"] else []
        count = DepsCount(**counted["deps"])
        document = {
            "input": str(source),
            "output": str(output),
            **counted,
            "notes": [*notes, *told, *deps_notes(count, deps)],
        }
        shell.result([table], document)
        for note in told:
            shell.note(note)
        tell(shell, notes, count, deps)
