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
from tk_spacy.workflows.train.cross_validation import CROSS_VALIDATION
from tk_spacy.workflows.train.releases import TreebankResult
from tk_spacy.workflows.train.treebanks import PARTS


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


def show_treebanks(shell: Shell, results: Sequence[TreebankResult], output: Path) -> bool:
    """What became of each of many treebanks, for `train`; returns whether one failed."""
    rows = [result.to_dict() for result in results]
    failed = [row for row in rows if row["status"] == "failed"]
    document = {"models": str(output), "treebanks": rows, "failed": len(failed)}
    shell.result([treebanks_table(rows)], document)
    for row in failed:
        shell.error(f"{row['treebank']}: {row['error']}")
    return bool(failed)


def treebanks_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row for each treebank, as `TreebankResult.to_dict` has it."""
    parts = [part for part in ("dev", "test") if any(part in row["scores"] for row in rows)]
    crossed = any(CROSS_VALIDATION in row["scores"] for row in rows)
    short = {part: part for part in parts} | ({CROSS_VALIDATION: "cross-v."} if crossed else {})
    metrics = [(metric, part) for part in short for metric in ("uas", "las")]
    columns = (
        Column("treebank", "treebank", align="left"),
        Column("", "status", align="left"),
        Column("words", "words"),
        *(
            Column(f"{metric.upper()} {short[part]}", f"{metric}_{part}")
            for metric, part in metrics
        ),
        Column("minutes", "minutes", digits=1),
    )
    shown = tuple(
        (
            row["treebank"],
            row["status"],
            row["words"],
            *(row["scores"].get(part, {}).get(metric) for metric, part in metrics),
            None if row["seconds"] is None else row["seconds"] / 60,
        )
        for row in rows
    )
    notes = ["words: of train; scores: of the final system."]
    if crossed:
        notes.append("cross-v.: cross-validation, where there is neither dev nor test.")
    if any(row["status"] == "up to date" for row in rows):
        notes.append("minutes of models that are up to date: those of their training.")
    return Table(title="Treebanks", columns=columns, rows=shown, notes=tuple(notes))
