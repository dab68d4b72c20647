"""`tk-spacy train`: the whole main path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli import parser_options
from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.cluster_options import Cluster, SharedFiles, on_cluster
from tk_spacy.cli.old_options import OldOption, changes_of, parsed, parsers_of, with_old_options
from tk_spacy.cli.shell import EXIT_ERROR, Json, Quiet, Shell, Threads
from tk_spacy.cli.training import show_training, show_treebanks
from tk_spacy.errors import OptionError
from tk_spacy.parsers.kinds import parsers_help
from tk_spacy.parsers.names import DEFAULT_PARSERS
from tk_spacy.workflows.train.config import raw_values, train_options
from tk_spacy.workflows.train.config_file import is_spacy_config
from tk_spacy.workflows.train.options import TrainOptions
from tk_spacy.workflows.train.pipeline import train_pipeline
from tk_spacy.workflows.train.places import at_its_place
from tk_spacy.workflows.train.presets import DEFAULT as DEFAULT_PRESET
from tk_spacy.workflows.train.presets import PRESETS, presets_help
from tk_spacy.workflows.train.releases import are_apart, train_treebanks

ADVANCED = "Advanced options"


@with_old_options
def train_cli(
    train: parser_options.Train = None,
    dev: parser_options.Dev = None,
    test: parser_options.Test = None,
    output: parser_options.Output = None,
    overwrite: parser_options.Overwrite = False,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="|".join(PRESETS),
            help=f"How much time to take: {presets_help()}. It is estimated before it begins.",
            show_default=DEFAULT_PRESET,
        ),
    ] = None,
    parsers: Annotated[
        str | None,
        typer.Option(
            "--parsers",
            metavar="PARSER,...",
            help="Parsers that propose trees and score those of all, the main one first: "
            f"{parsers_help()}; all are trained on the CPU. A second one of a kind differs in "
            "settings of its own, as in sampling:order=2:seed=7.",
            show_default=",".join(DEFAULT_PARSERS),
        ),
    ] = None,
    tags: parser_options.Tags = None,
    folds: parser_options.Folds = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings, as `tk-spacy init-config` writes them; options go before them.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change one setting by its dotted name, as in parsers.sampling.order=2; may be "
            "given repeatedly.",
        ),
    ] = None,
    distill: Annotated[
        bool,
        typer.Option(
            "--distill",
            help="Train a fast parser, too, that learns from all others together, for `tk-spacy "
            "parse --fast`; it is MODEL/fast.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option(
            "--text",
            metavar="RAW.txt|FILE.conllu",
            help="With --distill: a text that the final system parses, to learn from besides.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    licence: parser_options.Licence = None,
    examples: parser_options.Examples = None,
    seed: parser_options.Seed = None,
    threads: Threads = None,
    cluster: Cluster = None,
    shared_files: SharedFiles = True,
    quiet: Quiet = False,
    as_json: Json = False,
    *,
    old: Mapping[OldOption, Any],
) -> None:
    """Train parsers and a reranker from a treebank, and show what the reranker gains.

    Trains a tagger, so that the model parses words that have no tags, and with its tags the rest:
    trains parsers, makes lists of their k best trees for the treebank (by jackknifing: no parser
    ever sees the sentences whose lists it makes), and trains the reranker on them. A single
    parser's own score is weighed in. The scores of parsers, rerankers, final system and oracle are
    shown and saved with the model, a directory for `tk-spacy rerank` and for `spacy.load`.

    Everything at its defaults, from a folder of a Universal Dependencies release, or from files:

        tk-spacy train UD_Greek-GDT -o model

        tk-spacy train train.conllu --dev dev.conllu --test test.conllu -o model

    Without a dev file a tenth of train is held out in its place. A treebank that is a test file
    alone, or a single file where --folds is given, is scored by cross-validation: each sentence is
    parsed by a system trained on the other folds, and the model is trained on all. Several files or
    folders are one training set; with an output that ends in a slash, or is a directory already,
    each folder gets a model of its own, and a table shows all in the end:

        tk-spacy train UD_Greek-GDT more.conllu -o model

        tk-spacy train UD_* -o models/

    In less time, or with --preset best in more:

        tk-spacy train UD_Greek-GDT -o model --preset quick

    Whatever else can be chosen is a setting: `tk-spacy init-config` writes them all, with comments.
    A quick try with a weak parser:

        tk-spacy train train.conllu --dev dev.conllu -o model --parsers sampling --folds 2
        --set parsers.sampling.epochs=3 --set parsers.sampling.order=1

    UDPipe's parser beside it, and the trees of any other one (parses/ has train.conllu, parsed by
    jackknifing, and dev.conllu):

        tk-spacy train train.conllu --dev dev.conllu -o model
        --parsers sampling,udpipe,file:turbo --set parsers.files.turbo=parses/

    Lists of another parser, for reranking its k-best files:

        tk-spacy train train.conllu --dev dev.conllu -o model --set lists.train=train.kbest.conllu
        --set lists.dev=dev.kbest.conllu

    A fast parser beside the reranker, one that learnt from all of them:

        tk-spacy train UD_Greek-GDT -o model --distill

        tk-spacy parse --fast model in.conllu -o out.conllu

    A training again, with another seed (each model has the settings of its own):

        tk-spacy train --config model/training.cfg --seed 1 -o model-1

    Stopped halfway? The same command takes up the work where it stood, and makes again what was
    damaged.
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    options: TrainOptions | None = None
    apart = failed = False

    def how_to_resume() -> str:
        if apart:
            return "run the same command again: finished models are kept, the work goes on"
        if options is None or not options.work_directory.exists():
            return ""
        return f"run the same command again to resume the work in {options.work_directory}"

    flags = {
        "paths.train": ("TREEBANK", tuple(train) if train else None),
        "paths.dev": ("--dev", dev),
        "paths.test": ("--test", test),
        "paths.output": ("--output", output),
        "parsers.names": ("--parsers", parsers),
        "tags.source": ("--tags", tags),
        "lists.folds": ("--folds", folds),
        "training.preset": ("--preset", preset),
        "training.seed": ("--seed", seed),
        "distillation.distill": ("--distill", distill or None),
        "distillation.text": ("--text", text),
        "model.licence": ("--licence", licence),
        "model.examples": ("--examples" if examples else "--no-examples", examples),
        "machine.threads": ("--threads", threads),
    }
    with shell.guard(on_interrupt=how_to_resume):
        changes = parsed(settings or [])
        of_flags = {name: value for name, (_, value) in flags.items() if value is not None}
        of_old, instead = changes_of(old, parsers=parsers)
        if config is not None and is_spacy_config(config):
            # What --config named before there was a config of ours.
            of_old["parsers.spacy.config"] = config
            instead.append(f"--set parsers.spacy.config={config} (a spaCy training config)")
            config = None
        named = {"parsers.names", "training.preset", "lists.train"} & {*changes, *of_old, *of_flags}
        before = parsers_of(of_old)
        if before is not None and not named and config is None:
            of_old["parsers.names"] = before
            instead.append(f"--parsers {before}")
        for twice in changes.keys() & (of_flags.keys() | of_old.keys()):
            flag = flags[twice][0] if twice in of_flags else "an option"
            raise OptionError(f"{flag} and --set {twice} say the same thing; give one of them")
        if instead:
            shell.note(f"Options that are settings now work as before; write: {' '.join(instead)}")
        options = train_options(config, {**changes, **of_old, **of_flags}, overwrite=overwrite)
        for remark in options.remarks:
            shell.note(remark)
        output_text = raw_values(config, {**changes, **of_old, **of_flags})["paths.output"]
        with at_its_place(options):
            apart = are_apart(options.train, str(output_text))
        with (
            progress_of(shell) as progress,
            on_cluster(cluster, shared_files=shared_files, progress=progress),
        ):
            if apart:
                results = train_treebanks(options, progress=progress)
            else:
                report = train_pipeline(options, progress=progress)
        if apart:
            failed = show_treebanks(shell, results, options.output)
        else:
            show_training(shell, report, options.output)
    if failed:
        raise typer.Exit(EXIT_ERROR)
