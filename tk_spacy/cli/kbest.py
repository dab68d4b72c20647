"""`tk-spacy kbest`: the k best trees of a parser as a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.batch import check_not_in_model, estimate_sentences, find_jobs
from tk_spacy.candidates import MAX_K, CandidateList, LabelInventory
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.errors import UserError
from tk_spacy.kbest_io import Form, write_kbest
from tk_spacy.models import is_parser, read_parser
from tk_spacy.plan import SEARCHES, Search
from tk_spacy.progress import Progress
from tk_spacy.report import Column, Table
from tk_spacy.treebank import Sentence, read_conllu
from tk_spacy.views.merging import MergedSource

FORMS = ("compact", "expanded")
STAGE = "parsing"


def kbest(
    pipeline: str,
    source: Path,
    target: Path,
    *,
    k: int = 25,
    search: Search = "discrepancy",
    form: Form = "compact",
    progress: Progress | None = None,
) -> dict[str, float]:
    """Write the k best trees for each sentence of a CoNLL-U file; returns what was counted.

    pipeline: see `kbest_source`.
    Raises UserError where an input is missing or the output cannot be written.
    """
    if search not in SEARCHES:
        raise UserError(f"search is {search!r}; choose from {', '.join(SEARCHES)}")
    if form not in FORMS:
        raise UserError(f"form is {form!r}; choose from {', '.join(FORMS)}")
    (job,) = find_jobs([source], target)
    if source.is_dir():
        raise UserError(f"{source}: a directory; give one CoNLL-U file")
    (size,) = estimate_sentences([source])
    parser = kbest_source(pipeline, search=search)
    if Path(pipeline).is_dir():
        check_not_in_model([job], Path(pipeline))
    report = progress or Progress()
    counted = {"sentences": 0, "words": 0, "trees": 0}

    def pairs() -> Iterator[tuple[Sentence, CandidateList]]:
        sentences, again = tee(read_conllu(job.source, trees="any", single_root=False))
        for sentence, trees in zip(sentences, parser.candidates(again, k=k), strict=True):
            counted["sentences"] += 1
            counted["words"] += len(sentence)
            counted["trees"] += len(trees)
            report.update(STAGE, min(counted["sentences"], size), size)
            yield sentence, trees
        if not counted["sentences"]:
            raise UserError(f"{job.source}: the file holds no sentence")

    report.begin(STAGE)
    write_kbest(job.target, pairs(), form=form)
    report.end(STAGE)
    return {**counted, "trees_per_sentence": counted["trees"] / counted["sentences"]}


def kbest_source(
    pipeline: str, *, search: Search = "discrepancy", n_threads: int | None = None
) -> MergedSource:
    """The parsers of a model: those of its reranker, else its spaCy parser, else its tk_parser.

    pipeline: directory or package of a spaCy pipeline, or directory of a sampling parser.
    """
    inventory = LabelInventory()
    if is_parser(Path(pipeline)):
        from tk_spacy.sampling.source import SamplingSource  # noqa: PLC0415

        parser = read_parser(Path(pipeline))
        return MergedSource([SamplingSource(parser, inventory=inventory, n_threads=n_threads)])
    from tk_spacy.upstream.loading import load_pipeline, proposing_parsers  # noqa: PLC0415 (spaCy)
    from tk_spacy.upstream.pipeline_sources import pipeline_sources  # noqa: PLC0415

    nlp = load_pipeline(pipeline)
    components, reranker = proposing_parsers(nlp, where=pipeline)
    return MergedSource(
        pipeline_sources(
            nlp, components, reranker=reranker, search=search, inventory=inventory,
            n_threads=n_threads,
        ),
        n_threads=n_threads,
    )  # fmt: skip


def kbest_cli(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Model of `tk-spacy train`, or any spaCy pipeline with a parser."
        ),
    ],
    source: Annotated[Path, typer.Argument(metavar="IN.conllu", help="CoNLL-U file.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.conllu", help="k-best file to write.")
    ],
    k: Annotated[int, typer.Option("--k", min=1, max=MAX_K, help="Trees a sentence.")] = 25,
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
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the k best trees of each sentence, with the parser's scores.

    The file is CoNLL-U that other tools read, with the best tree in HEAD and DEPREL. It serves as
    input of `tk-spacy rerank`, and of `tk-spacy train --candidates` if the parser never saw the
    sentences.

        tk-spacy kbest model in.conllu -o in.kbest.conllu --k 50

        tk-spacy kbest fr_core_news_sm in.conllu -o in.kbest.conllu --form expanded
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        with progress_of(shell) as progress:
            counted = kbest(
                pipeline,
                source,
                output,
                k=k,
                search=search,  # type: ignore[arg-type]  # checked there
                form=form,  # type: ignore[arg-type]
                progress=progress,
            )
        table = Table(
            title=f"Candidates of {source}",
            columns=(
                Column("sentences", "sentences"),
                Column("words", "words"),
                Column("trees", "trees"),
                Column("trees a sentence", "trees_per_sentence"),
            ),
            rows=(tuple(counted.values()),),
        )
        shell.result([table], {"input": str(source), "output": str(output), **counted})
