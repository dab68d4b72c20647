"""`tk-spacy parse`: the sampling parser of a model, without a reranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.batch import parse_files, total
from tk_spacy.candidates import MAX_K
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import EXIT_ERROR, Json, Quiet, Shell, Threads
from tk_spacy.report import batch_table


def parse_cli(
    model: Annotated[
        Path,
        typer.Argument(help="Directory that `tk-spacy train-parser` or `tk-spacy train` made."),
    ],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="CoNLL-U files (their trees, if any, are only compared with), or directories with "
            "such files.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="File, or directory for several files."),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            min=1,
            max=MAX_K,
            help="Write a k-best file with that many trees a sentence.",
            show_default="the best tree only",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Do files of a directory again whose output is there."),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=1, help="Files at a time, each in a process of its own."),
    ] = 1,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Parse CoNLL-U files with a sampling parser.

    Words, tags, features and lemmas are taken from the input as they are; HEAD and DEPREL are
    written anew and all else is kept byte by byte. Files are streamed, so they may be larger than
    memory. For the reranked trees of a model of `tk-spacy train`, use `tk-spacy rerank`.

        tk-spacy parse parser in.conllu -o out.conllu

        tk-spacy parse parser in.conllu -o in.kbest.conllu --k 25

    A directory is searched for .conllu files and mirrored; finished files are skipped:

        tk-spacy parse parser treebanks/ -o parsed/ --jobs 2
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard(on_interrupt=lambda: "finished files are kept"):
        with progress_of(shell) as progress:
            results = parse_files(
                model,
                inputs,
                output,
                k=k,
                overwrite=overwrite,
                processes=jobs,
                n_threads=threads,
                progress=progress,
            )
        rows = [result.to_dict() for result in results]
        whole = total(results).to_dict()
        table = batch_table(rows, whole, title="Parsed files", reranked=False)
        shell.result([table], {"files": rows, "total": whole})
        failed = [result for result in results if result.status == "failed"]
        for result in failed:
            shell.error(result.error or result.source)
    if failed:
        raise typer.Exit(EXIT_ERROR)
