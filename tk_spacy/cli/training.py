"""What the commands that train share: defaults that depend on others, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tk_spacy.cli.shell import Shell
from tk_spacy.ensemble.combiner.model import COMBINER
from tk_spacy.errors import UserError
from tk_spacy.evaluation.report import TrainReport
from tk_spacy.reranker.interpolation import Combination
from tk_spacy.utils.tables import Cell, Column, Table

PARTS = ("train", "dev", "test")


def parser_files(values: Sequence[str]) -> dict[str, dict[str, Path]]:
    """The files of `--parser-file NAME.PART=FILE` or `NAME=DIRECTORY`, by name and part.

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
                f"--parser-file {value}: write NAME.PART=FILE, where PART is {', '.join(PARTS)}, "
                "or NAME=DIRECTORY with train.conllu, dev.conllu and perhaps test.conllu in it"
            )
        for name, file in files.items():
            if name in found.setdefault(source, {}):
                raise UserError(f"--parser-file {value}: {source}.{name} is given twice")
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
