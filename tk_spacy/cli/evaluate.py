"""`tk-spacy evaluate`: scores of system files against a gold file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.shell import Json, Quiet, Shell
from tk_spacy.cli.streams import standard_input
from tk_spacy.evaluation.attachment import METRICS
from tk_spacy.evaluation.breakdown import GROUPINGS, PAGE_GROUPINGS
from tk_spacy.pages.charts import check_charts
from tk_spacy.pages.rendering import check_page, write_page
from tk_spacy.utils.atomic_files import names_stdout
from tk_spacy.workflows.evaluate import evaluate

ALL = "all"


def evaluate_cli(
    gold: Annotated[
        Path, typer.Argument(help="CoNLL-U file with the right trees; - for standard input.")
    ],
    systems: Annotated[
        list[Path],
        typer.Argument(
            help="CoNLL-U files with the trees of one or more systems; - for standard input.",
            metavar="SYSTEM",
        ),
    ],
    metric: Annotated[
        str, typer.Option(help=f"Score that the bootstrap compares: {', '.join(METRICS)}.")
    ] = "uas",
    samples: Annotated[int, typer.Option(min=1, help="Resamplings of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUPING",
            help="Show also where the errors are, in a table of scores by groups of words: "
            f"{', '.join(GROUPINGS)}, or all of these. Can be given several times.",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE.html",
            help="Write a page with the tables, charts, and the sentences behind confusions of "
            "relations; - for standard output.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page that is there.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Score trees against gold trees.

    Reports UAS and LAS with and without punctuation, LAS on universal labels and CLAS (both as in
    the CoNLL 2018 shared task), and sentences whose every head is right. With several systems, each
    is compared with the first by a paired bootstrap over sentences. A second table counts what is
    ill-formed: errors that level 3 of UD's validator finds in the trees, by its names of them.

        tk-spacy evaluate gold.conllu parsed.conllu

        tk-spacy evaluate gold.conllu before.conllu after.conllu --metric las

    With --by, the words are also divided by their gold relation, by the distance of their gold
    head, by whether its arc crosses another one, and so on, to see where systems err and differ:

        tk-spacy evaluate gold.conllu before.conllu after.conllu --by deprel --by length

    Where a system's words have probabilities in MISC (HeadProb, LabelProb: `tk-spacy rerank
    --confidence`), it also tells how true these are: expected calibration error, area under the
    risk-coverage curve, and a table of reliability.

    --html writes all of this and more as one page without scripts, with charts (pip install
    'tk-spacy[report]'): what each relation is taken for, and sentences with such confusions, their
    gold trees beside those of the first and the last system:

        tk-spacy evaluate gold.conllu before.conllu after.conllu --html page.html
    """
    if metric not in METRICS:
        raise typer.BadParameter(
            f"{metric!r} is none of {', '.join(METRICS)}", param_hint="'--metric'"
        )
    for name in by or ():
        if name not in {*GROUPINGS, ALL}:
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(GROUPINGS)}, {ALL}", param_hint="'--by'"
            )
    groupings = list(GROUPINGS) if ALL in (by or ()) else by or []
    taken = html is not None and names_stdout(html)
    shell = Shell(quiet=quiet, as_json=as_json, stdout_taken=taken)
    with shell.guard():
        if html is not None:
            check_page(html, overwrite=overwrite, inputs=[gold, *systems])
            check_charts()
        with standard_input([gold, *systems]) as given:
            result = evaluate(
                given.paths[0],
                given.paths[1:],
                metric=metric,
                samples=samples,
                seed=seed,
                by=[*groupings, *(() if html is None else PAGE_GROUPINGS)],
            )
            named = tuple((given.named(name), scores) for name, scores in result.systems)
            notes = tuple(given.named(note) for note in result.notes)
            result = replace(result, gold=given.named(result.gold), systems=named, notes=notes)
            if html is not None:
                from tk_spacy.workflows.evaluation_page import (  # noqa: PLC0415  (imports spaCy)
                    find_confusions,
                    page,
                )

                confusions = find_confusions(given.paths[0], given.paths[1:])
                text = page(result, confusions, files=given.paths, groupings=groupings)
                write_page(html, text)
        result = replace(result, groupings=tuple(dict.fromkeys(groupings)))
        shell.result(result.tables(), result.to_dict())
        for note in notes:
            shell.warn(note)
        if html is not None:
            shell.note(f"Page: {html}")
