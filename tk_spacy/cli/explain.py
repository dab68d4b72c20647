"""`tk-spacy explain`: why a model chose the tree of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.file_commands import OneInputOption, TagsOption, WellFormed, chosen
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads
from tk_spacy.cli.streams import standard_input
from tk_spacy.errors import UserError
from tk_spacy.kbest.candidates import MAX_K
from tk_spacy.pages.rendering import check_page, write_page
from tk_spacy.reranker.explain import EXAMPLES, Explanation
from tk_spacy.reranker.influences import Influence
from tk_spacy.utils.tables import Cell, Column, Table
from tk_spacy.workflows.explain import explain
from tk_spacy.workflows.explanation_words import (
    arc_line,
    broken_words,
    given_line,
    marked_words,
    sentence_name,
    share_line,
    shared_line,
    source_line,
    split_line,
    strongest_features,
    what_line,
)
from tk_spacy.workflows.files.inputs import INPUT_FORMS
from tk_spacy.workflows.files.tagging import TAG_CHOICES


def explain_cli(
    model: Annotated[Path, typer.Argument(help="Directory that `tk-spacy train` made.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CoNLL-U, a k-best file, or text, with the sentence; - for standard input.",
        ),
    ],
    sent_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="sent_id of the sentence; may be left out where the file has one sentence.",
        ),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.conllu",
            help="Compare with the tree that the sentence has in this file, which may be FILE "
            "itself.",
            show_default="the runner-up",
        ),
    ] = None,
    examples: Annotated[
        int,
        typer.Option(min=0, max=1000, metavar="N", help="Examples that are shown for each arc."),
    ] = EXAMPLES,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="PAGE.html", help="Write a page with the trees, the scores and the examples."
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", min=1, max=MAX_K, help="Candidates of the sentence.", show_default="the model's"
        ),
    ] = None,
    tags: TagsOption = "auto",
    form: OneInputOption = "auto",
    well_formed: WellFormed = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a page that is there.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Explain why the reranker chose the tree of a sentence, and not another one.

    Shows the winner and the runner-up, the arcs in which they differ, and the scores of both, split
    by parsers, arc combiner, features of the list, manual features, kernel and penalties on what is
    ill-formed; and for the kernel the training examples that matter most: the sentence, its words,
    their weight, and what they have in common with the words here. The parts sum to the scores.

        tk-spacy explain model test.conllu --sent-id s12

        tk-spacy explain model test.conllu --sent-id s12 --tree test.conllu --html s12.html

        echo "A sentence." | tk-spacy explain model -
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        if html is not None:
            check_page(html, overwrite=overwrite, inputs=[file])
        if tree is not None and str(tree) == "-" and tree != file:
            raise UserError(
                "--tree -: standard input is read as FILE alone; name a file with the tree, or "
                "give - as FILE too, where one sentence is both"
            )
        with standard_input([file]) as inputs, progress_of(shell) as progress:
            made = explain(
                model,
                inputs.paths[0],
                sent_id=sent_id,
                tree=inputs.paths[0] if tree is not None and tree == file else tree,
                most=examples,
                k=k,
                tags=chosen("--tags", tags, TAG_CHOICES),
                form=chosen("--input", form, INPUT_FORMS),
                well_formed=well_formed,
                n_threads=threads,
                progress=progress,
            )
        made = replace(made, file=inputs.named(made.file))
        if html is not None:
            from tk_spacy.workflows.explanation_page import page  # noqa: PLC0415  (imports spaCy)

            write_page(html, page(made))
        shell.say(f"Why this tree? {sentence_name(made)}\n")
        shell.say(" ".join(_sentence(made.explanation)))
        shell.say(source_line(made) + "\n")
        shell.result(_tables(made.explanation), made.to_dict())
        for line in _arcs(made.explanation):
            shell.say(line)
        if html is not None:
            shell.note(f"Page: {html}")


def _sentence(explanation: Explanation) -> list[str]:
    """The words, those in brackets whose arcs differ."""
    differing = set(explanation.differing)
    return [
        f"[{form}]" if i in differing else form for i, form in enumerate(explanation.forms, start=1)
    ]


def _with_difference(values: Sequence[float]) -> tuple[float, ...]:
    return (*values, values[0] - values[1]) if len(values) > 1 else tuple(values)


def _tables(explanation: Explanation) -> list[Table]:
    roles = [tree.role for tree in explanation.trees]
    heads = [*roles, "difference"] if len(roles) > 1 else roles
    numbers = [Column(head, head, digits=4) for head in heads]
    rows: list[tuple[Cell, ...]] = [
        (name, where, *_with_difference(values)) for name, where, values in explanation.components()
    ]
    scores = [tree.score for tree in explanation.trees]
    ranks = ", ".join(f"{tree.role} {tree.rank}" for tree in explanation.trees)
    broken = [
        f"The {tree.role} breaks constraints of well-formed trees: {words}."
        for tree in explanation.trees
        if (words := broken_words(tree))
    ]
    tables = [
        Table(
            title="What the scores are made of",
            columns=(
                Column("component", "component", align="left"),
                Column("counted in", "where", align="left"),
                *numbers,
            ),
            rows=(*rows, ("final score", "", *_with_difference(scores))),
            notes=(
                *([given] if (given := given_line(explanation)) else []),
                f"Ranks among {explanation.n_candidates} trees: {ranks}.",
                *broken,
            ),
        )
    ]
    tables += [
        Table(
            title=title,
            columns=(Column("feature", "feature", align="left"), *numbers),
            rows=tuple((name, *_with_difference(values)) for name, values in features),
        )
        for title, features in strongest_features(explanation).items()
    ]
    return tables


def _arcs(explanation: Explanation) -> list[str]:
    """The differing arcs and their examples, line by line."""
    lines = [] if explanation.arcs or len(explanation.trees) < 2 else ["", "No arc differs."]
    for arc in explanation.arcs:
        lines += ["", f"Word {arc.word} {explanation.forms[arc.word - 1]}"]
        for number, tree in enumerate(explanation.trees):
            lines.append(f"  {tree.role}: {arc_line(explanation, number, arc.word)}")
            lines.append(f"    {split_line(explanation, number, arc.word)}")
            for item in arc.influences[number]:
                lines += [f"    {line}" for line in _example(item)]
    return lines


def _example(item: Influence) -> list[str]:
    words = [
        f"[{form}]({','.join(slots)})" if slots else form for form, slots in marked_words(item)
    ]
    return [
        f"- {share_line(item)}",
        f"  {what_line(item)}",
        *([f"  {' '.join(words)}"] if words else []),
        f"  shared {shared_line(item)}",
    ]
