"""Options of the commands that train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from tk_spacy.workflows.train.options import DEFAULT_TAGS
from tk_spacy.workflows.train.options import Tags as TagSource

Train = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="TREEBANK",
        help="What to train on: a folder of a Universal Dependencies release, for its train, dev "
        "and test files, or a CoNLL-U file; several are one training set.",
    ),
]

Dev = Annotated[
    Path | None,
    typer.Option(
        "--dev",
        metavar="DEV.conllu",
        help="Treebank part to measure on.",
        show_default="the folder's, or a tenth of train",
    ),
]

# A text, not a path: a slash at its end means something.
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="MODEL",
        help="Directory of the model to write; of several folders with a slash at its end, the "
        "directory in which each gets a model of its own.",
    ),
]

Test = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="TEST.conllu",
        help="A second part to measure on.",
        show_default="the folder's, if any",
    ),
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a model that is there already.")
]

Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Seed of the parsers, the tuning split and the bootstrap.",
        show_default="0",
    ),
]
Licence = Annotated[
    str | None,
    typer.Option(
        "--licence",
        "--license",
        help="Licence of the model, for its meta.json and `spacy package`; your choice, as far as "
        "the treebank's allows.",
        show_default="the treebank's",
    ),
]
Examples = Annotated[
    bool | None,
    typer.Option(
        "--examples/--no-examples",
        help="Whether the model keeps the words of the training sentences that its kernel compares "
        "with, so that `tk-spacy explain` can show them, and its report.html sentences of dev.",
        show_default="examples",
    ),
]

Tags = Annotated[
    str | None,
    typer.Option(
        "--tags",
        metavar="|".join(get_args(TagSource)),
        help="Where the parsers take UPOS, XPOS, FEATS and LEMMA from. own: a tagger that is "
        "trained too, by jackknifing, and becomes part of the model. gold: the files.",
        show_default=DEFAULT_TAGS,
    ),
]

Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Folds of the jackknife that makes the training lists: each is parsed by a parser "
        "trained on all others. With a single file alone: score it by cross-validation.",
        show_default="2 to 5, by the size",
    ),
]
