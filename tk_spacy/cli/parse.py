"""`tk-spacy parse`: one parser of a model, without a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.cluster_options import Cluster, SharedFiles
from tk_spacy.cli.file_commands import (
    Cores,
    DepsOption,
    InputOption,
    Jobs,
    Output,
    Overwrite,
    TagsOption,
    WellFormed,
    chosen,
    run_on_files,
)
from tk_spacy.cli.shell import Json, Quiet
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.workflows.files.batch import parse_files
from tk_spacy.workflows.files.inputs import INPUT_FORMS
from tk_spacy.workflows.files.tagging import TAG_CHOICES
from tk_spacy.workflows.files.worker import FileResult


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
            help="CoNLL-U files (their trees, if any, are only compared with), plain text, or "
            "directories with such files (see --input); - for standard input.",
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
    tags: TagsOption = "auto",
    form: InputOption = "auto",
    well_formed: WellFormed = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Use the model's fast parser, which learnt from all its others together "
            "(`tk-spacy train --distill`).",
        ),
    ] = False,
    overwrite: Overwrite = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    shared_files: SharedFiles = True,
    threads: Cores = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Parse CoNLL-U files or plain text with a sampling parser, else with a model's first parser.

    HEAD and DEPREL are written anew, DEPS as --deps says; tags, features and lemmas are the
    input's, or the model's own tagger's where the input has none (--tags); all else is kept byte
    by byte. Files are streamed, so they may be larger than memory; of a large one a run that is
    stopped keeps what is done (.OUT.parts beside OUT), and the same command goes on there. For the
    reranked trees of a model of `tk-spacy train`, use `tk-spacy rerank`.

        tk-spacy parse parser in.conllu -o out.conllu

        tk-spacy parse parser in.conllu -o in.kbest.conllu --k 25

    With some two thirds of what `tk-spacy rerank` gains, in a fraction of its time, by a model of
    `tk-spacy train --distill`:

        tk-spacy parse --fast model in.conllu -o out.conllu

    Plain text is split into sentences and words by a model that `tk-spacy train` made:

        tk-spacy parse model text.txt -o out.conllu

    A directory is searched for .conllu files and mirrored; files whose result is up to date are
    skipped:

        tk-spacy parse parser treebanks/ -o parsed/ --jobs 2
    """

    def work(paths: Sequence[Path], target: str, **more: Any) -> list[FileResult]:
        return parse_files(
            model,
            paths,
            target,
            k=k,
            tags=chosen("--tags", tags, TAG_CHOICES),
            form=chosen("--input", form, INPUT_FORMS),
            well_formed=well_formed,
            fast=fast,
            overwrite=overwrite,
            processes=jobs,
            n_threads=threads,
            **more,
        )

    run_on_files(
        work,
        inputs,
        output,
        reranked=False,
        deps=deps,
        cluster=cluster,
        shared_files=shared_files,
        quiet=quiet,
        as_json=as_json,
    )
