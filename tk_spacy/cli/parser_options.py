"""Options of the commands that train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.workflows.train.options import DEFAULT_FOLDS

Train = Annotated[
    Path | None, typer.Argument(metavar="TRAIN.conllu", help="Treebank to train on (CoNLL-U).")
]

Dev = Annotated[
    Path | None, typer.Option("--dev", metavar="DEV.conllu", help="Treebank part to measure on.")
]

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="MODEL", help="Directory of the model to write."),
]

Test = Annotated[
    Path | None,
    typer.Option("--test", metavar="TEST.conllu", help="A second part to measure on."),
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

Folds = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Folds of the jackknife that makes the training lists: each is parsed by a parser "
        "trained on all others.",
        show_default=str(DEFAULT_FOLDS),
    ),
]

Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Folds trained at a time, each in a process of its own.",
        show_default="one a core",
    ),
]
