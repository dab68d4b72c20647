"""`tk-spacy rerank`: better trees for CoNLL-U and k-best files."""

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
    OldParserFile,
    Output,
    Overwrite,
    ParserFile,
    TagsOption,
    WellFormed,
    chosen,
    named_files,
    run_on_files,
)
from tk_spacy.cli.shell import Json, Quiet
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.reranker.speeds import EXACT, SPEEDS
from tk_spacy.workflows.files.batch import rerank_files
from tk_spacy.workflows.files.inputs import INPUT_FORMS
from tk_spacy.workflows.files.tagging import TAG_CHOICES
from tk_spacy.workflows.files.worker import FileResult


def rerank_cli(
    model: Annotated[Path, typer.Argument(help="Directory that `tk-spacy train` made.")],
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN",
            help="CoNLL-U files (their trees, if any, are not used), k-best files, plain text, or "
            "directories with such files (see --input); - for standard input.",
        ),
    ],
    output: Output,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", min=1, max=MAX_K, help="Candidates a sentence.", show_default="the model's"
        ),
    ] = None,
    parser_file: ParserFile = None,
    old_parser_file: OldParserFile = None,
    deps: DepsOption = "blank",
    tags: TagsOption = "auto",
    form: InputOption = "auto",
    well_formed: WellFormed = False,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Write how sure the choice is: HeadProb and LabelProb of each word in MISC, and "
            "the tree's probability as a comment. Needs a model trained with scikit-learn.",
        ),
    ] = False,
    speed: Annotated[
        str,
        typer.Option(
            "--speed",
            metavar="|".join(SPEEDS),
            help="exact: all parsers and the reranker look at each sentence. balanced, fast: the "
            "quick parsers decide alone where they are sure, for at most 0.05, and 0.2, LAS less "
            "on dev; what they give is in the model's report. Not with --confidence; k-best files "
            "are always reranked exactly.",
        ),
    ] = EXACT,
    overwrite: Overwrite = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    shared_files: SharedFiles = True,
    threads: Cores = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Parse CoNLL-U files or plain text and choose the best of the parser's k best trees.

    HEAD and DEPREL are written anew, DEPS as --deps says; tags, features and lemmas are the
    input's, or the model's own tagger's where the input has none (--tags); all else is kept byte
    by byte. Files with ready candidates (from `tk-spacy kbest` or another parser) are recognised
    and need no parsing. Files are streamed, so they may be larger than memory; of a large one a run
    that is stopped keeps what is done (.OUT.parts beside OUT), and the same command goes on there.

        tk-spacy rerank model in.conllu -o out.conllu

        tagger < text | tk-spacy rerank model - -o - --quiet | head

        tk-spacy rerank model text.txt -o out.conllu

    A directory is searched for .conllu files and mirrored. Files whose result is up to date (same
    input, model and settings) are skipped, so a stopped run goes on where it was; a broken file is
    named at the end and does not stop the others:

        tk-spacy rerank model treebanks/ -o parsed/ --jobs 2
    """

    def work(paths: Sequence[Path], target: str, **more: Any) -> list[FileResult]:
        return rerank_files(
            model,
            paths,
            target,
            k=k,
            parser_files=named_files(parser_file, old_parser_file),
            tags=chosen("--tags", tags, TAG_CHOICES),
            form=chosen("--input", form, INPUT_FORMS),
            well_formed=well_formed,
            confidence=confidence,
            speed=chosen("--speed", speed, SPEEDS),
            overwrite=overwrite,
            processes=jobs,
            n_threads=threads,
            **more,
        )

    run_on_files(
        work,
        inputs,
        output,
        reranked=True,
        deps=deps,
        cluster=cluster,
        shared_files=shared_files,
        quiet=quiet,
        as_json=as_json,
    )
