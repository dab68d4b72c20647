"""The page of a training: what is in its report, and where the errors are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from tk_spacy.evaluation.breakdown import PAGE_GROUPINGS, Breakdown
from tk_spacy.evaluation.confidence import ConfidenceCounts, Said
from tk_spacy.evaluation.confusions import EXAMPLES, Confusions
from tk_spacy.evaluation.report import (
    BASE_PARSER,
    FINAL,
    VOTE,
    Curve,
    PartReport,
    TrainReport,
    costs_table,
    fast_table,
    speeds_table,
    stages_table,
    table_2,
    table_3,
    tags_table,
)
from tk_spacy.evaluation.well_formed import violations_table
from tk_spacy.pages.analysis import Analysis, comparisons_table, confidence_section
from tk_spacy.pages.charts import MISSING, can_draw, lines_chart
from tk_spacy.pages.content import Block, Charts, Folded, Section, TableBlock, Words, report_page
from tk_spacy.pages.versions import versions_table
from tk_spacy.treebank.sentence import Sentence
from tk_spacy.utils.short_names import short_names
from tk_spacy.utils.tables import Cell, Column, Table

ADJUSTED_TOLD = (
    "These probabilities were adjusted to the very trees that judge them here, so that they look "
    "truer than those of other sentences: only trees that nothing was fitted to, such as those of "
    "test, tell how true they are."
)
UNSEEN = "test"
"""The part whose sentences are not shown: who looks at them has no test part any more."""


@dataclass(frozen=True, slots=True)
class PartTrees:
    """The trees of a part that was scored: gold, the base parser's, and the final system's.

    sure: how sure each of the latter is, None where the model is not calibrated.
    adjusted: whether the calibration was adjusted to these very trees.
    """

    gold: Sequence[Sentence]
    before: Sequence[Sentence]
    after: Sequence[Sentence]
    sure: Sequence[Said | None]
    adjusted: bool = False


def page(report: TrainReport, trees: Mapping[str, PartTrees], *, sentences: bool = True) -> str:
    """The page, as text.

    trees: of each part of the report.  sentences: whether it may show those of the treebank; of
    test it never does.  Without matplotlib it has no charts, and says so.
    """
    charts = can_draw()
    last = [Words(f"Note: {note}") for note in report.notes]
    sections = [
        Section("Scores", [block for name in report.parts for block in _scores(report, name)]),
        Section("Learning curves", _curves(report.curves, charts=charts)),
        *(
            section
            for name, own in trees.items()
            for section in _errors(name, own, charts=charts, sentences=sentences)
        ),
        Section("Ill-formed trees", list(_violations(report.parts))),
        Section("Tags", [TableBlock(tags_table(report.tags))] if report.tags else []),
        Section("Times and costs", [TableBlock(table) for table in _costs(report)]),
        Section(
            "Settings and versions",
            [TableBlock(_settings_table(report.about)), TableBlock(versions_table()), *last],
        ),
    ]
    lead = [f"Scores of {', '.join(report.parts)}, {report.kind_of_tags}."]
    if not charts:
        lead.append(f"This page {MISSING}, and train again.")
    return report_page(f"Training on {report.about.get('title') or 'a treebank'}", lead, sections)


def _scores(report: TrainReport, name: str) -> Iterator[Block]:
    part = report.parts[name]
    table = table_2(name, part, report.about.get("title") or "", tags=report.kind_of_tags)
    tests = [(FINAL, BASE_PARSER, test) for test in part.tests]
    tests += [(FINAL, VOTE, test) for test in part.vote_tests]
    # Its first notes are the tests, which have a table of their own here.
    yield TableBlock(replace(table, notes=table.notes[len(tests) :]))
    yield TableBlock(comparisons_table(tests))


def _curves(curves: Mapping[str, Curve], *, charts: bool) -> list[Block]:
    curves = {name: curve for name, curve in curves.items() if curve.values}
    if not curves:
        return []
    blocks: list[Block] = []
    if charts:
        drawn = [
            lines_chart(
                f"curve-{number}",
                f"{name}: {curve.of}",
                {name: [(n * (curve.steps or 1), y) for n, y in enumerate(curve.values, 1)]},
                x=_axis(curve),
                y=curve.of,
            )
            for number, (name, curve) in enumerate(curves.items())
        ]
        blocks.append(Charts(drawn))
    values = zip_longest(*(curve.values for curve in curves.values()))
    rows: list[tuple[Cell, ...]] = [(epoch, *row) for epoch, row in enumerate(values, 1)]
    table = Table(
        title="After each epoch, or so many steps",
        columns=(Column("after", "epoch"), *(Column(name, name, digits=3) for name in curves)),
        rows=tuple(rows),
        notes=tuple(
            f"{name}: {curve.of}" + (f"; a row is {curve.steps:,} steps" if curve.steps else "")
            for name, curve in curves.items()
        ),
    )
    if not charts:
        return [TableBlock(table)]
    return [*blocks, Folded("The numbers of these curves", [TableBlock(table)])]


def _axis(curve: Curve) -> str:
    return "step" if curve.steps else "epoch"


def _errors(name: str, trees: PartTrees, *, charts: bool, sentences: bool) -> Iterator[Section]:
    """Where the base parser and the final system err in a part."""
    systems = [trees.before, trees.after]
    breakdowns = []
    for parsed in systems:
        breakdown = Breakdown(PAGE_GROUPINGS)
        for _ in breakdown.watch(zip(trees.gold, parsed, strict=True)):
            pass
        breakdowns.append(breakdown)
    shown = sentences and name != UNSEEN
    confusions = Confusions.of(trees.gold, systems, examples=EXAMPLES if shown else 0)
    prefix, of = f"{name}-", f" on {name}"
    analysis = Analysis([BASE_PARSER, FINAL], breakdowns, confusions, charts=charts, prefix=prefix)
    yield from analysis.sections(of=of)
    yield analysis.confusion_section(sentences=shown, of=of)
    counts = ConfidenceCounts()
    for gold, tree, said in zip(trees.gold, trees.after, trees.sure, strict=True):
        if said is not None:
            counts.add(gold, tree, said)
    note = ADJUSTED_TOLD if trees.adjusted else ""
    yield confidence_section(
        {FINAL: counts.scores()}, charts=charts, prefix=prefix, of=of, note=note
    )


def _violations(parts: Mapping[str, PartReport]) -> Iterator[Block]:
    for name, part in parts.items():
        if part.violations:
            yield TableBlock(violations_table(f"Ill-formed trees of {name}", part.violations))


def _costs(report: TrainReport) -> Iterator[Table]:
    yield table_3(report.run_time)
    if report.run_time.parser_speeds:
        yield costs_table(report)
    for name, part in report.parts.items():
        if part.speeds:
            yield speeds_table(f"Speeds on {name}", part.speeds)
    if report.fast is not None:
        yield fast_table(report.fast)
    yield stages_table(report.run_time)


def _settings_table(about: Mapping[str, Any]) -> Table:
    return Table(
        title="What was trained on what",
        columns=(Column("setting", "name", align="left"), Column("value", "value", align="left")),
        rows=tuple(_flat(about)),
    )


def _flat(values: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{of}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{of}{name}", ", ".join(map(_told, value)) or "none"
        else:
            yield f"{of}{name}", "none" if value is None else _told(value)


def _told(value: object) -> str:
    """A value as text; of a path from the root, such as a pipeline's, the name."""
    text = str(value)
    return short_names([text])[0] if PurePath(text).is_absolute() else text
