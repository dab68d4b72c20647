"""`tk-spacy parse`: one parser of a model, without a reranker."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.file_commands import DepsOption, Jobs, Output, Overwrite, run_on_files
from tk_spacy.cli.shell import Json, Quiet, Threads
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.workflows.files.batch import parse_files


def parse_cli(
    model: Annotated[
        Path,
        typer.Argument(
            help="Directory that `tk-spacy train-parser` or `tk-spacy train` made, or any spaCy "
            "pipeline with a parser."
        ),
    ],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="CoNLL-U files (their trees, if any, are only compared with), or directories with "
            "such files; - for standard input.",
        ),
    ],
    output: Output,
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
    deps: DepsOption = "blank",
    overwrite: Overwrite = False,
    jobs: Jobs = 1,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Parse CoNLL-U files with a sampling parser, or with a model's first parser if it has none.

    Words, tags, features and lemmas are taken from the input as they are; HEAD and DEPREL are
    written anew, DEPS as --deps says, and all else is kept byte by byte. Files are streamed, so
    they may be larger than memory. For the reranked trees of a model of `tk-spacy train`, use
    `tk-spacy rerank`.

        tk-spacy parse parser in.conllu -o out.conllu

        tk-spacy parse parser in.conllu -o in.kbest.conllu --k 25

    A directory is searched for .conllu files and mirrored; finished files are skipped:

        tk-spacy parse parser treebanks/ -o parsed/ --jobs 2
    """
    work = partial(
        parse_files,
        model,
        k=k,
        overwrite=overwrite,
        processes=jobs,
        n_threads=threads,
    )
    run_on_files(work, inputs, output, reranked=False, deps=deps, quiet=quiet, as_json=as_json)
