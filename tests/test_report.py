"""Tables as data: the same numbers on the terminal, in Markdown and in JSON."""

import io

import pytest
from rich.console import Console
from trainings import lists_training, treebank

from tk_spacy.cli.file_commands import batch_table
from tk_spacy.evaluation.report import TrainReport, scores_table
from tk_spacy.evaluation.well_formed import count_violations
from tk_spacy.treebank.conllu import load_treebank
from tk_spacy.utils.tables import Column, Table, show, show_p, show_seconds

TABLE = Table(
    title="Owls [bold]",
    columns=(Column("name", "name", align="left"), Column("weight", "weight", digits=1)),
    rows=(("a|b [red]", 1234.56), ("none", None)),
    notes=("Weighed at night.",),
)


def on_terminal(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return out.getvalue()


def test_report_table_on_a_terminal_shows_text_as_it_is() -> None:
    text = on_terminal(TABLE)
    assert "Owls [bold]" in text
    assert "a|b [red]" in text
    assert "1,234.6" in text
    assert text.rstrip().endswith("Weighed at night.")


def test_report_table_as_markdown() -> None:
    assert TABLE.to_markdown() == (
        "**Owls [bold]**\n\n| name | weight |\n| --- | ---: |\n| a\\|b [red] | 1,234.6 |\n"
        "| none | - |\n\nWeighed at night.\n"
    )


def test_report_table_as_records_keeps_numbers_unrounded() -> None:
    assert TABLE.records() == [
        {"name": "a|b [red]", "weight": 1234.56},
        {"name": "none", "weight": None},
    ]


def test_report_table_refuses_rows_of_another_width() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table(title="", columns=TABLE.columns, rows=(("a",),))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (9.994, "9.99 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min 00 s"),
        (725, "12 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_report_shows_seconds(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


def test_report_shows_numbers_and_p_values() -> None:
    assert (show(1234567), show(0.5, 3), show(None)) == ("1,234,567", "0.500", "-")
    assert (show_p(0.0001), show_p(0.0456)) == ("p < 0.001", "p = 0.046")


def test_report_of_a_training_shows_the_same_numbers_everywhere() -> None:
    report = lists_training()[1]
    row = report.parts["test"].scores["final system"]
    shown = [f"{value:.2f}" for value in (row.uas, row.las, row.uas_nopunct, row.las_nopunct)]
    assert "| final system | " + " | ".join(shown) + " |" in report.to_markdown()
    for value in shown:
        assert value in "".join(on_terminal(table) for table in report.tables())
    saved = report.to_dict()["parts"]["test"]["scores"]["final system"]
    assert (saved["uas"], saved["las_nopunct"]) == (row.uas, row.las_nopunct)
    records = scores_table("", report.parts["test"].scores).records()
    assert [r["uas"] for r in records if r["system"] == "final system"] == [row.uas]


def test_report_of_a_training_counts_what_is_ill_formed() -> None:
    path, report = lists_training()
    part = report.parts["test"]
    assert list(part.violations) == ["gold", "base parser", "final system"]
    assert part.violations["gold"] == count_violations(load_treebank(treebank()["test"]))
    assert TrainReport.from_dict(report.to_dict()).parts["test"].violations == part.violations
    assert "**Ill-formed trees on UD_Synthetic test**" in (path / "report.md").read_text()
    old = report.to_dict()
    del old["parts"]["test"]["violations"]
    assert not TrainReport.from_dict(old).parts["test"].violations


def test_report_batch_table_sums_up_and_leaves_out_missing_scores() -> None:
    row = {
        "input": "in/a.conllu", "status": "done", "sentences": 2, "words": 10, "changed": 1,
        "seconds": 2.0, "scores": None,
    }  # fmt: skip
    failed = {**row, "input": "in/b/c.conllu", "status": "failed", "sentences": 0, "words": 0}
    table = batch_table([row, failed], row)
    assert table.title == "Reranked files of in"
    assert table.rows == (
        ("a.conllu", "done", 2, 10, 5, 1),
        ("b/c.conllu", "failed", None, None, None, None),
        ("total", "", 2, 10, 5, 1),
    )


def test_report_narrow_terminals_fold_names_and_headings_but_no_number() -> None:
    table = Table(
        title="t",
        columns=(
            Column("file", "file", align="left"),
            *(Column(f"UAS no punct. {i}", f"n{i}") for i in range(6)),
        ),
        rows=(("a/long/path/to/some/file.conllu", *(100.0 - i for i in range(6))),),
    )
    file = io.StringIO()
    Console(width=80, file=file).print(table)
    shown = file.getvalue()
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert all(f"{100.0 - i:.2f}" in shown for i in range(6))
    first = "".join(line.split("│")[1].strip() for line in shown.splitlines() if "│" in line)
    assert first == "a/long/path/to/some/file.conllu"
