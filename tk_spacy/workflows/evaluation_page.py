"""An evaluation as a page: scores, where the errors are, and the sentences behind them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tk_spacy.evaluation.confusions import Confusions
from tk_spacy.evaluation.well_formed import violations_table
from tk_spacy.pages.analysis import Analysis, comparisons_table, confidence_section
from tk_spacy.pages.content import Section, TableBlock, Words, report_page
from tk_spacy.pages.versions import versions_table
from tk_spacy.treebank.conllu import read_conllu
from tk_spacy.utils.short_names import shortened
from tk_spacy.utils.tables import Cell, Column, Table
from tk_spacy.utils.workdir import fingerprint
from tk_spacy.workflows.evaluate import Evaluation

METRICS = ("uas", "las")
"""Whose differences are tested, whichever the command shows."""
NO_TIMES = (
    "Times: the files do not say how long their trees took. `parse` and `rerank` tell it when they "
    "are done, and the page of a training has that of each stage."
)


def find_confusions(gold: Path, systems: Sequence[Path]) -> Confusions:
    """The confusions of systems' files, which `evaluate` has found to have the gold sentences."""
    return Confusions.of(
        read_conllu(gold, single_root=False),
        [read_conllu(path, trees="optional", single_root=False) for path in systems],
    )


def page(
    result: Evaluation,
    confusions: Confusions,
    *,
    files: Sequence[Path],
    groupings: Sequence[str] = (),
) -> str:
    """The page, as text; the same for the same files and settings.

    result: of `evaluate` by PAGE_GROUPINGS at least.  confusions: of the same files.
    files: gold and systems, where they can be read.  groupings: further ones to show.
    """
    names, short = result.names, result.short
    analysis = Analysis(names, result.breakdowns, confusions)
    sure = dict(zip(names, result.confidence, strict=False))
    counts = dict(zip(("gold", *names), result.violations, strict=True))
    tests = [
        (name, names[0], of)
        for metric in dict.fromkeys((*METRICS, *(of.metric for of in result.comparisons)))
        for name, of in zip(names[1:], result.compared(metric), strict=True)
    ]
    scores = [TableBlock(result.table(notes=False))]
    if tests:
        scores.append(TableBlock(comparisons_table(tests)))
    settings: dict[str, Cell] = {
        "bootstrap samples": result.samples, "bootstrap seed": result.seed,
    }  # fmt: skip
    notes = [shortened(note, short) for note in result.notes]
    sections = [
        Section("Scores", [*scores, *map(Words, notes)]),
        *analysis.sections(groupings),
        analysis.confusion_section(),
        confidence_section(sure),
        Section("Ill-formed trees", [TableBlock(violations_table("Ill-formed trees", counts))]),
        Section(
            "Files, settings and versions",
            [
                TableBlock(_files_table([short[result.gold], *names], files)),
                TableBlock(_settings_table(settings)),
                TableBlock(versions_table()),
                Words(NO_TIMES),
            ],
        ),
    ]
    of = result.systems[0][1]
    lead = [
        f"{', '.join(names)} against {short[result.gold]}: {of.sentences:,} sentences, "
        f"{of.words:,} words, {of.words_nopunct:,} of them no punctuation."
    ]
    return report_page("Evaluation of dependency trees", lead, sections)


def _settings_table(settings: dict[str, Cell]) -> Table:
    return Table(
        title="Settings",
        columns=(Column("setting", "name", align="left"), Column("value", "value", align="left")),
        rows=tuple((name, str(value)) for name, value in settings.items()),
    )


def _files_table(names: Sequence[str], files: Sequence[Path]) -> Table:
    return Table(
        title="Files",
        columns=(
            Column("file", "file", align="left"),
            Column("SHA-256", "sha256", align="left"),
        ),
        rows=tuple((name, fingerprint(path)) for name, path in zip(names, files, strict=True)),
    )
