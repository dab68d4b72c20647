"""What the commands that train share: defaults that depend on others, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from tk_spacy.cli.shell import Shell, split
from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.features.templates import FEATURE_TYPES
from tk_spacy.parsers.names import DEFAULT_PARSERS, SPACY
from tk_spacy.reranker.interpolation import Combination
from tk_spacy.reranker.settings import SUITED, Settings
from tk_spacy.utils.tables import Cell, Column, Table

PARTS = ("train", "dev", "test")


def by_sources(name: str) -> str:
    """The default of a setting that depends on where the lists come from, in words."""

    def text(value: Any) -> str:
        return ",".join(value) if isinstance(value, tuple) else f"{value:g}"

    usual = getattr(Settings(), name)
    usual = "all" if usual == FEATURE_TYPES else text(usual)
    return f"{text(SUITED['sampling',][name])} with the sampling parser alone, else {usual}"


def chosen_parsers(parsers: str | None, *, spacy_pipeline: str | None = None) -> tuple[str, ...]:
    """The parsers that a user named, or those that are meant without a name."""
    if parsers is not None:
        return split(parsers)
    return (SPACY,) if spacy_pipeline is not None else DEFAULT_PARSERS


def named_options(context: typer.Context) -> frozenset[str]:
    """The names of the options that a user gave, be it their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return frozenset(
        name for name, source in sources.items() if source is not None and source.name != "DEFAULT"
    )


def changed(**given: float | tuple[str, ...] | None) -> dict[str, Any]:
    """The settings of a parser that a user gave."""
    return {name: value for name, value in given.items() if value is not None}


def of_parsers(**given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of kinds of parsers that a user gave; none for a kind without any."""
    return {kind: settings for kind, settings in given.items() if settings}


def parser_files(values: Sequence[str]) -> dict[str, dict[str, Path]]:
    """The files of `--view-file NAME.PART=FILE` or `NAME=DIRECTORY`, by name and part.

    Raises UserError for anything else.
    """
    found: dict[str, dict[str, Path]] = {}
    for value in values:
        left, is_pair, path = value.partition("=")
        source, has_part, part = left.partition(".")
        if has_part and part in PARTS and source and path:
            files = {part: Path(path)}
        elif is_pair and not has_part and source and Path(path).is_dir():
            files = {name: Path(path, f"{name}.conllu") for name in PARTS}
            files = {name: file for name, file in files.items() if file.exists()}
        else:
            raise UserError(
                f"--view-file {value}: write NAME.PART=FILE, where PART is {', '.join(PARTS)}, or "
                "NAME=DIRECTORY with train.conllu, dev.conllu and perhaps test.conllu in it"
            )
        for name, file in files.items():
            if name in found.setdefault(source, {}):
                raise UserError(f"--view-file {value}: {source}.{name} is given twice")
            found[source][name] = file
    return found


def dev_table(
    tried: Sequence[Column],
    rows: Iterable[tuple[tuple[Cell, ...], Mapping[str, Any], bool]],
    *,
    mark: str,
) -> Table:
    """The scores on dev of all that a training tried.

    tried: columns that tell the tries apart.  rows: their cells, the scores, and whether this one
    was taken.  mark: what to call that.
    """
    scores = (Column("UAS", "uas"), Column("LAS", "las"))
    return Table(
        title="Scores on dev",
        columns=(*tried, *scores, Column("", mark, align="left")),
        rows=tuple(
            (*cells, found["uas"], found["las"], mark if is_best else "")
            for cells, found, is_best in rows
        ),
    )


def show_training(
    shell: Shell,
    report: TrainReport,
    output: Path | None,
    *,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """The result of a training, for `train` and `demo`; output is None where it is not kept."""
    document = {"model": output and str(output), **(extra or {}), **report.to_dict()}
    shell.result(report.tables(), document)
    betas = [f"{beta:g} * {name}" for name, beta in report.betas.items() if beta]
    tuned = report.betas != Combination.untuned(list(report.betas), combiner=COMBINER).betas
    scaled = " (each score scaled to its spread)" if tuned else ""
    is_weightless = report.betas and not betas
    alone = " alone: beside it the parser's score was given no weight" if is_weightless else ""
    shell.say(f"\nFinal score = {' + '.join(['reranker', *betas])}{scaled}{alone}.")
    if output is not None:
        shell.say(f"Model: {output}")
