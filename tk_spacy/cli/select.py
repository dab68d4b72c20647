"""`tk-spacy select`: features selected in kernel space, in the place of a model's kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tk_spacy.cli.bars import progress_of
from tk_spacy.cli.shell import Json, Quiet, Shell, Threads
from tk_spacy.cli.wording import of_options
from tk_spacy.errors import OptionError
from tk_spacy.reranker.explicit_training import GIB, LEARNERS, SPACES, SelectionSettings, Space
from tk_spacy.reranker.interpolation import TUNING_METRICS
from tk_spacy.utils.tables import MEBIBYTE, Column, Table
from tk_spacy.workflows.select import find_inputs, select
from tk_spacy.workflows.selected import features_table, selection_scores

USUAL = SelectionSettings()


def select_cli(
    model: Annotated[Path, typer.Argument(help="Directory that `tk-spacy train` made.")],
    treebank: Annotated[
        Path,
        typer.Argument(
            metavar="TREEBANK",
            help="What the model learnt from: TRAIN.conllu, or a folder of a release with dev and "
            "test beside it.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="NEW", help="Directory of the model to write."),
    ],
    workdir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Of the training (`tk-spacy train --set paths.workdir=DIR`): its candidate lists, "
            "where they are not named.",
        ),
    ] = None,
    lists: Annotated[
        Path | None,
        typer.Option(
            metavar="LISTS",
            help="Candidate lists of train by parsers that did not see it.",
            show_default="DIR/train.kbest.conllu",
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            metavar="DEV.conllu", help="Right trees to tune on.", show_default="the folder's"
        ),
    ] = None,
    dev_lists: Annotated[
        Path | None,
        typer.Option(metavar="LISTS", help="Their lists.", show_default="DIR/dev.kbest.conllu"),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="TEST.conllu", help="Right trees to score.", show_default="the folder's"
        ),
    ] = None,
    test_lists: Annotated[
        Path | None,
        typer.Option(
            metavar="LISTS",
            help="Their lists, see `tk-spacy kbest`.",
            show_default="DIR/test.kbest.conllu",
        ),
    ] = None,
    space: Annotated[
        str,
        typer.Option(
            metavar="SPACE",
            help="Whose features: "
            + "; ".join(f"{space.name}, {space.help}" for space in SPACES.values())
            + ".",
        ),
    ] = USUAL.space,
    threshold: Annotated[
        float,
        typer.Option("--threshold", "-C", help="C: what a gradient must be above; more is less."),
    ] = USUAL.threshold,
    iterations: Annotated[int, typer.Option(help="Of mining, at most.")] = USUAL.iterations,
    step: Annotated[
        float, typer.Option(help="Of a weight in mining; a tree may be wrong by a margin of 1.")
    ] = USUAL.step,
    pretraining: Annotated[
        int, typer.Option(help="Passes over features of first and second order before it.")
    ] = USUAL.pretraining,
    max_order: Annotated[
        int | None,
        typer.Option(
            help="Basic features that are combined, at most.",
            show_default="the kernel's degree; 3 for trees",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(help="Combinations of a kernel's support, at most.")
    ] = USUAL.most,
    add_gold: Annotated[
        bool, typer.Option("--add-gold", help="Add the right tree to training lists without it.")
    ] = False,
    min_count: Annotated[
        int, typer.Option(help="Leave out basic features of fewer arcs.")
    ] = USUAL.min_count,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="DEPREL beside the words and tags of an arc.")
    ] = False,
    learner: Annotated[
        str, typer.Option(metavar="NAME", help=f"Of the final weights: {' or '.join(LEARNERS)}.")
    ] = USUAL.learner,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help=f"To tune by: {' or '.join(TUNING_METRICS)}.")
    ] = "las",
    memory: Annotated[
        float | None,
        typer.Option(
            metavar="GIB",
            help="Mining ends where more memory would be needed, and keeps what it had.",
            show_default="no limit",
        ),
    ] = None,
    strongest: Annotated[int, typer.Option(min=0, help="Features to show.")] = 20,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is there already.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Select features in kernel space, and put a linear model of them in the kernel's place.

    Basic features of arcs (words, tags, distance) are combined as a polynomial kernel does, or to
    parts of trees as a tree kernel does. Of these combinations, more than could be written down,
    those are mined that correct what the model gets wrong on its training lists; a perceptron
    learns their weights. The new model goes on as any other, is fast, and can be read.

        tk-spacy train train.conllu --dev dev.conllu -o model --set paths.workdir=work

        tk-spacy select model train.conllu --dev dev.conllu --workdir work --space tree -o new
    """
    shell = Shell(quiet=quiet, as_json=as_json)
    with shell.guard():
        if metric not in TUNING_METRICS:
            raise OptionError(f"--metric is {metric!r}; choose {' or '.join(TUNING_METRICS)}")
        if memory is not None and not 0 < memory < 1e6:
            raise OptionError(f"--memory is {memory:g}; give a positive number of GiB")
        with of_options():
            settings = SelectionSettings(
                space=space, threshold=threshold, iterations=iterations, step=step,
                pretraining=pretraining, max_order=max_order, most=most, add_gold=add_gold,
                min_count=min_count, labelled=labelled,
                learner=learner,  # type: ignore[arg-type]
                memory=None if memory is None else int(memory * GIB),
            )  # fmt: skip
        given = find_inputs(
            treebank, workdir=workdir, lists=lists, dev=dev, dev_lists=dev_lists, test=test,
            test_lists=test_lists,
        )  # fmt: skip
        if workdir is not None and output.resolve().is_relative_to(workdir.resolve()):
            raise OptionError(f"{output}: lies in the work directory {workdir}; write it elsewhere")
        if given.test is None and workdir is not None and treebank.is_dir():
            shell.note(f"{workdir}: no lists of test are there, so it is not scored")
        with progress_of(shell) as progress:
            told = select(
                model, given.train, given.lists, given.dev, given.dev_lists, output, settings,
                test=given.test, metric=metric, strongest=strongest, overwrite=overwrite,
                n_threads=threads, progress=progress,
            )  # fmt: skip
        betas = ", ".join(f"{name} {beta:g}" for name, beta in told["betas"].items())
        tables = [selection_scores(told["scores"], [f"all words; beta: {betas}"])]
        tables.append(_costs(told, SPACES[space]))
        if told["strongest"]:
            tables.append(features_table(told["strongest"]))
        shell.result(tables, told)
        for warning in _warnings(told, settings):
            shell.warn(warning)
        shell.say(f"Model: {output}")


