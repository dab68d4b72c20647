"""`tk-spacy train`: the whole main path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.biaffine.settings import BiaffineSettings
from tk_spacy.candidates import LONG_LIST, MAX_K, SHORT_LIST
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads, split
from tk_spacy.cli.training import (
    by_sources,
    changed,
    chosen_views,
    named_options,
    show_training,
    view_files,
)
from tk_spacy.extras import CHOICES
from tk_spacy.features import FEATURE_TYPES
from tk_spacy.list_features import LIST_FEATURES
from tk_spacy.part_types import PART_TYPES
from tk_spacy.pipeline import train_pipeline
from tk_spacy.plan import DEFAULT_FOLDS, SEARCHES, TrainOptions
from tk_spacy.sampling.settings import SamplingSettings
from tk_spacy.settings import LEFT_OPEN, Settings
from tk_spacy.training import TUNING_FOLDS
from tk_spacy.udpipe.settings import UdpipeSettings
from tk_spacy.views.protocol import DEFAULT_VIEWS

PARSERS, SAMPLING, BIAFFINE = "Parsers", "Sampling parser", "Biaffine parser"
UPSTREAM, LISTS, RERANKER = "spaCy parser", "Candidate lists", "Reranker"
DEFAULT = Settings()
SAMPLING_DEFAULT = SamplingSettings()
BIAFFINE_DEFAULT = BiaffineSettings()


def train_cli(
    context: typer.Context,
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN.conllu", help="Treebank to train on (CoNLL-U).")
    ],
    dev: Annotated[
        Path, typer.Option("--dev", metavar="DEV.conllu", help="Treebank part to measure on.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="Directory of the model to write."),
    ],
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="TEST.conllu", help="A second part to measure on."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is there already.")
    ] = False,
    workdir: Annotated[
        Path | None,
        typer.Option(
            help="Keep parsers and candidate lists here, also after success.",
            show_default="MODEL.work, removed at success",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the parser, the tuning split and the bootstrap.")
    ] = 0,
    threads: Threads = None,
    views: Annotated[
        str | None,
        typer.Option(
            metavar="VIEW,...",
            help="Parsers that propose trees and score those of all, the main one first: sampling "
            "(needs nothing but the treebank), spacy (a neural network that decides step by step), "
            "biaffine (one that scores all arcs), udpipe (UDPipe 1's parser, one tree a sentence), "
            "file:NAME (any other parser, see --view-file); all are trained on the CPU.",
            show_default=f"{','.join(DEFAULT_VIEWS)}, or spacy with --upstream",
            rich_help_panel=PARSERS,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the treebank, at most; the best of them on dev is kept.",
            show_default=str(SAMPLING_DEFAULT.epochs),
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    order: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=3,
            help="Arcs in a feature, at most: 2 is faster than 3, and sometimes as good.",
            show_default=str(SAMPLING_DEFAULT.order),
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Starts of the search for a sentence's trees.",
            show_default=str(SAMPLING_DEFAULT.restarts),
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    udpipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Settings of the udpipe view, such as iterations=20,transition_system=swap (names "
            "in tk_spacy.udpipe.settings).",
            show_default="quicker than UDPipe's own",
            rich_help_panel=PARSERS,
        ),
    ] = None,
    view_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME.PART=FILE",
            help="Trees of the view file:NAME for the part train, dev or test: CoNLL-U with one "
            "tree a sentence, or a k-best file. Those of train must come from parsers that did not "
            "see the sentence. NAME=DIRECTORY takes train.conllu, dev.conllu and test.conllu.",
            rich_help_panel=PARSERS,
        ),
    ] = None,
    extra: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Further properties of words that the parser has features of; names as for "
            "--properties.",
            show_default="none",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    biaffine_epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the treebank.",
            show_default=str(BIAFFINE_DEFAULT.epochs),
            rich_help_panel=BIAFFINE,
        ),
    ] = None,
    parser_kernel_scale: Annotated[
        float | None,
        typer.Option(
            help="Learn a template kernel of arcs with the parser's features, by this factor on "
            "it; 0 for none.",
            show_default=f"{SAMPLING_DEFAULT.kernel_scale:g}",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(
            metavar="PIPELINE",
            help="Take this spaCy pipeline (directory or package) instead of training one. It must "
            "not have been trained on TRAIN.conllu, unless --candidates are given.",
            rich_help_panel=UPSTREAM,
        ),
    ] = None,
    backward: Annotated[
        bool,
        typer.Option(
            "--backward/--no-backward",
            help="Train a second parser that reads from right to left: both together make better "
            "lists, in twice the training time.",
            rich_help_panel=UPSTREAM,
        ),
    ] = True,
    config: Annotated[
        Path | None,
        typer.Option(
            help="spaCy training config of the parser.",
            show_default="a parser that sees TAG, POS, MORPH and LEMMA",
            rich_help_panel=UPSTREAM,
        ),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Steps of the parser's training.",
            show_default="the config's",
            rich_help_panel=UPSTREAM,
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            min=2,
            help="Folds of the jackknife that makes the training lists: each is parsed by a parser "
            "trained on all others.",
            rich_help_panel=PARSERS,
        ),
    ] = DEFAULT_FOLDS,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Folds trained at a time, each in a process of its own.",
            show_default="one a core",
            rich_help_panel=PARSERS,
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            min=2,
            max=MAX_K,
            help="Candidates a sentence.",
            show_default=f"{SHORT_LIST}, or {LONG_LIST} of a single view or ready lists",
            rich_help_panel=LISTS,
        ),
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            help=f"How the parser looks for them: {', '.join(SEARCHES)}.", rich_help_panel=LISTS
        ),
    ] = "discrepancy",
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="k-best file with ready lists for TRAIN.conllu, matched by sent_id; no jackknife "
            "then.",
            rich_help_panel=LISTS,
        ),
    ] = None,
    dev_candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The same for DEV.conllu. With lists for all parts no parser is trained, and the "
            "model reranks k-best files only (unless --upstream is given).",
            rich_help_panel=LISTS,
        ),
    ] = None,
    test_candidates: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same for TEST.conllu.", rich_help_panel=LISTS),
    ] = None,
    kernel_parts: Annotated[
        str,
        typer.Option(
            metavar="TYPE,...",
            help=f"Part types that the kernel compares: {', '.join(PART_TYPES)}; or none.",
            rich_help_panel=RERANKER,
        ),
    ] = ",".join(DEFAULT.kernel_parts),
    manual_parts: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE,...",
            help=f"Part types with manual features: {', '.join(FEATURE_TYPES)}; or none.",
            rich_help_panel=RERANKER,
            show_default=by_sources("manual_parts"),
        ),
    ] = None,
    list_features: Annotated[
        str,
        typer.Option(
            metavar="GROUP,...",
            help=f"What its list says of a candidate: {', '.join(LIST_FEATURES)}; none (the "
            "paper).",
            rich_help_panel=RERANKER,
        ),
    ] = ",".join(DEFAULT.list_features),
    list_scale: Annotated[
        float | None,
        typer.Option(
            help="Factor on these features.",
            rich_help_panel=RERANKER,
            show_default=by_sources("list_scale"),
        ),
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=1, help="Passes over the lists.", rich_help_panel=RERANKER)
    ] = DEFAULT.iterations,
    aggressiveness: Annotated[
        float,
        typer.Option(
            "-C",
            "--aggressiveness",
            help="Bound on a single update: a positive number or inf.",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.C,
    loss: Annotated[
        str,
        typer.Option(
            help="What counts as wrong: labelled (heads and labels) or heads (the paper).",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.loss,
    competitor: Annotated[
        str,
        typer.Option(
            help="What an update pushes down: best (the highest score, as in the paper) or "
            "violator (the highest score plus loss).",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.competitor,
    skip: Annotated[
        str,
        typer.Option(
            metavar="SLOT,...",
            help="Slots that a combination of properties may leave out (h, m, s, g, t); node for "
            "all words' slots.",
            rich_help_panel=RERANKER,
            show_default="none",
        ),
    ] = ",".join(DEFAULT.skip),
    kernel_scale: Annotated[
        float | None,
        typer.Option(
            help="Factor on the kernel beside the manual features.",
            rich_help_panel=RERANKER,
            show_default=by_sources("kernel_scale"),
        ),
    ] = None,
    bits: Annotated[
        int,
        typer.Option(
            min=8,
            max=30,
            help="Manual features are hashed to that many bits.",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.bits,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Support parts that the kernel keeps at most while training: the least "
            "influential updates make room for new ones (BPA-S).",
            show_default="no bound",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.budget,
    lemma: Annotated[
        bool,
        typer.Option("--lemma/--no-lemma", help="LEMMA as a property.", rich_help_panel=RERANKER),
    ] = DEFAULT.use_lemma,
    combiner: Annotated[
        bool,
        typer.Option(
            "--combiner/--no-combiner",
            help="Where several parsers propose trees: learn to weigh what they say of each arc, "
            "and add the best trees of such arcs.",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.combiner,
    properties: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help=f"Further properties of words that the kernel compares: {CHOICES}; or none. "
            "misc:NAME is the value of NAME in MISC; FILE holds a form, a tab and its value in "
            "each line (word clusters, say), of which LENGTH characters count.",
            rich_help_panel=RERANKER,
            show_default="none",
        ),
    ] = ",".join(DEFAULT.properties),
    shuffle_seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Shuffle the sentences anew in each pass.",
            show_default="keep their order",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.shuffle_seed,
    add_gold: Annotated[
        bool,
        typer.Option(
            "--add-gold/--no-add-gold",
            help="Add the gold tree to lists without it.",
            rich_help_panel=RERANKER,
        ),
    ] = DEFAULT.add_gold,
    paper_grid: Annotated[
        bool,
        typer.Option(
            "--paper-grid",
            help="Tune the parser's weight from 0 to 3 in steps of 0.05, as the paper does, not "
            "from 0.01 to 100.",
            rich_help_panel=RERANKER,
        ),
    ] = False,
    tuning_folds: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Rerankers trained to tune the parser's weight, each on all folds but one; 1 for "
            "a single one, on nine tenths, as the paper has it; 0 for no weight beside the "
            "reranker's own.",
            rich_help_panel=RERANKER,
            show_default=f"{TUNING_FOLDS}; 0 with the combiner",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train parsers and a reranker from a treebank, and show what the reranker gains.

    Trains parsers, makes lists of their k best trees for the treebank (by jackknifing: no parser
    ever sees the sentences whose lists it makes), and trains the reranker on them. A single
    parser's own score is weighed in. The scores of parsers, rerankers, final system and oracle are
    shown and saved with the model, a directory for `tk-spacy rerank` and for `spacy.load`.

    Everything at its defaults:

        tk-spacy train train.conllu --dev dev.conllu --test test.conllu -o model

    In a fifth of the time, with one parser instead of three that are better together:

        tk-spacy train train.conllu --dev dev.conllu -o model --views sampling

    UDPipe's parser beside it, and the trees of any other one (parses/ has train.conllu, parsed by
    jackknifing, and dev.conllu):

        tk-spacy train train.conllu --dev dev.conllu -o model --views sampling,udpipe,file:turbo
        --view-file turbo=parses/

        tk-spacy rerank model new.conllu -o out.conllu --view-file turbo=new.turbo.conllu

    A quick try with a weak parser:

        tk-spacy train train.conllu --dev dev.conllu -o model --views sampling
        --epochs 3 --order 1 --folds 2

    Lists of another parser, for reranking its k-best files:

        tk-spacy train train.conllu --dev dev.conllu -o model --candidates train.kbest.conllu
        --dev-candidates dev.kbest.conllu

    Stopped halfway? The same command takes up the work where it stood, and makes again what was
    damaged.
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    work = workdir if workdir is not None else Path(f"{output}.work")

    def how_to_resume() -> str:
        return f"run the same command again to resume the work in {work}" if work.exists() else ""

    with shell.guard(on_interrupt=how_to_resume):
        choices = {
            "manual_parts": None if manual_parts is None else split(manual_parts),
            "list_scale": list_scale,
            "kernel_scale": kernel_scale,
        }
        given: dict[str, Any] = {
            name: value for name, value in choices.items() if value is not None
        }
        options = TrainOptions(
            train=train,
            dev=dev,
            test=test,
            output=output,
            overwrite=overwrite,
            workdir=workdir,
            views=chosen_views(views, upstream=upstream),
            sampling=changed(
                epochs=epochs,
                order=order,
                restarts=restarts,
                kernel_scale=parser_kernel_scale,
                extra=None if extra is None else split(extra),
            ),
            udpipe=UdpipeSettings.from_text(udpipe or ""),
            view_files=view_files(view_file or ()),
            biaffine=changed(epochs=biaffine_epochs),
            upstream=upstream,
            backward=backward,
            config=config,
            max_steps=max_steps,
            folds=folds,
            processes=processes,
            k=k,
            search=search,  # type: ignore[arg-type]  # checked there
            candidates=candidates,
            dev_candidates=dev_candidates,
            test_candidates=test_candidates,
            left_open=LEFT_OPEN - given.keys(),
            settings=Settings(
                kernel_parts=split(kernel_parts),
                list_features=split(list_features),
                iterations=iterations,
                C=aggressiveness,
                loss=loss,  # type: ignore[arg-type]
                competitor=competitor,  # type: ignore[arg-type]
                skip=split(skip),
                bits=bits,
                budget=budget,
                use_lemma=lemma,
                combiner=combiner,
                properties=split(properties),
                shuffle_seed=shuffle_seed,
                add_gold=add_gold,
                **given,
            ),
            paper_grid=paper_grid,
            tuning_folds=tuning_folds,
            seed=seed,
            threads=threads,
            asked=named_options(context),
        )
        with progress_of(shell) as progress:
            report = train_pipeline(options, progress=progress)
        show_training(shell, report, output)
