"""`tk-spacy train-parser`: a sampling parser alone, without a reranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads, split
from tk_spacy.cli.training import dev_table
from tk_spacy.features.word_properties import CHOICES
from tk_spacy.parsers.sampling.settings import DEFAULT, SamplingSettings
from tk_spacy.utils.tables import MEBIBYTE, Column, Table, show_seconds
from tk_spacy.workflows.train_parser import train_parser


def train_parser_cli(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN.conllu", help="Treebank to train on (CoNLL-U).")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MODEL", help="Directory of the parser to write."),
    ],
    dev: Annotated[
        Path | None,
        typer.Option(
            "--dev", metavar="DEV.conllu", help="Treebank part that tells the best epoch."
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the treebank, at most.")
    ] = DEFAULT.epochs,
    order: Annotated[
        int, typer.Option(min=1, max=3, help="Arcs in a feature, at most.")
    ] = DEFAULT.order,
    restarts: Annotated[
        int, typer.Option(min=1, help="Starts of the search for a sentence's trees.")
    ] = DEFAULT.restarts,
    aggressiveness: Annotated[
        float,
        typer.Option(
            "-C",
            "--aggressiveness",
            help="Bound on a single update: a positive number or inf.",
        ),
    ] = DEFAULT.C,
    bits: Annotated[
        int, typer.Option(min=8, max=28, help="Features are hashed to that many bits.")
    ] = DEFAULT.bits,
    single_root: Annotated[
        bool,
        typer.Option(
            "--single-root/--many-roots", help="Whether a tree has exactly one word as root."
        ),
    ] = DEFAULT.single_root,
    extra: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help=f"Further properties of words with features: {CHOICES}; or none. misc:NAME is the "
            "value of NAME in MISC; FILE holds a form, a tab and its value in each line (word "
            "clusters, say), of which LENGTH characters count.",
            show_default="none",
        ),
    ] = ",".join(DEFAULT.extra),
    seed: Annotated[int, typer.Option(min=0, help="Seed of shuffling and search.")] = DEFAULT.seed,
    kernel_scale: Annotated[
        float,
        typer.Option(
            help="Learn a template kernel of arcs with the features, by this factor on it (0.1, "
            "say); 0 for none.",
        ),
    ] = DEFAULT.kernel_scale,
    kernel_epochs: Annotated[
        int, typer.Option(min=1, help="The last epochs in which the kernel is learnt, at most.")
    ] = DEFAULT.kernel_epochs,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a parser that is there already.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a sampling parser from a treebank, without a reranker.

    The parser sees words, tags, features and perhaps lemmas. Trees need not be projective. Its
    scores on dev are shown after each epoch, and the best epoch is kept.

        tk-spacy train-parser train.conllu --dev dev.conllu -o parser

        tk-spacy parse parser new.conllu -o parsed.conllu

    For a parser with a reranker on top, use `tk-spacy train`.
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        settings = SamplingSettings(
            epochs=epochs, order=order, restarts=restarts, C=aggressiveness, bits=bits,
            single_root=single_root, seed=seed, extra=split(extra), kernel_scale=kernel_scale,
            kernel_epochs=kernel_epochs,
        )  # fmt: skip
        with progress_of(shell) as progress:
            told = train_parser(
                train,
                dev,
                output,
                settings=settings,
                overwrite=overwrite,
                n_threads=threads,
                progress=progress,
            )
        shell.result([_table(told)] if told["epochs"] else [], told)
        shell.say(_needed(told))
        shell.say(f"Model: {output}")


def _table(told: dict[str, Any]) -> Table:
    best = max(told["epochs"], key=lambda row: row["uas"] + row["las"], default=None)
    rows = (((row["epoch"],), row, row is best) for row in told["epochs"])
    return dev_table((Column("epoch", "epoch"),), rows, mark="kept")


def _needed(told: dict[str, Any]) -> str:
    peak = told["peak_bytes"] / MEBIBYTE
    pruner = told["pruner"].get("dev") or told["pruner"]["train"]
    support = told["support_parts"]
    kernel = "" if support is None else f" The kernel has {support:,} support parts."
    return (
        f"Trained in {show_seconds(told['seconds'])}; peak memory {peak:,.0f} MB. The pruner keeps "
        f"{pruner['recall']:.2f}% of the right heads, {pruner['heads_per_word']:.1f} heads a word."
        + kernel
    )
