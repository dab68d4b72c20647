"""`tk-spacy train`: the whole main path."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli import parser_options, reranker_options
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads, split
from tk_spacy.cli.training import (
    changed,
    chosen_parsers,
    named_options,
    of_parsers,
    parser_files,
    show_training,
)
from tk_spacy.parsers.kinds import parsers_help
from tk_spacy.parsers.names import DEFAULT_PARSERS
from tk_spacy.parsers.udpipe.settings import UdpipeSettings
from tk_spacy.reranker.settings import LEFT_OPEN, Settings
from tk_spacy.workflows.train.options import DEFAULT_FOLDS, TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline

DEFAULT = Settings()
KERNEL_PARTS = ",".join(DEFAULT.kernel_parts)
LIST_FEATURES = ",".join(DEFAULT.list_features)
SKIP = ",".join(DEFAULT.skip)
PROPERTIES = ",".join(DEFAULT.properties)


def train_cli(
    context: typer.Context,
    train: parser_options.Train,
    dev: parser_options.Dev,
    output: parser_options.Output,
    test: parser_options.Test = None,
    overwrite: parser_options.Overwrite = False,
    workdir: parser_options.Workdir = None,
    seed: parser_options.Seed = 0,
    threads: Threads = None,
    parsers: Annotated[
        str | None,
        typer.Option(
            metavar="PARSER,...",
            help="Parsers that propose trees and score those of all, the main one first: "
            f"{parsers_help()}; all are trained on the CPU. A second one of a kind differs in "
            "settings of its own, as in sampling:order=2:seed=7.",
            show_default=f"{','.join(DEFAULT_PARSERS)}, or spacy with --upstream",
            rich_help_panel=parser_options.PARSERS,
        ),
    ] = None,
    epochs: parser_options.Epochs = None,
    order: parser_options.Order = None,
    restarts: parser_options.Restarts = None,
    udpipe: parser_options.Udpipe = None,
    parser_file: parser_options.ParserFile = None,
    extra: parser_options.Extra = None,
    biaffine_epochs: parser_options.BiaffineEpochs = None,
    parser_kernel_scale: parser_options.ParserKernelScale = None,
    spacy_pipeline: parser_options.Upstream = None,
    backward: parser_options.Backward = True,
    config: parser_options.Config = None,
    max_steps: parser_options.MaxSteps = None,
    folds: parser_options.Folds = DEFAULT_FOLDS,
    processes: parser_options.Processes = None,
    k: parser_options.K = None,
    search: parser_options.Search = "discrepancy",
    candidates: parser_options.Candidates = None,
    dev_candidates: parser_options.DevCandidates = None,
    test_candidates: parser_options.TestCandidates = None,
    kernel_parts: reranker_options.KernelParts = KERNEL_PARTS,
    manual_parts: reranker_options.ManualParts = None,
    list_features: reranker_options.ListFeatures = LIST_FEATURES,
    list_scale: reranker_options.ListScale = None,
    iterations: reranker_options.Iterations = DEFAULT.iterations,
    aggressiveness: reranker_options.Aggressiveness = DEFAULT.C,
    loss: reranker_options.Loss = DEFAULT.loss,
    competitor: reranker_options.Competitor = DEFAULT.competitor,
    skip: reranker_options.Skip = SKIP,
    kernel_scale: reranker_options.KernelScale = None,
    bits: reranker_options.Bits = DEFAULT.bits,
    budget: reranker_options.Budget = DEFAULT.budget,
    lemma: reranker_options.Lemma = DEFAULT.use_lemma,
    combiner: reranker_options.Combiner = DEFAULT.combiner,
    properties: reranker_options.Properties = PROPERTIES,
    shuffle_seed: reranker_options.ShuffleSeed = DEFAULT.shuffle_seed,
    add_gold: reranker_options.AddGold = DEFAULT.add_gold,
    paper_grid: reranker_options.PaperGrid = False,
    tuning_folds: reranker_options.TuningFolds = None,
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

    In a fraction of the time, with one parser instead of three that are better together:

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
            parsers=chosen_parsers(parsers, spacy_pipeline=spacy_pipeline),
            parser_settings=of_parsers(
                sampling=changed(
                    epochs=epochs,
                    order=order,
                    restarts=restarts,
                    kernel_scale=parser_kernel_scale,
                    extra=None if extra is None else split(extra),
                ),
                biaffine=changed(epochs=biaffine_epochs),
                udpipe=UdpipeSettings.from_text(udpipe or ""),
            ),
            parser_files=parser_files(parser_file or ()),
            spacy_pipeline=spacy_pipeline,
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