def _warnings(told: Mapping[str, Any], settings: SelectionSettings) -> Iterator[str]:
    """What a user should know of a selection, and what to do about it."""
    kind = SPACES[settings.space].kind
    if told["stopped"]:
        more = "" if settings.memory is None else ", or more --memory"
        yield (f"mining ended before its time: {told['stopped']}; give a higher --threshold{more}")
    if told["features"] or kind == "templates":  # which selects nothing
        return
    cure = "; give a lower --threshold"
    if told["stopped"] or kind == "support":
        cure = ""
    elif not told["basic_features"]:
        cure = "; give a lower --min-count, all basic features are left out"
    yield f"no feature was selected: the model chooses by the parsers' scores alone{cure}"


def _costs(told: Mapping[str, Any], space: Space) -> Table:
    """Their Table 3: what was selected, and what it took."""
    seconds = told["seconds"]
    notes: tuple[str, ...] = ()
    if told["iterations"]:
        notes = (f"{len(told['iterations'])} iterations of mining",)
    if told["stopped"]:
        notes = (*notes, f"mining ended before its time: {told['stopped']}")
    return Table(
        title="Selection",
        columns=(
            Column("space", "space", align="left"),
            Column("C", "threshold"),
            Column("basic features", "basic_features"),
            Column("selected", "features"),
            Column("templates", "templates"),
            Column("with weight", "weighted"),
            Column("mining, s", "mining", digits=1),
            Column("perceptron, s", "perceptron", digits=1),
            Column("peak, MiB", "peak", digits=0),
        ),
        rows=(
            (
                told["space"],
                None if "threshold" in space.unread else f"{told['threshold']:g}",
                *(
                    None if space.kind == "templates" else told[name]
                    for name in ("basic_features", "features", "templates")
                ),
                told["weighted"], seconds.get("mining"), seconds.get("perceptron"),
                told["peak_bytes"] / MEBIBYTE,
            ),
        ),
        notes=notes,
    )  # fmt: skip
