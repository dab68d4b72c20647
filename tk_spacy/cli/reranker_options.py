"""Options of `tk-spacy train`: the reranker."""

from __future__ import annotations

from typing import Annotated

import typer

from tk_spacy.cli.training import by_sources
from tk_spacy.features.list_features import LIST_FEATURES
from tk_spacy.features.part_types import PART_TYPES
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.features.word_properties import CHOICES
from tk_spacy.reranker.training import TUNING_FOLDS

RERANKER = "Reranker"

KernelParts = Annotated[
    str,
    typer.Option(
        metavar="TYPE,...",
        help=f"Part types that the kernel compares: {', '.join(PART_TYPES)}; or none.",
        rich_help_panel=RERANKER,
    ),
]

ManualParts = Annotated[
    str | None,
    typer.Option(
        metavar="TYPE,...",
        help=f"Part types with manual features: {', '.join(FEATURE_TYPES)}; or none.",
        rich_help_panel=RERANKER,
        show_default=by_sources("manual_parts"),
    ),
]

ListFeatures = Annotated[
    str,
    typer.Option(
        metavar="GROUP,...",
        help=f"What its list says of a candidate: {', '.join(LIST_FEATURES)}; none (the paper).",
        rich_help_panel=RERANKER,
    ),
]

ListScale = Annotated[
    float | None,
    typer.Option(
        help="Factor on these features.",
        rich_help_panel=RERANKER,
        show_default=by_sources("list_scale"),
    ),
]

Iterations = Annotated[
    int, typer.Option(min=1, help="Passes over the lists.", rich_help_panel=RERANKER)
]

Aggressiveness = Annotated[
    float,
    typer.Option(
        "-C",
        "--aggressiveness",
        help="Bound on a single update: a positive number or inf.",
        rich_help_panel=RERANKER,
    ),
]

Loss = Annotated[
    str,
    typer.Option(
        help="What counts as wrong: labelled (heads and labels) or heads (the paper).",
        rich_help_panel=RERANKER,
    ),
]

Competitor = Annotated[
    str,
    typer.Option(
        help="What an update pushes down: best (the highest score, as in the paper) or "
        "violator (the highest score plus loss).",
        rich_help_panel=RERANKER,
    ),
]

Skip = Annotated[
    str,
    typer.Option(
        metavar="SLOT,...",
        help="Slots that a combination of properties may leave out (h, m, s, g, t); node for "
        "all words' slots.",
        rich_help_panel=RERANKER,
        show_default="none",
    ),
]

KernelScale = Annotated[
    float | None,
    typer.Option(
        help="Factor on the kernel beside the manual features.",
        rich_help_panel=RERANKER,
        show_default=by_sources("kernel_scale"),
    ),
]

Bits = Annotated[
    int,
    typer.Option(
        min=8,
        max=30,
        help="Manual features are hashed to that many bits.",
        rich_help_panel=RERANKER,
    ),
]

Budget = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Support parts that the kernel keeps at most while training: the least "
        "influential updates make room for new ones (BPA-S).",
        show_default="no bound",
        rich_help_panel=RERANKER,
    ),
]

Lemma = Annotated[
    bool,
    typer.Option("--lemma/--no-lemma", help="LEMMA as a property.", rich_help_panel=RERANKER),
]

Combiner = Annotated[
    bool,
    typer.Option(
        "--combiner/--no-combiner",
        help="Where several parsers propose trees: learn to weigh what they say of each arc, "
        "and add the best trees of such arcs.",
        rich_help_panel=RERANKER,
    ),
]

Properties = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        help=f"Further properties of words that the kernel compares: {CHOICES}; or none. "
        "misc:NAME is the value of NAME in MISC; FILE holds a form, a tab and its value in "
        "each line (word clusters, say), of which LENGTH characters count.",
        rich_help_panel=RERANKER,
        show_default="none",
    ),
]

ShuffleSeed = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Shuffle the sentences anew in each pass.",
        show_default="keep their order",
        rich_help_panel=RERANKER,
    ),
]

AddGold = Annotated[
    bool,
    typer.Option(
        "--add-gold/--no-add-gold",
        help="Add the gold tree to lists without it.",
        rich_help_panel=RERANKER,
    ),
]

PaperGrid = Annotated[
    bool,
    typer.Option(
        "--paper-grid",
        help="Tune the parser's weight from 0 to 3 in steps of 0.05, as the paper does, not "
        "from 0.01 to 100.",
        rich_help_panel=RERANKER,
    ),
]

TuningFolds = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Rerankers trained to tune the parser's weight, each on all folds but one; 1 for "
        "a single one, on nine tenths, as the paper has it; 0 for no weight beside the "
        "reranker's own.",
        rich_help_panel=RERANKER,
        show_default=f"{TUNING_FOLDS}; 0 with the combiner",
    ),
]
