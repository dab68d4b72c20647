"""Options of `tk-spacy train`: treebank, parsers and candidate lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tk_spacy.kbest.candidates import LONG_LIST, MAX_K, SHORT_LIST
from tk_spacy.parsers.biaffine.settings import BiaffineSettings
from tk_spacy.parsers.names import SEARCHES
from tk_spacy.parsers.sampling.settings import SamplingSettings

PARSERS, SAMPLING, BIAFFINE = "Parsers", "Sampling parser", "Biaffine parser"
SPACY_PIPELINE, LISTS = "spaCy parser", "Candidate lists"
SAMPLING_DEFAULT = SamplingSettings()
BIAFFINE_DEFAULT = BiaffineSettings()

Train = Annotated[
    Path, typer.Argument(metavar="TRAIN.conllu", help="Treebank to train on (CoNLL-U).")
]

Dev = Annotated[
    Path, typer.Option("--dev", metavar="DEV.conllu", help="Treebank part to measure on.")
]

Output = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="MODEL", help="Directory of the model to write."),
]

Test = Annotated[
    Path | None,
    typer.Option("--test", metavar="TEST.conllu", help="A second part to measure on."),
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a model that is there already.")
]

Name = Annotated[
    str | None,
    typer.Option(
        help="Name of the model as a spaCy package, in letters, digits and underscores.",
        show_default="the treebank's",
    ),
]

Licence = Annotated[
    str,
    typer.Option(
        "--licence",
        "--license",
        help="Licence of the model, for its meta.json and `spacy package`; your choice, as far as "
        "the treebank's allows.",
        show_default="none",
    ),
]

Workdir = Annotated[
    Path | None,
    typer.Option(
        help="Keep parsers and candidate lists here, also after success.",
        show_default="MODEL.work, removed at success",
    ),
]

Seed = Annotated[
    int, typer.Option(min=0, help="Seed of the parser, the tuning split and the bootstrap.")
]

Epochs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Passes over the treebank, at most; the best of them on dev is kept.",
        show_default=str(SAMPLING_DEFAULT.epochs),
        rich_help_panel=SAMPLING,
    ),
]

Order = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=3,
        help="Arcs in a feature, at most: 2 is faster than 3, and sometimes as good.",
        show_default=str(SAMPLING_DEFAULT.order),
        rich_help_panel=SAMPLING,
    ),
]

Restarts = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Starts of the search for a sentence's trees.",
        show_default=str(SAMPLING_DEFAULT.restarts),
        rich_help_panel=SAMPLING,
    ),
]

Udpipe = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=VALUE,...",
        help="Settings of the udpipe parser, such as iterations=20,transition_system=swap (names "
        "in tk_spacy.parsers.udpipe.settings).",
        show_default="quicker than UDPipe's own",
        rich_help_panel=PARSERS,
    ),
]

ParserFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME.PART=FILE",
        help="Trees of the parser file:NAME for the part train, dev or test: CoNLL-U with one "
        "tree a sentence, or a k-best file. Those of train must come from parsers that did not "
        "see the sentence. NAME=DIRECTORY takes train.conllu, dev.conllu and test.conllu.",
        rich_help_panel=PARSERS,
    ),
]

Extra = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Further properties of words that the parser has features of; names as for "
        "--properties.",
        show_default="none",
        rich_help_panel=SAMPLING,
    ),
]

BiaffineEpochs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Passes over the treebank.",
        show_default=str(BIAFFINE_DEFAULT.epochs),
        rich_help_panel=BIAFFINE,
    ),
]

ParserKernelScale = Annotated[
    float | None,
    typer.Option(
        help="Learn a template kernel of arcs with the parser's features, by this factor on "
        "it; 0 for none.",
        show_default=f"{SAMPLING_DEFAULT.kernel_scale:g}",
        rich_help_panel=SAMPLING,
    ),
]

Upstream = Annotated[
    str | None,
    typer.Option(
        metavar="PIPELINE",
        help="Take this spaCy pipeline (directory or package) instead of training one. It must "
        "not have been trained on TRAIN.conllu, unless --candidates are given.",
        rich_help_panel=SPACY_PIPELINE,
    ),
]

Backward = Annotated[
    bool,
    typer.Option(
        "--backward/--no-backward",
        help="Train a second parser that reads from right to left: both together make better "
        "lists, in twice the training time.",
        rich_help_panel=SPACY_PIPELINE,
    ),
]

Config = Annotated[
    Path | None,
    typer.Option(
        help="spaCy training config of the parser.",
        show_default="a parser that sees TAG, POS, MORPH and LEMMA",
        rich_help_panel=SPACY_PIPELINE,
    ),
]

MaxSteps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Steps of the parser's training.",
        show_default="the config's",
        rich_help_panel=SPACY_PIPELINE,
    ),
]

Folds = Annotated[
    int,
    typer.Option(
        min=2,
        help="Folds of the jackknife that makes the training lists: each is parsed by a parser "
        "trained on all others.",
        rich_help_panel=PARSERS,
    ),
]

Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Folds trained at a time, each in a process of its own.",
        show_default="one a core",
        rich_help_panel=PARSERS,
    ),
]

K = Annotated[
    int | None,
    typer.Option(
        "--k",
        min=2,
        max=MAX_K,
        help="Candidates a sentence.",
        show_default=f"{SHORT_LIST}, or {LONG_LIST} of a single parser or ready lists",
        rich_help_panel=LISTS,
    ),
]

Search = Annotated[
    str,
    typer.Option(
        help=f"How the parser looks for them: {', '.join(SEARCHES)}.", rich_help_panel=LISTS
    ),
]

Candidates = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="k-best file with ready lists for TRAIN.conllu, matched by sent_id; no jackknife "
        "then.",
        rich_help_panel=LISTS,
    ),
]

DevCandidates = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The same for DEV.conllu. With lists for all parts no parser is trained, and the "
        "model reranks k-best files only (unless --upstream is given).",
        rich_help_panel=LISTS,
    ),
]

TestCandidates = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The same for TEST.conllu.", rich_help_panel=LISTS),
]
